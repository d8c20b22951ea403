"""`plane_elements` in parts: planes as `detect_planes` finds them, then a sample of each.

A point of the sample is the nearest to the centre of its cell of all points of the plane, in
whichever core they are: each core gives its nearest, and one task the nearest of these.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.functions.stages import Columns, Part, PointAndElementWork, TaskResult
from spatialq.runtime import buffers

from ..detect_planes.stages import (
    AXES,
    Search,
    assign_planes,
    list_planes,
    search_of,
    search_planes,
)
from . import Options
from .match import match_sample
from .sample import Rasters, Sample, axes_of, extents_of


def plane_elements(work: PointAndElementWork[Options]) -> None:
    """Find the planes of all points, and the elements that they belong to."""
    search = search_of(work, label=True)
    points, searches, settled = search_planes(work, search)
    planes = work.once("planes", find_axes, search, searches)
    owners = work.each("owners", find_extents, points, searches[-1], settled, planes)
    rasters = work.once("rasters", lay_rasters, planes, owners)
    chosen = work.each("chosen", choose, points, owners, rasters)
    work.table("elements", match, work.options, search, searches, rasters, chosen, work.elements)


def find_axes(search: Search, searches: Sequence[TaskResult]) -> Columns:
    """Give the axes of each plane, and how many points it has."""
    planes = list_planes(search, searches)
    return {"axes": axes_of(planes), "counts": planes["point_count"]}


def find_extents(
    part: Part,
    points: TaskResult,
    search: TaskResult,
    settled: TaskResult | None,
    planes: TaskResult,
) -> Columns:
    """Give the planes of the points of a core, and how far these reach on their planes."""
    owner = assign_planes(part, points, search, settled)["plane_id"]
    here, owner = np.unique(np.append(owner, 0), return_inverse=True)
    here, owner = here[1:] - 1, owner[:-1].astype(np.int32)
    axes, counts = planes.arrays["axes"][here], np.bincount(owner, minlength=len(here) + 1)[1:]
    limits = extents_of(*_xyz(points), owner, axes, counts)
    return {"owner": owner, "planes": here, "counts": counts, "limits": limits}


def lay_rasters(planes: TaskResult, owners: Iterator[TaskResult]) -> Columns:
    """Lay a raster over each plane, as far as it reaches in all cores."""
    axes, counts = planes.arrays["axes"], planes.arrays["counts"]
    limits = np.tile([np.inf, -np.inf, np.inf, -np.inf], (len(axes), 1))
    for each in owners:
        here, found = each.arrays["planes"], each.arrays["limits"]
        limits[here, ::2] = np.minimum(limits[here, ::2], found[:, ::2])
        limits[here, 1::2] = np.maximum(limits[here, 1::2], found[:, 1::2])
    return vars(Rasters.over(axes, limits, counts))


def choose(_: Part, points: TaskResult, owners: TaskResult, rasters: TaskResult) -> Columns:
    """Choose the points of a core that are nearest to the centres of cells."""
    everywhere, here = Rasters(**rasters.arrays), owners.arrays["planes"]
    own = everywhere.take(here)
    gaps, chosen = own.choose(*_xyz(points), owners.arrays["owner"], owners.arrays["counts"])
    cells = np.flatnonzero(np.isfinite(gaps))
    # where the cells of a plane begin among those of all planes
    moved = np.repeat(everywhere.starts[here] - own.starts[:-1], np.diff(own.starts))
    return {"cells": cells + moved[cells], "gaps": gaps[cells], "points": chosen[cells]}


def match(
    options: Options,
    search: Search,
    searches: Sequence[TaskResult],
    rasters: TaskResult,
    chosen: Iterator[TaskResult],
    elements: TaskResult,
) -> Columns:
    """Match the planes with the elements, by the nearest points of all cores."""
    laid = Rasters(**rasters.arrays)
    points = buffers.full((laid.starts[-1], 3), np.nan)
    gaps = buffers.full(laid.starts[-1], np.inf)
    for each in chosen:
        cells, gap, point = (each.arrays[name] for name in ("cells", "gaps", "points"))
        is_nearer = gap < gaps[cells]
        ties = np.flatnonzero(gap == gaps[cells])
        is_nearer[ties] = _is_before(point[ties], points[cells[ties]])
        gaps[cells[is_nearer]], points[cells[is_nearer]] = gap[is_nearer], point[is_nearer]
    sample = Sample.on(laid, points, options.metres)
    planes = dict(list_planes(search, searches))
    return match_sample(sample, planes, Meshes.named(elements.arrays), options)


def _is_before(points: Any, others: Any) -> Any:
    """Whether points have a lower x than others, or else y, or else z."""
    (x, y, z), (p, q, r) = points.T, others.T
    return (x < p) | ((x == p) & ((y < q) | ((y == q) & (z < r))))


def _xyz(points: TaskResult) -> tuple[Any, Any, Any]:
    x, y, z = (points.arrays[axis] for axis in AXES)
    return x, y, z
