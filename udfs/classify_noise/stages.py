"""`classify_noise` in parts: neighbours of each core, and a limit from sums of all cores."""

from collections.abc import Iterator
from math import inf

import numpy as np

from spatialq.functions.neighbour_stages import (
    CoreSearch,
    NearestSearch,
    far_lists,
    lists_of,
    search_cores,
)
from spatialq.functions.stages import Columns, Part, PointWork, TaskResult
from spatialq.functions.stray_stages import POINT, find_strays
from spatialq.geometry.neighbours import NeighbourLists
from spatialq.runtime import buffers
from spatialq.runtime.arrays import Bytes, Floats

from . import Options
from .cpu import low_or_high, mean_distance
from .limit import limit_of, total_of

KEPT = ("point_id", "x", "y", "classification")
STRAY = "stray_"
"""How names of arrays begin that have the stray points of a core."""
VOXELS = 2.001
"""The 27 voxels around a point end no farther away; their number is a rounded quotient."""


def classify_noise(work: PointWork[Options]) -> None:
    """Find the noise of all cores."""
    options = work.options
    if not work.cloud.size:
        return
    strays, cloud = find_strays(work)
    isolated = options.method == "isolated"
    halo = VOXELS * options.voxel_size if isolated else 0.0
    search = NearestSearch.of(cloud, options.mean_k + 1, halo)
    found, far = search_cores(work, measure, search, options, strays=strays)
    limit = 0.0

    def total(centre: float, power: int) -> int:
        sums = work.each(f"sums-{power}", add, found, far, options, centre, power)
        whole: int = work.once(f"total-{power}", add_all, sums).facts["total"]
        return whole

    if not isolated:
        limit = limit_of(cloud.size, options.multiplier, total) if cloud.size > 1 else inf
    work.rows(classify, found, far, options, limit)


def measure(
    part: Part, search: NearestSearch, strays: TaskResult | None, options: Options
) -> Columns:
    """Measure how far the points of a core are from their neighbours.

    Points that are isolated are infinitely far; where these are sought for, all others are at 0.
    """
    core = CoreSearch(part, search, strays)
    near, tree, n = core.near, core.tree, core.own["x"].size
    if isolated := options.method == "isolated":
        alone = near.alone(options.voxel_size, options.max_points)
        tree = alone[np.isin(alone, tree, assume_unique=True)]
    places, queries = core.places(tree), near.points[tree]
    distance, level = buffers.zeros(n), buffers.zeros(n, np.uint8)
    if isolated:
        distance[places] = inf

    def look(some: NeighbourLists) -> None:
        if not isolated:
            mean_distance(some, places, distance)
        low_or_high(some, 1, queries, near.xyz[2], places, level)

    far = core.search(tree, look)
    own = {name: core.own[name] for name in KEPT}
    stray = {f"{STRAY}{name}": values for name, values in core.strays.items()}
    return {**own, "distance": distance, "level": level, **stray, **far}


def add(
    part: Part,
    found: TaskResult,
    far: TaskResult | None,
    options: Options,
    centre: float,
    power: int,
) -> TaskResult:
    """Add up powers of how far the distances of a core are from a centre."""
    return TaskResult({}, {"total": total_of(_whole(found, far, options)[0], centre, power)})


def add_all(sums: Iterator[TaskResult]) -> TaskResult:
    """Add up the sums of all cores."""
    return TaskResult({}, {"total": sum(each.facts["total"] for each in sums)})


def classify(
    part: Part, found: TaskResult, far: TaskResult | None, options: Options, limit: float
) -> Columns:
    """Give the points of a core with their classes."""
    distance, level = _whole(found, far, options)
    rows = {name: found.arrays[name] for name in KEPT}
    rows["classification"] = np.where(distance > limit, level, rows["classification"])
    strays = {name: found.arrays[f"{STRAY}{name}"] for name in {*KEPT, *POINT}}
    if far is None or not strays["x"].size:
        return rows
    strays["classification"] = level = buffers.zeros(strays["x"].size, np.uint8)
    xyz, queries, some = lists_of(strays, far, options.mean_k)
    low_or_high(some, 0, queries, xyz[2], np.arange(level.size), level)
    return {name: np.concatenate([values, strays[name]]) for name, values in rows.items()}


def _whole(found: TaskResult, far: TaskResult | None, options: Options) -> tuple[Floats, Bytes]:
    """Give distances and classes of noise of a core, those of far points included."""
    distance, level = found.arrays["distance"], found.arrays["level"]
    if lists := far_lists(found, far):
        xyz, queries, places, some = lists
        if options.method == "statistical":
            mean_distance(some, places, distance)
        low_or_high(some, 1, queries, xyz[2], places, level)
    return distance, level
