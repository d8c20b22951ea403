"""Stages that a function declares, as tasks of a job: see `spatialq.functions.stages`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster.arrays import read_arrays, write_arrays
from spatialq.cluster.job import Job
from spatialq.cluster.layout import Core
from spatialq.cluster.method import Method
from spatialq.cluster.points import CorePart, write_rows
from spatialq.cluster.survey import Survey
from spatialq.cluster.task import Task, name_of, named
from spatialq.execution.doubts import warn_of
from spatialq.functions.catalogue import divisible
from spatialq.functions.stages import Cloud, Do, OfAll, OfCores, TaskResult

COORDINATES = frozenset("xyz")
Make = Callable[[CorePart], Any]
"""Calls the function of a task, for a core or without one."""
Write = Callable[[CorePart, Make, Path], dict[str, Any]]
"""Writes what that gives into a file, and gives the facts of the task."""


class StagedWork:
    """The stages of a job, a `PointWork`; parts of the result are Parquet.

    Parameters
    ----------
    job : Job
    left_out : sequence of int
        Classes of points that are not considered.
    """

    def __init__(self, job: Job, left_out: Sequence[int] = ()) -> None:
        call = job.call
        self.job, self.options, self.metres = job, call.options, call.units[0]
        self.survey = job.survey(left_out)
        self.cloud = _cloud_of(self.survey, call.level, call.z_to_xy_scale)
        self.layout = job.layout(self.survey)
        self.is_ended = False
        self.write: Write = write_part
        """Writes a part of `rows`."""
        self.write_all: Write = write_table
        """Writes that of `table`."""
        self.shared = {
            "caller": call.function,
            "bounds": call.options.bounds,
            "left_out": left_out,
            "level": call.level,
            "crs": call.crs,
            "device": call.device,
        }

    def doubt(self, sentence: str) -> None:
        """Warn that the result may miss much, if the sentence is not empty."""
        warn_of(self.job.call.function, sentence)

    def each(self, stage: str, do: Do, *inputs: Any, halo: float = 0.0) -> OfCores:
        """Have a task done for each core, which writes what it finds."""
        return self.write_each(stage, write_found, do, inputs, halo)

    def write_each(
        self, stage: str, write: Write, do: Callable[..., Any], inputs: Sequence[Any], halo: float
    ) -> OfCores:
        """Have a task done for each core, which writes arrays in its own way."""
        cores = self.layout.cores()
        tasks = (self.task(core.name, write, do, inputs, core, halo) for core in cores)
        for _ in self.job.files(stage, tasks, self.layout.count):
            pass
        return OfCores(stage)

    def once(self, stage: str, do: Do, *inputs: Any) -> OfAll:
        """Have one task done, which writes what it finds."""
        (done,) = self.job.files(stage, [self.task(stage, write_found, do, inputs)], 1)
        return OfAll(stage, done.facts)

    def rows(self, do: Callable[..., Any], *inputs: Any, halo: float = 0.0) -> None:
        """Have a task done for each core, which writes a part of the result."""
        tasks = (
            self.task(name, self.write, do, inputs, core, halo) for name, core in self.named_cores()
        )
        self.parts(tasks, sum(1 for _ in self.named_cores()))

    def named_cores(self) -> Iterator[tuple[str, Core]]:
        """Give the name of each part of `rows`, and its core."""
        for core in self.layout.cores():
            yield f"{core.name}.parquet", core

    def table(self, name: str, do: Callable[..., Any], *inputs: Any) -> None:
        """Have one task done, which writes the only part of the result."""
        self.parts([self.task(f"{name}.parquet", self.write_all, do, inputs)], 1)

    def parts(self, tasks: Iterable[Task], total: int) -> None:
        """Have the tasks of the last stage done."""
        self.job.parts(tasks, total)
        self.is_ended = True

    def end(self) -> None:
        """Write what there is of a program that has ended without a last stage: no parts."""
        self.parts([], 0)

    def task(
        self,
        name: str,
        write: Write,
        do: Callable[..., Any],
        inputs: Sequence[Any],
        core: Core | None = None,
        halo: float = 0.0,
    ) -> Task:
        """Make a task that calls a function, and writes what that gives."""
        data = {
            **self.shared,
            "write": name_of(write),
            "do": name_of(do),
            "inputs": [self._encoded(each, core) for each in inputs],
            "core": None if core is None else core.box,
        }
        if core is not None:
            data |= self.layout.reading(core, halo)
        return Task(name, name_of(perform), data)

    def _encoded(self, value: Any, core: Core | None) -> Any:
        """Write an input of a task as values of JSON, see `_decoded`."""
        if isinstance(value, OfAll):
            return {"file": self.job.path(value.stage, value.stage)}
        if isinstance(value, OfCores):
            if core is None:
                return {"folder": self.job.path(value.stage, "")}
            return {"file": self.job.path(value.stage, core.name)}
        if is_dataclass(value) and not isinstance(value, type):
            parts = {each.name: getattr(value, each.name) for each in fields(value)}
            chosen = {name: self._encoded(each, core) for name, each in parts.items()}
            return {"class": name_of(type(value)), "fields": chosen}
        if isinstance(value, tuple):
            return {"tuple": [self._encoded(each, core) for each in value]}
        return value


def _decoded(value: Any) -> Any:
    """Give an input of a task, as `do` takes it."""
    if not isinstance(value, Mapping):
        return value
    if "file" in value:
        return found_in(value["file"])
    if "folder" in value:
        return map(found_in, sorted(Path(value["folder"]).iterdir()))
    if "tuple" in value:
        return tuple(map(_decoded, value["tuple"]))
    chosen = {name: _decoded(each) for name, each in value["fields"].items()}
    return named(value["class"])(**chosen)


def found_in(path: str | Path) -> TaskResult:
    """Read what a task has found."""
    facts, arrays = read_arrays(path)
    return TaskResult(arrays, facts)


def _cloud_of(survey: Survey, level: float, z_to_xy_scale: float) -> Cloud:
    if survey.total == 0:
        nowhere = float("nan"), float("nan"), float("nan")
        return Cloud(0, nowhere, nowhere)
    (*low, bottom), (*high, top) = (ends.tolist() for ends in survey.ends)
    may_have_strays = survey.file_of_strays(z_to_xy_scale * level) is not None
    return Cloud(survey.total, (*low, bottom * level), (*high, top * level), may_have_strays)


def perform(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Do a task of such a stage."""
    part, do = CorePart(data), named(data["do"])
    inputs = [_decoded(each) for each in data["inputs"]]

    def make(part: CorePart) -> Any:
        return do(*inputs) if data["core"] is None else do(part, *inputs)

    facts: dict[str, Any] = named(data["write"])(part, make, path)
    return facts | part.facts


