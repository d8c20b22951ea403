"""`detect_planes` and `plane_points` of a survey: a search pass by pass.

A task reads the points of each core once. The search itself is a task that sees no points: where it
needs a pass over all of them, this is a stage with a task for each core, and the next task of the
search puts together what these have found, and goes on. See `spatialq.udfs.detect_planes.passes`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster.arrays import read_all, read_arrays, write_arrays
from spatialq.cluster.job import Job, given
from spatialq.cluster.layout import Core
from spatialq.cluster.method import Method
from spatialq.cluster.methods.cloud_parts import LAZ, names_of_clouds
from spatialq.cluster.methods.plane_files import cube_of, pass_of, values_of
from spatialq.cluster.points import is_own, open_cloud, read_points, write_rows
from spatialq.cluster.survey import Survey
from spatialq.cluster.task import Task
from spatialq.functions.catalogue import catalogue
from spatialq.udfs.detect_planes.detection import Detection
from spatialq.udfs.detect_planes.octree import Cube
from spatialq.udfs.detect_planes.passes import (
    Naming,
    Passes,
    Pending,
    go_over,
    planes_of,
    put_together,
    search_with,
)
from spatialq.workflows.cloud_points import NOISE

PLANES, OF_POINTS = "detect_planes", "plane_points"
POINTS, SEARCH, PASS = "points", "search", "pass"
"""Stages; those of the search and of passes have numbers."""
FOUND = "found"
"""The file of a task of the search."""
AXES = ("x", "y", "z")


def run(job: Job) -> None:
    """Find the planes of a survey, or those of its points."""
    call = job.call
    survey = job.survey(() if call.more["noise"] else NOISE)
    _Search(job, survey).run()


class _Search:
    """The stages of a job."""

    def __init__(self, job: Job, survey: Survey) -> None:
        call = job.call
        self.job, self.layout = job, job.layout(survey.whole)
        self.count = sum(1 for _ in self.layout.cores())
        self.names = names_of_clouds(job, OF_POINTS) if call.part_format == LAZ else None
        self.reading = {
            "caller": call.function,
            "bounds": call.options.bounds,
            "level": call.level,
            "left_out": [] if call.more["noise"] else NOISE,
        }
        self.searching = {
            "options": given(call.options),
            "cube": vars(_cube(survey, call.level)),
            "size": survey.total,
            "label": call.function == OF_POINTS,
        }
        self.searches: list[str] = []
        """Files of the tasks of the search so far."""

    def run(self) -> None:
        """Do all stages."""
        self._of_cores(POINTS, "planes read", lambda core: self._reading(core))
        while (facts := self._go_on())["pass"] is not None:
            number, wanted = len(self.searches) - 1, self.searches[-1]
            self._of_cores(
                f"{PASS}{number:03}", "planes pass", partial(self._passing, facts, wanted)
            )
        if self.job.call.function == PLANES:
            data = self.searching | {"searches": self.searches, "crs": self.job.call.crs}
            self.job.parts([Task("planes.parquet", "planes table", data)], 1)
            return
        tasks = (self._part(core, facts) for core in self.layout.cores())
        self.job.parts(tasks, self.count)

    def _of_cores(self, stage: str, work: str, data: Callable[[Core], dict[str, Any]]) -> None:
        tasks = (Task(core.name, work, data(core)) for core in self.layout.cores())
        _consume(self.job.files(stage, tasks, self.count))

    def _reading(self, core: Core) -> dict[str, Any]:
        return self.reading | self.layout.reading_alone(core)

    def _go_on(self) -> dict[str, Any]:
        """Have the search go on; give the facts of its task: the next pass, if there is one."""
        number = len(self.searches)
        stage, last = f"{SEARCH}{number:03}", f"{PASS}{number - 1:03}"
        data = self.searching | {"searches": self.searches, "pass": self.job.path(last, "")}
        (done,) = self.job.files(stage, [Task(FOUND, "planes search", data)], 1)
        self.searches.append(self.job.path(stage, FOUND))
        return done.facts

    def _passing(self, facts: dict[str, Any], wanted: str, core: Core) -> dict[str, Any]:
        return {
            "wanted": wanted,
            "points": self.job.path(POINTS, core.name),
            "listed": self._found(facts["listed"], core),
            "kept": self._found(facts["kept"], core),
        }

    def _found(self, number: int | None, core: Core) -> str | None:
        """Give the file of what a pass has found in a core."""
        return None if number is None else self.job.path(f"{PASS}{number:03}", core.name)

    def _part(self, core: Core, facts: dict[str, Any]) -> Task:
        data = {
            "naming": self.searches[-1],
            "points": self.job.path(POINTS, core.name),
            "settled": self._found(facts["settled"], core),
            "listed": self._found(facts["listed"], core),
        }
        if self.names is None:
            return Task(f"{core.name}.parquet", "planes rows", data)
        data |= self._reading(core) | {"left_out": [], "crs": self.job.call.crs}
        name = f"{core.name}.{LAZ}" if core.file is None else self.names[core.file]
        return Task(name, "planes cloud", data)


def _consume(done: Iterable[Any]) -> None:
    for _ in done:
        pass


def _cube(survey: Survey, level: float) -> Cube:
    """Make the root cube around all points, as the kernel does."""
    if survey.total == 0:
        return Cube((0.0, 0.0, 0.0), 0.0)
    units = np.array([1.0, 1.0, level])
    low, high = np.nanmin(survey.low, axis=0) * units, np.nanmax(survey.high, axis=0) * units
    return Cube.around(low.tolist(), high.tolist())


def read(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write the points of a core, as the kernel takes them.

    Returns
    -------
    dict
        `points`.
    """
    points = read_points(data)
    own = is_own(data["own"], points)
    columns = {name: values[own] for name, values in points.items() if name in (*AXES, "point_id")}
    columns["z"] = columns["z"] * data["level"]
    write_arrays(path, columns)
    return {"points": int(own.sum())}


