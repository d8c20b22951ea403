"""The stages from points to planes, on the device of the points: see README.md."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.runtime import progress

from . import assign
from .boundary import Rings
from .cells import BITS
from .explanation import Explanation
from .octree import Cube, PlanarNodes, fewest_of_node
from .search import NOISES, SUPPORT, search, without
from .surfaces import lay_rasters, lay_surfaces, near_planes

if TYPE_CHECKING:
    from . import Options

NEW = 0.5
"""At least this share of the points of a plane must be near no larger plane: a plane that cuts
through surfaces has hardly any points of its own, the second face of a wall has nearly all."""

SPREAD, WIDEST = 0.4, 2.0
"""Where the root mean square distance of the points of a plane is more than SPREAD of the maximum
distance, the plane is bent, or its noise differs from place to place. The maximum distance then
becomes NOISES times the distance of these points, but at most WIDEST times what it was, so that the
plane does not take the points beside it. Noise like that of the nodes gives 1/3 here; points that
are spread evenly give 0.58."""

MIN_POINTS_OF_LOOSE, LOOSE_SPREAD = 500, 0.45
"""A plane with fewer points is dropped if their root mean square distance is at least LOOSE_SPREAD
of the maximum distance: halfway between noise and an even spread, they do not gather about the
plane. Planes with more points are large enough to be bent instead."""


EXPLAINING = {"plane_nodes", "plane_peaks"}
"""Outputs that say how a search went."""

COLUMNS = (
    "plane_id", "nx", "ny", "nz", "d", "votes", "point_count", "cx", "cy", "cz", "rmse", "area",
    "orientation", "boundary",
)  # fmt: skip

KINDS = {"plane_id": np.int64, "point_count": np.int64, "orientation": np.int8, "boundary": object}
"""Types of the columns that are not float64."""


@dataclass(frozen=True)
class Detection:
    """Planes, the plane of each point, and the nodes of the octree."""

    columns: dict[str, Any]
    """The columns of the result of `detect_planes`."""
    owner: Any
    """int32[n]: plane_id of each point, 0 for none; None if not asked for."""
    distance: Any
    """float64[n]: from the plane, along its normal; NaN for none."""
    nodes: Any
    """The columns of the result of `plane_nodes`; None if not asked for."""
    peaks: Any
    """The columns of the result of `plane_peaks`; None if not asked for."""


def detect(
    cloud: Any, cube: Cube, options: "Options", *, label: bool, explain: bool = False
) -> Detection:
    """Find the planes of a cloud.

    With `label` also the plane of each point, with `explain` the nodes and peaks.
    """
    explanation = Explanation(cloud.size, wanted=explain)
    if not (0 < cube.side < np.inf and np.isfinite(cube.scale)):
        return _nothing(cloud, explanation, cube, label=label)
    # no surface of so small a cloud has enough points, see below: as of many a group of GROUP BY
    fewest = options.min_points or SUPPORT * fewest_of_node(options, cloud.size)
    if cloud.size < fewest and not explain:
        return _nothing(cloud, explanation, cube, label=label)
    nodes, owner, planes = search(cloud, cube, options, explanation)
    progress.stage("extents of planes", 0.8)
    widest = WIDEST if options.max_distance is None and nodes.noise is None else 1.0
    most = np.inf if options.max_rmse is None else options.max_rmse * cube.scale
    while len(planes) > 0:
        near = near_planes(nodes, owner, planes)
        rasters = lay_rasters(nodes, owner, planes, near)
        covered, sums = cloud.cover(near, rasters, planes)
        spread = np.sqrt(sums[:, 5] / np.maximum(sums[:, 0], 1)) / assign.NEAR
        own = (sums[:, 1] >= NEW * sums[:, 0]) & (spread * planes[:, 4] <= most)
        if options.max_distance is None:
            own &= (sums[:, 0] >= MIN_POINTS_OF_LOOSE) | (spread < LOOSE_SPREAD)
        wider = np.where(spread > SPREAD, np.minimum(NOISES * spread, widest), 1.0)
        if own.all() and np.all(wider == 1.0):
            break
        # the others cut through surfaces: their points are those of larger planes, or clutter
        planes[:, 4] *= wider
        owner, planes = without(owner, planes, own)
        widest = 1.0  # twice would be the distance of other surfaces
    if len(planes) == 0:
        explanation.leave(nodes, owner)
        return _nothing(cloud, explanation, cube, label=label)
    planes[:, 3] += _mean_distance(sums, planes[:, 4])
    min_points = _min_points(nodes, owner, len(planes))
    surfaces = lay_surfaces(
        cloud, rasters, covered, sums[:, 0], min_points, split=options.split,
        edges=options.outline == "convex",
    )  # fmt: skip
    progress.stage("points of planes", 1.0)
    sums, farthest, owners, distances = cloud.settle(near, rasters, planes, surfaces, label=label)
    beneath = surfaces.beneath(cloud, rasters, nodes, owner)
    weights = np.bincount(beneath, nodes.weights(cloud.size), len(sums) + 1)[1:]
    rmse = np.sqrt(sums[:, 5] / np.maximum(sums[:, 0], 1)) * planes[surfaces.plane, 4] / assign.NEAR
    enough = sums[:, 0] >= (options.min_points or min_points[surfaces.plane])
    keep = np.flatnonzero(enough & (rmse <= most))
    order = keep[np.lexsort((keep, -sums[keep, 0], -weights[keep]))]
    outlines = surfaces.outlines(cloud, rasters)
    columns = _columns(
        cube, rasters, planes, surfaces, sums, farthest, weights, outlines, options, order
    )
    ids = np.zeros(len(sums) + 1, np.int64)
    ids[order + 1] = np.arange(1, order.size + 1)
    if label:
        owners, distances = cloud.name(owners, distances, ids, cube.side / 2**BITS)
    explanation.settle(nodes, owner, ids[beneath])
    return Detection(
        columns, owners, distances, explanation.columns(cube), explanation.peaks(cube)
    )  # fmt: skip


def _min_points(nodes: PlanarNodes, owner: Any, n_planes: int) -> Any:
    """Minimum number of points of each plane, from its nodes."""
    least = np.full(n_planes, np.inf)
    np.minimum.at(least, owner[owner >= 0], SUPPORT * nodes.min_points[owner >= 0])
    return least


def _mean_distance(sums: Any, limits: Any) -> Any:
    return sums[:, 4] / np.maximum(sums[:, 0], 1) * (limits / assign.NEAR)


def _columns(
    cube: Cube, rasters: Any, planes: Any, surfaces: Any, sums: Any, farthest: Any, weights: Any,
    outlines: Rings, options: "Options", order: Any,
) -> dict[str, Any]:  # fmt: skip
    """Describe the surfaces in the given order, in the coordinates of the cloud."""
    step = cube.side / 2**BITS
    sums, plane = sums[order], surfaces.plane[order]
    counts, unit = sums[:, 0], planes[plane, 4] / assign.NEAR * step
    normals = planes[plane, :3]
    # coordinates were rounded down to whole units of 1/PART step
    places = (sums[:, 1:4] / counts[:, None] + 0.5) / assign.PART
    centres = np.array(cube.low) + places * step
    offsets = (normals * np.array(cube.low)).sum(1) + planes[plane, 3] * step
    vertical = np.abs(normals[:, 2])
    tolerance = np.radians(options.orientation_tolerance)
    level, steep = vertical >= np.cos(tolerance), vertical <= np.sin(tolerance)
    pixels = outlines.areas(len(surfaces.plane))[order]
    rings = outlines
    if options.outline == "convex":
        rings = Rings.convex(farthest, rasters.starts[surfaces.plane, 2])
    return {
        "plane_id": np.arange(1, order.size + 1),
        **dict(zip(("nx", "ny", "nz"), np.ascontiguousarray(normals.T), strict=True)),
        "d": offsets,
        "votes": weights[order],
        "point_count": counts,
        **dict(zip(("cx", "cy", "cz"), np.ascontiguousarray(centres.T), strict=True)),
        "rmse": np.sqrt(sums[:, 5] / counts) * unit,
        "area": pixels * (step / rasters.frames[plane, 8]) ** 2,
        "orientation": np.where(level, 0, np.where(steep, 1, 2)).astype(np.int8),
        "boundary": _boundaries(rings, cube, rasters, planes, surfaces)[order],
    }


def _boundaries(rings: Rings, cube: Cube, rasters: Any, planes: Any, surfaces: Any) -> Any:
    """Write the boundaries of surfaces, in the coordinates of the cloud: object[surfaces]."""
    step, low = cube.side / 2**BITS, np.array(cube.low)
    plane = surfaces.plane[np.repeat(rings.surface, np.diff(rings.starts))]
    normals = planes[plane, :3]
    offsets = (normals * low).sum(1) + planes[plane, 3] * step
    places = low + rasters.place(plane, rings.vertices) * step
    places -= ((places * normals).sum(1) - offsets)[:, None] * normals
    boundaries = np.empty(len(surfaces.plane), object)
    for surface, polygon in rings.written(places).items():
        boundaries[surface] = polygon
    return boundaries


def _nothing(cloud: Any, explanation: Explanation, cube: Cube, *, label: bool) -> Detection:
    explained = explanation.columns(cube), explanation.peaks(cube)
    columns: dict[str, Any] = dict.fromkeys(COLUMNS, np.empty(0))
    for name, kind in KINDS.items():
        columns[name] = np.empty(0, kind)
    if not label:
        return Detection(columns, None, None, *explained)
    owner, distance = cloud.full(cloud.size, 0, np.int64), cloud.full(cloud.size, np.nan)
    return Detection(columns, owner, distance, *explained)