def write_found(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write what a task has found for later stages; give its facts."""
    found = make(part)
    if not isinstance(found, TaskResult):
        found = TaskResult(found)
    write_arrays(path, found.arrays, found.facts)
    return dict(found.facts)


def write_part(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write rows of a core; give their number."""
    output = divisible()[part.data["caller"]].output
    rows = _with_level(output.heights, dict(make(part)), part.data["level"])
    for name, null in output.nulls.items():
        rows[name] = np.ma.masked_equal(rows[name], null)
    for name in output.columns.keys() - COORDINATES:
        if rows[name].dtype.kind == "f":
            rows[name] = np.ma.masked_invalid(rows[name])
    write_rows(rows, path, list(output.columns), crs=part.data["crs"])
    return {"rows": rows["x"].size}


def write_table(
    part: CorePart, make: Make, path: Path, query: str = "FROM {rows}"
) -> dict[str, Any]:
    """Write all rows of a result, or what a query makes of them; give their number."""
    import pyarrow as pa

    from spatialq.database.transport.arrow import structs
    from spatialq.io.crs import with_one_unit
    from spatialq.workflows.tables import write_arrow

    function, crs = divisible()[part.data["caller"]], part.data["crs"]
    rows = _with_level(function.output.heights, dict(make(part)), part.data["level"])
    table = pa.Table.from_struct_array(structs(function, rows))
    columns = ", ".join(
        f"{name}::GEOMETRY AS {name}" if kind == "GEOMETRY" else name
        for name, kind in function.output.columns.items()
    )
    query = query.format(rows=f"(SELECT {columns} FROM result)")
    write_arrow(table, path, query, crs=crs and with_one_unit(crs))
    return {"rows": table.num_rows}


def _with_level(heights: Sequence[str], rows: dict[str, Any], level: float) -> dict[str, Any]:
    """Give heights back in the unit of z of the files."""
    return rows if level == 1 else rows | {name: rows[name] / level for name in heights}


def method_of(
    function: str,
    forms: Mapping[str, Callable[[Job], StagedWork]] = {"parquet": StagedWork},
    **more: Any,
) -> Method:
    """Make the method of a function that declares its stages.

    Parameters
    ----------
    function : str
    forms : mapping
        What makes parts of each ending; the first one is the default.
    **more
        Other fields of the `Method`.
    """

    def run(job: Job) -> None:
        work, program = forms[job.call.part_format](job), divisible()[function].program()
        assert program is not None
        program(work)
        if not work.is_ended:
            work.end()

    return Method(function, run, formats=tuple(forms), **more)