def go_on(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Go on with a search, and write the pass that it needs, or how points get their planes.

    Returns
    -------
    dict
        `pass`, the name of the pass, or None if the search has ended; `listed` and `kept`, the
        numbers of earlier passes that it needs, or `listed` and `settled`, those for points.
    """
    arrays: dict[str, Any] = {}
    results = _results(data["searches"])
    if data["searches"]:
        values, before = read_arrays(data["searches"][-1])
        last = put_together(pass_of(values, _named(before, "wanted")), read_all(data["pass"]))
        results.append(lambda: last)
        arrays |= {f"found.{name}": each for name, each in last.items()}
    passes = Passes(results)
    try:
        _search(data, passes)
    except Pending as pending:
        wanted = pending.wanted
        arrays |= {f"wanted.{name}": each for name, each in wanted.arrays.items()}
        write_arrays(path, arrays, values_of(wanted))
        return {"pass": wanted.name, "listed": wanted.listed, "kept": wanted.kept}
    naming, facts = passes.naming, {"pass": None, "listed": None, "settled": None}
    if naming is None:
        write_arrays(path, arrays)
        return facts
    facts |= {"listed": naming.listed, "settled": naming.settled}
    write_arrays(path, arrays | {"ids": naming.ids}, facts | {"step": naming.step})
    return facts


def _results(searches: list[str]) -> list[Callable[[], dict[str, Any]]]:
    """Give what each pass has found: the task of the search after it has put it together."""
    return [partial(_result, path) for path in searches[1:]]


def _result(path: str) -> dict[str, Any]:
    return _named(read_arrays(path)[1], "found")


def _named(arrays: dict[str, Any], group: str) -> dict[str, Any]:
    start = f"{group}."
    return {
        name.removeprefix(start): each for name, each in arrays.items() if name.startswith(start)
    }


def _search(data: dict[str, Any], passes: Passes) -> Detection:
    options = catalogue()[PLANES].choose(data["options"])
    return search_with(data["size"], cube_of(data["cube"]), options, passes, label=data["label"])


def do_pass(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Do a pass over the points of a core, and write what it finds."""
    wanted = pass_of(*_wanted(data["wanted"]))
    points = read_arrays(data["points"])[1]
    listed = None if data["listed"] is None else read_arrays(data["listed"])[1]["listed"]
    kept = None if data["kept"] is None else read_arrays(data["kept"])[1]
    write_arrays(path, go_over(wanted, [points[axis] for axis in AXES], listed, kept))
    return {}


def _wanted(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    values, arrays = read_arrays(path)
    return values, _named(arrays, "wanted")


def write_planes(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write the planes.

    Returns
    -------
    dict
        `rows` written.
    """
    import pyarrow as pa

    from spatialq.database.transport.arrow import structs
    from spatialq.io.crs import with_one_unit
    from spatialq.workflows.tables import write_arrow

    found = _search(data, Passes(_results(data["searches"])))
    table = pa.Table.from_struct_array(structs(catalogue()[PLANES], found.columns))
    query = "SELECT * REPLACE (boundary::GEOMETRY AS boundary) FROM result"
    crs = data["crs"]
    write_arrow(table, path, query, crs=crs and with_one_unit(crs))
    return {"rows": table.num_rows}


def write_points(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write the planes of the points of a core.

    Returns
    -------
    dict
        `rows` written.
    """
    points, plane_id, distance = _planes_of_points(data)
    rows = {
        **{name: points[name] for name in ("point_id", "x", "y")},
        "plane_id": np.ma.masked_equal(plane_id, 0),
        "distance": np.ma.masked_invalid(distance),
    }
    write_rows(rows, path, list(catalogue()[OF_POINTS].output.columns))
    return {"rows": plane_id.size}


def _planes_of_points(data: dict[str, Any]) -> tuple[dict[str, Any], Any, Any]:
    """Give the points of a core, their planes and the distances from these."""
    points = read_arrays(data["points"])[1]
    naming, settled, listed = None, {}, None
    if data["settled"] is not None:
        values, arrays = read_arrays(data["naming"])
        naming = Naming(values["settled"], values["listed"], arrays["ids"], values["step"])
        settled = read_arrays(data["settled"])[1]
    if data["listed"] is not None:
        listed = read_arrays(data["listed"])[1]["listed"]
    return points, *planes_of(points["x"].size, naming, settled, listed)


def write_cloud(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write the points of a core as their files have them, with their planes.

    Returns
    -------
    dict
        `rows` written.
    """
    from spatialq.export.las import write_with_fields
    from spatialq.workflows.planes import fields_of

    clouds = [open_cloud(data["caller"], path, stamp) for path, _, *stamp in data["sources"]]
    files = [cloud.path for cloud in clouds]
    firsts = np.array([first for _, first, *_ in data["sources"]])
    rows = [cloud.rows for cloud in clouds]
    starts = np.concatenate([[0], np.cumsum(rows)])

    def positions(ids: Any) -> Any:
        file = np.searchsorted(firsts, ids, side="right") - 1
        return ids - firsts[file] + starts[file]

    n = int(starts[-1])
    points, of_points, distances = _planes_of_points(data)
    plane_id, distance = np.zeros(n, np.int32), np.full(n, np.nan, np.float32)
    at = positions(points["point_id"])
    plane_id[at], distance[at] = of_points, distances
    every = read_points(data)
    keep = np.zeros(n, np.bool_)
    keep[positions(every["point_id"][is_own(data["own"], every)])] = True
    fields = fields_of(plane_id, distance)
    return {"rows": write_with_fields(files, path, fields, keep, crs=data["crs"])}


def _method(function: str, formats: tuple[str, ...], work: dict[str, Any]) -> Method:
    devices = ("auto", "cpu")
    return Method(function, run, work, formats=formats, more={"noise": True}, devices=devices)


METHODS = (
    _method(
        PLANES,
        ("parquet",),
        {
            "planes read": read,
            "planes search": go_on,
            "planes pass": do_pass,
            "planes table": write_planes,
        },
    ),
    _method(
        OF_POINTS,
        ("parquet", LAZ),
        {"planes rows": write_points, "planes cloud": write_cloud},
    ),
)
"""Those of both functions, which share the stages before the last."""
