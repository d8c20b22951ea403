"""Stages of a function whose result are nodes: see `spatialq.functions.node_stages`."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster.arrays import write_arrays
from spatialq.cluster.job import Job
from spatialq.cluster.layout import Core
from spatialq.cluster.points import CorePart, read_box
from spatialq.cluster.staged import Make, StagedWork, Write, found_in, write_found
from spatialq.cluster.task import Task, name_of, second_of
from spatialq.errors import FileError
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import Parameters, Size
from spatialq.functions.node_stages import Execution, Node, NodeResult, OfNode
from spatialq.functions.stages import Box, Do, OfAll, OfCores, TaskResult
from spatialq.io.formats import open_source
from spatialq.io.source import PointSource
from spatialq.io.storage import as_path
from spatialq.runtime.arrays import DType

ATTRIBUTES = "attributes"
"""The stage that finds the types of columns."""


class AttributePart(CorePart):
    """Points with attributes, a `NodePart`."""

    def __init__(self, part: CorePart) -> None:
        super().__init__(part.data)
        self.facts = part.facts

    @property
    def types(self) -> Mapping[str, DType]:
        """The columns that the parameters name, and their types in all files."""
        return {name: np.dtype(kind) for name, kind in self.data["types"].items()}

    def batches(self) -> Iterator[dict[str, Any]]:
        """Read the points some at a time, with their attributes."""
        return self._attributed(self.clouds(read_box(self.data)[0]), {})

    def points_where(self, choose: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
        """Read the points that a function chooses, with all their columns."""
        from spatialq.database.transport.cloud_columns import chosen, joined

        opened, types = list(self.clouds(read_box(self.data)[0])), self.types
        batches = (chosen(each, choose(each)) for each in self._attributed(opened, types))
        function = catalogue()[self.data["caller"]]
        return joined(function, [cloud for cloud, _ in opened], batches, types)

    def _attributed(
        self, opened: Iterable[tuple[PointSource, int]], more: Mapping[str, DType]
    ) -> Iterator[dict[str, Any]]:
        """Read the points of files, as `clouds` gives them."""
        from spatialq.database.transport.cloud_columns import batches_of_clouds

        box, _ = read_box(self.data)
        function = catalogue()[self.data["caller"]]
        for cloud, first in opened:
            for points in batches_of_clouds(function, [cloud], more=more, bounds=box):
                if points["x"].size:
                    yield self.leveled(points | {"point_id": points["point_id"] + first})

    def changed(self) -> FileError:
        """Make the error that there are other points than an earlier stage has found."""
        names = ", ".join(path for path, *_ in self.data["sources"])
        reason = "has other points than when the job began"
        return FileError.of(self.data["caller"], names, reason)

    @contextmanager
    def planned(self, function: str, rows: int, options: Parameters) -> Iterator[Execution]:
        """Plan the kernel of a function, for what calls it itself."""
        from spatialq.execution.call import planned

        call = [catalogue()[function]], Size(rows), options, self.data["device"]
        with planned(*call, transport="files") as execution:
            yield execution
        self.facts["device"] = execution.device


class StagedNodes(StagedWork):
    """The stages of a job, a `NodeWork`.

    Parameters
    ----------
    job : Job
    write : callable
        Writes a node, which it has made by `make_node`.
    node_points : int
        Of a node that is made of points, at most.
    """

    def __init__(self, job: Job, write: Write, node_points: int) -> None:
        super().__init__(job)
        self.write, self.node_points = write, node_points
        self.shared["types"] = self._types()

    def _types(self) -> dict[str, str]:
        """Find the types of the columns that the parameters name, which any file may lack.

        Raises
        ------
        ValueError
            If no file has one of them as numbers.
        """
        from spatialq.database.transport.cloud_columns import common_types

        caller, names, paths = self.shared["caller"], self.options.more_columns, self.survey.paths
        if not names or not self.cloud.size:
            return {}
        given = {"caller": caller, "names": names}
        tasks = (Task(path, name_of(look), given | {"path": path}) for path in paths)
        files = (
            {name: np.dtype(kind) for name, kind in done.facts["types"].items()}
            for done in self.job.facts(ATTRIBUTES, tasks, len(paths))
        )
        return {name: kind.str for name, kind in common_types(caller, files, names).items()}

    @property
    def area(self) -> float:
        """The area of the boxes around the points of all files."""
        sides = (self.survey.high - self.survey.low)[:, :2]
        return float(np.nansum(sides[:, 0] * sides[:, 1]))

    def each(
        self,
        stage: str,
        do: Do,
        *inputs: Any,
        halo: float = 0.0,
        near: Sequence[Box] | None = None,
    ) -> OfCores:
        """Have a task done for each file that may have points in some boxes."""
        files = np.flatnonzero(self.survey.points > 0)
        if near is not None:
            files = np.unique(np.concatenate([self.layout.files(box) for box in near]))
        cores = map(self.layout.core_of, files.tolist())
        tasks = (self.task(core.name, write_attributed, do, inputs, core, halo) for core in cores)
        for _ in self.job.files(stage, tasks, files.size):
            pass
        return OfCores(stage)

    def read(self, found: OfAll) -> TaskResult:
        """Give what the task of a stage has found; of a file in object storage a copy is read."""
        return found_in(os.fspath(as_path(self.job.path(found.stage, found.stage))))

    def nodes(self, stage: str, rounds: Sequence[Iterable[Node]], total: int, **known: Any) -> None:
        """Have a task done for each node, which writes a part of the result."""
        self.shared |= known
        *before, last = rounds
        first, *later = [*(self._made(nodes, stage) for nodes in before), self._made(last, "")]
        self.job.parts(first, total, *later, seconds=stage)
        self.is_ended = True

    def _made(self, nodes: Iterable[Node], stage: str) -> Iterator[Task]:
        """Make the tasks of a round; `stage` is that of what they give to nodes above, if any."""
        for node in nodes:
            core = None if node.box is None else Core("", node.box)
            task = self.task(f"{node.name}.parquet", self.write, node.do, node.inputs, core)
            yield replace(task, second=stage and f"{stage}/{node.name}")

    def _encoded(self, value: Any, core: Core | None) -> Any:
        if isinstance(value, OfNode):
            return {"file": self.job.path(value.stage, value.node)}
        return super()._encoded(value, core)


def write_attributed(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write what a task has found in points with attributes; give its facts."""
    return write_found(AttributePart(part), make, path)


def make_node(part: CorePart, make: Make, path: Path) -> Mapping[str, Any]:
    """Make a node; write what nodes above get of it beside the file of its rows, and give these."""
    result: NodeResult = make(AttributePart(part))
    if result.above is not None:
        write_arrays(second_of(path), result.above)
    return result.rows


def look(data: dict[str, Any], _: Path) -> dict[str, Any]:
    """Find the types of the columns of a file."""
    from spatialq.database.transport.cloud_columns import types_of_cloud

    cloud = open_source(data["caller"], as_path(data["path"]), ["points"])
    types = types_of_cloud(cloud, data["names"])
    return {"types": {name: dtype.str for name, dtype in types.items()}}
