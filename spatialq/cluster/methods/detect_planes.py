"""`detect_planes` and `plane_points` of a survey: a search pass by pass.

A task reads the points of each core once. The search itself is a task that sees no points: where it
needs a pass over all of them, this is a stage with a task for each core, and the next task of the
search puts together what these have found, and goes on. See `spatialq.udfs.detect_planes.passes`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from spatialq.cluster.job import Job, given
from spatialq.cluster.layout import Core
from spatialq.cluster.method import Method
from spatialq.cluster.methods.cloud_parts import LAZ, names_of_clouds
from spatialq.cluster.methods.plane_tasks import (
    OF_POINTS,
    PLANES,
    do_pass,
    go_on,
    read,
    write_cloud,
    write_planes,
    write_points,
)
from spatialq.cluster.survey import Survey
from spatialq.cluster.task import Task
from spatialq.udfs.detect_planes.octree import Cube
from spatialq.workflows.cloud_points import NOISE

POINTS, SEARCH, PASS = "points", "search", "pass"
"""Stages; those of the search and of passes have numbers."""
FOUND = "found"
"""The file of a task of the search."""


def run(job: Job) -> None:
    """Find the planes of a survey, or those of its points."""
    call = job.call
    names = names_of_clouds(job, OF_POINTS) if call.part_format == LAZ else None
    survey = job.survey(() if call.more["noise"] else NOISE)
    _Search(job, survey, names).run()


class _Search:
    """The stages of a job."""

    def __init__(self, job: Job, survey: Survey, names: list[str] | None) -> None:
        call = job.call
        self.job, self.layout = job, job.layout(survey.whole)
        self.count = sum(1 for _ in self.layout.cores())
        self.names = names
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
