"""`intersects_with` of building models: pairs of elements by cells of space, each pair once.

A task for each model reads it and writes its tables; one finds out which elements are asked for
and divides space into cells; a task for each cell relates the elements that touch it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from spatialq.cluster.folder import CALLER
from spatialq.cluster.job import Job, given
from spatialq.cluster.method import Method
from spatialq.cluster.methods.clash_tasks import (
    file_of,
    write_cells,
    write_model,
    write_pairs,
    write_related,
)
from spatialq.cluster.task import Task, name_of
from spatialq.execution.frames import Fitted
from spatialq.execution.validation import is_finite
from spatialq.functions.catalogue import Function
from spatialq.io import georeference
from spatialq.udfs.intersects_with.cpu import MIN_TOLERANCE
from spatialq.workflows import clash

FUNCTION = "intersects_with"
MODELS, CELLS, RELATED = "models", "cells", "related"
OF_CELLS, OF_RELATED = "cells.parquet", "related.parquet"
MORE: dict[str, Any] = {
    "a": None,
    "b": None,
    "closer_than": None,
    "exclude_related": False,
    "geometry": "auto",
    "cell_elements": 4000,
}


def open_models(
    function: Function, paths: Sequence[str], options: Any, _: dict[str, Any]
) -> tuple[Fitted, str | None]:
    """Give the parameters as they are; models have no CRS."""
    return Fitted({}, options), None


def check(more: Mapping[str, Any], tile_size: float | None, options: Any) -> None:
    """Refuse options that cannot be used.

    Raises
    ------
    ValueError
        If there is one.
    """
    from spatialq.io.ifc.model import require_meshes

    gap, most = more["closer_than"], more["cell_elements"]
    wrong = ""
    if tile_size is not None:
        wrong = "tile_size is for points, cell_elements is the size of cells of models"
    elif options.relations:
        wrong = "relations is no option of a job, closer_than=0 gives pairs that only touch as well"
    elif gap is not None and not (is_finite(gap) and gap >= 0):
        wrong = f"closer_than must be a number of metres >= 0, got {gap!r}"
    elif not isinstance(most, int) or most < 1:
        wrong = f"cell_elements must be a whole number >= 1, got {most!r}"
    elif not isinstance(more["exclude_related"], bool):
        wrong = f"exclude_related must be true or false, got {more['exclude_related']!r}"
    if wrong:
        message = f"{CALLER}: {wrong}"
        raise ValueError(message)
    require_meshes(CALLER, more["geometry"])
    clash.require_sides(more["a"], more["b"])


def run(job: Job) -> None:
    """Relate the elements of all models."""
    paths, more = job.call.paths, job.call.more
    found = _read_models(job)
    places = [
        (f"'{path}'", facts["georeference"]) for path, facts in zip(paths, found, strict=True)
    ]
    georeference.require_same(clash.COMMAND, places)
    extents = [facts["extent"] for facts in found if facts["extent"] is not None]
    clash.warn_if_far_apart(extents, stacklevel=4)
    counts = [facts["elements"] for facts in found]
    all_models = {"models": f"{job.path(MODELS, '')}/", "first": np.cumsum([0, *counts]).tolist()}
    data = all_models | more | {"margin": _margin(job)}
    (divided,) = job.files(CELLS, [Task(OF_CELLS, name_of(write_cells), data)], 1)
    cells, related = job.path(CELLS, OF_CELLS), None
    if more["exclude_related"]:
        data = all_models | {"cells": cells}
        list(job.files(RELATED, [Task(OF_RELATED, name_of(write_related), data)], 1))
        related = job.path(RELATED, OF_RELATED)
    shared = {"models": all_models["models"], "cells": cells, "related": related}
    n = int(divided.facts["cells"])
    job.parts(_tasks(job, n, shared), n)


def _read_models(job: Job) -> list[dict[str, Any]]:
    """Have all models read, and give their facts in the order of the files."""
    paths = job.call.paths
    names = {file_of(k): k for k in range(len(paths))}
    geometry = job.call.more["geometry"]
    tasks = (
        Task(name, name_of(write_model), {"path": paths[k], "geometry": geometry})
        for name, k in names.items()
    )
    found: list[dict[str, Any]] = [{} for _ in paths]
    for done in job.files(MODELS, tasks, len(paths), job.is_unchanged):
        found[names[done.name]] = done.facts
    return found


def _tasks(job: Job, n: int, shared: Mapping[str, Any]) -> Iterator[Task]:
    """Give the task of each cell."""
    options = given(job.call.options)
    del options["relations"]
    data = {
        **shared,
        "within": job.call.more["b"] is None,
        "closer_than": job.call.more["closer_than"],
        "options": options | {"device": job.call.device},
    }
    for k in range(n):
        yield Task(f"{k:07}.parquet", name_of(write_pairs), data | {"cell": k})


def _margin(job: Job) -> float:
    """Give the distance, in metres, at which two elements may be a pair."""
    gap = job.call.more["closer_than"] or 0.0
    return float(max(job.call.options.tolerance, MIN_TOLERANCE, gap))


METHOD = Method(FUNCTION, run, kind="ifc", open=open_models, more=MORE, check=check)
