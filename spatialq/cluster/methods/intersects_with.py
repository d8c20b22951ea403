"""`intersects_with` and `distance` of models: pairs of elements by cells of space, each pair once.

A task for each model reads it and writes its tables; one finds out which elements are asked for
and divides space into cells; a task for each cell relates the elements that touch it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from spatialq.cluster.folder import CALLER
from spatialq.cluster.job import Job, given
from spatialq.cluster.method import Method
from spatialq.cluster.methods.clash_tasks import (
    CLASHES,
    file_of,
    write_cells,
    write_model,
    write_pairs,
    write_related,
)
from spatialq.cluster.models import MODELS, read_models
from spatialq.cluster.task import Task, name_of
from spatialq.database.connection import connect_quietly
from spatialq.database.element_sets import RELATED as RELATED_RULES
from spatialq.database.element_sets import RULES, rules_of
from spatialq.execution.units import Fitted
from spatialq.execution.validation import is_finite
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Parameters
from spatialq.functions.sql_text import literal
from spatialq.udfs.distance import Options as DistanceOptions
from spatialq.udfs.intersects_with import Options as ClashOptions
from spatialq.udfs.intersects_with.cpu import MIN_TOLERANCE
from spatialq.workflows import clash, clash_models

DISTANCES = "distance"
CELLS, RELATED = "cells", "related"
OF_CELLS, OF_RELATED = "cells.parquet", "related.parquet"
MORE: dict[str, Any] = {
    "a": None,
    "b": None,
    "exclude": "none",
    "geometry": "auto",
    "cell_elements": 4000,
}
KNOWN = {CLASHES: RULES, DISTANCES: RELATED_RULES}
"""Rules that exclude pairs: a distance says nothing of duplicates."""
PAIRS = """
FROM distance('clash_a', {b}, max_distance := {max_distance}, device := {device})
"""


def open_models(
    function: Function, paths: Sequence[str], options: Parameters, _: dict[str, Any]
) -> tuple[Fitted, str | None]:
    """Give the parameters as they are; models have no CRS."""
    return Fitted({}, options), None


def check_clashes(
    more: Mapping[str, Any], tile_size: float | None, options: ClashOptions, *_: Any
) -> None:
    """Refuse options of clashes that cannot be used.

    Raises
    ------
    ValueError
        If there is one.
    """
    gap = more["closer_than"]
    if options.relations:
        _refuse("relations is no option of a job, closer_than=0 gives pairs that touch as well")
    if gap is not None and not (is_finite(gap) and gap >= 0):
        _refuse(f"closer_than must be a number of metres >= 0, got {gap!r}")
    _check(CLASHES, more, tile_size)


def check_distances(
    more: Mapping[str, Any], tile_size: float | None, options: DistanceOptions, *_: Any
) -> None:
    """Refuse options of distances that cannot be used.

    Raises
    ------
    ValueError
        If there is one.
    """
    if options.max_distance is None:
        _refuse("max_distance must be a number of metres: a job looks for pairs near each other")
    if options.k is not None:
        _refuse(f"k is no option of a job, whose tasks see no element far away, got {options.k}")
    _check(DISTANCES, more, tile_size)


def _check(function: str, more: Mapping[str, Any], tile_size: float | None) -> None:
    from spatialq.io.ifc.model import require_meshes

    most = more["cell_elements"]
    if tile_size is not None:
        _refuse("tile_size is for points, cell_elements is the size of cells of models")
    if not isinstance(most, int) or most < 1:
        _refuse(f"cell_elements must be a whole number >= 1, got {most!r}")
    rules_of(CALLER, more["exclude"], KNOWN[function])
    require_meshes(CALLER, more["geometry"])
    with connect_quietly() as con:
        clash.require_sides(con, more["a"], more["b"])


def _refuse(reason: str) -> NoReturn:
    message = f"{CALLER}: {reason}"
    raise ValueError(message)


def run(job: Job) -> None:
    """Relate the elements of all models."""
    call = job.call
    # errors about models begin with the command, where there is one
    caller = clash_models.COMMAND if call.function == CLASHES else call.function
    more, found = call.more, read_models(job, caller, call.paths, write_model, file_of)
    extents = [facts["extent"] for facts in found if facts["extent"] is not None]
    clash_models.warn_if_far_apart(extents, stacklevel=4)
    counts = [facts["elements"] for facts in found]
    all_models = {"models": f"{job.path(MODELS, '')}/", "first": np.cumsum([0, *counts]).tolist()}
    size = sum(facts["mesh_bytes"] for facts in found)
    data = all_models | more | {"margin": _margin(job), "function": call.function}
    data |= {"mesh_bytes": size}
    (divided,) = job.files(CELLS, [Task(OF_CELLS, name_of(write_cells), data)], 1)
    cells, related = job.path(CELLS, OF_CELLS), None
    rules = rules_of(CALLER, more["exclude"], KNOWN[call.function])
    if rules:
        data = all_models | {"cells": cells, "rules": rules}
        list(job.files(RELATED, [Task(OF_RELATED, name_of(write_related), data)], 1))
        related = job.path(RELATED, OF_RELATED)
    shared = {"models": all_models["models"], "cells": cells, "related": related, "rules": rules}
    n, left_out = int(divided.facts["cells"]), Counter[str]()
    job.parts(
        _tasks(job, n, shared), n, note=lambda done: left_out.update(done.facts.get("left_out", {}))
    )
    if rules and call.function == CLASHES:
        job.say(left_out=dict(left_out.most_common()))


def _tasks(job: Job, n: int, shared: Mapping[str, Any]) -> Iterator[Task]:
    """Give the task of each cell."""
    data = {**shared, "function": job.call.function, "pairs": _pairs(job)}
    for k in range(n):
        yield Task(f"{k:07}.parquet", name_of(write_pairs), data | {"cell": k})


def _pairs(job: Job) -> str:
    """Write the query for the pairs of a cell, by the numbers of their elements."""
    call, within = job.call, job.call.more["b"] is None
    if call.function == DISTANCES:
        return PAIRS.format(
            b="NULL" if within else "'clash_b'",
            max_distance=call.options.max_distance,
            device=literal(call.device),
        )
    options = given(call.options) | {"device": call.device}
    del options["relations"]
    return clash.pairs_sql(options, within_a=within, closer_than=call.more["closer_than"])


def _margin(job: Job) -> float:
    """Give the distance, in metres, at which two elements may be a pair."""
    options = job.call.options
    if job.call.function == DISTANCES:
        return float(options.max_distance)
    return float(max(options.tolerance, MIN_TOLERANCE, job.call.more["closer_than"] or 0.0))


METHODS = (
    Method(
        CLASHES,
        run,
        kind="ifc",
        open=open_models,
        more=MORE | {"closer_than": None},
        check=check_clashes,
    ),
    Method(DISTANCES, run, kind="ifc", open=open_models, more=MORE, check=check_distances),
)
"""Those of both functions, whose tasks differ in the pairs that they look for."""
