"""`owm_ground` of a survey: windows that overlap a core are whole within its halo."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from spatialq.cluster.job import Call, Job, given
from spatialq.cluster.layout import Layout
from spatialq.cluster.method import Method
from spatialq.cluster.points import is_own, read_points, write_rows
from spatialq.cluster.survey import Survey
from spatialq.cluster.task import Task
from spatialq.execution.call import call_as_given
from spatialq.functions.catalogue import catalogue
from spatialq.udfs.owm_ground.cost import halo
from spatialq.udfs.owm_ground.windows import Box, default_min_points

FUNCTION = "owm_ground"


def run(job: Job) -> None:
    """Find the seeds of all cores."""
    survey = job.survey()
    layout = job.layout(survey)
    job.parts(tasks(survey, layout, job.call), sum(1 for _ in layout.cores()))


def tasks(survey: Survey, layout: Layout, call: Call) -> Iterator[Task]:
    """Give the task of each core.

    All tasks get what a call on all files finds out itself: the extent that windows divide, and
    how many points they need.
    """
    if survey.total == 0:
        return
    options = call.options
    box = options.bounds or survey.box
    least = options.min_points or default_min_points(survey.total, Box.of(box), options.window_size)
    chosen = replace(options, bounds=tuple(box), min_points=least)
    shared = {
        "caller": FUNCTION,
        "options": given(chosen),
        "bounds": options.bounds,
        "device": call.device,
        "crs": call.crs,
    }
    width = halo(chosen)
    for core in layout.cores():
        yield Task(f"{core.name}.parquet", "seeds", shared | layout.reading(core, width))


def perform(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Find the seeds of a core and write them.

    Returns
    -------
    dict
        `rows` written, and `device`, where they were found.
    """
    function = catalogue()[FUNCTION]
    options = function.choose(data["options"])
    points = read_points(data)
    found, device = call_as_given(function, points, options, data["device"], road="files")
    own = is_own(data["own"], found)
    write_rows({name: values[own] for name, values in found.items()}, partial, crs=data["crs"])
    return {"rows": int(own.sum()), "device": device}


METHOD = Method(FUNCTION, run, {"seeds": perform})
