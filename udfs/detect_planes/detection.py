"""The stages from points to planes, on the device of the points: see README.md."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.runtime import progress

from . import assign
from .accumulator import BEYOND, RADIUS, ball
from .boundary import Rings
from .cells import BITS
from .explanation import Explanation
from .groups import EXPLAINED, FREE, group, unite
from .octree import (
    MIN_S_MS,
    Cube,
    PlanarNodes,
    faces_down,
    layers,
    planar_nodes,
    weighted_median,
)
from .surfaces import lay_rasters, lay_surfaces, near_planes

if TYPE_CHECKING:
    from . import Options

NOISES = 3.0
"""Maximum distance of a point from its plane, in standard deviations, without max_distance."""

MIN_NODES = 3
"""Minimum number of nodes of a plane."""

ROUGH = 3.0
"""A node may be this many times as thick as the node of the median point."""

MAX_SEARCHES = 5
"""Maximum number of repeated searches in the points that no plane explains."""

OWN = 0.8
"""A plane must be the nearest plane to at least this share of its nodes' points."""

SUPPORT = 3
"""Points that a plane needs without min_points, as a multiple of the points of a minimal node."""

RHO_STEPS = 100, 1000
"""Minimum and maximum number of steps of rho, without rho_num."""

MIN_DISTANCE = 2.0
"""Lower bound of the maximum distance of points from a plane, in steps."""

ROOT = float(1 << (BITS - 1))
"""Half the side of the root cube, in steps."""


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
    nodes: dict[str, Any]
    """The columns of the result of `plane_nodes`; without rows if not asked for."""


def detect(
    cloud: Any, cube: Cube, options: "Options", *, label: bool, explain: bool = False
) -> Detection:
    """Find the planes of a cloud, the plane of each point if `label`, the nodes if `explain`."""
    explanation = Explanation(cloud.size, wanted=explain)
    if not (0 < cube.side < np.inf and np.isfinite(cube.scale)):
        return _nothing(cloud, explanation.columns(cube), label=label)
    progress.stage("nodes", 0.3)
    nodes = planar_nodes(cloud, options, 0, cloud.size)
    progress.stage("planes", 0.4)
    nodes = explanation.keep(nodes, ~layers(nodes), "layer")
    noise = _noise(nodes)
    nodes = explanation.keep(nodes, _sound(nodes, noise), "thick")
    owner, planes = _grouped(cloud, nodes, cube, options)
    rest, wide = cloud, 0
    for search in range(MAX_SEARCHES):
        progress.stage("points without a plane", 0.4 + 0.3 * (search + 1) / MAX_SEARCHES)
        rest = rest.rest(near_planes(nodes, owner, planes), planes)
        if rest.size < MIN_S_MS * MIN_NODES:
            break
        if search == MAX_SEARCHES - 1:
            wide = 1
        more = planar_nodes(rest, options, wide, cloud.size)
        more = explanation.keep(more, ~layers(more), "layer")
        more = explanation.keep(more, _sound(more, noise), "thick")
        explanation.leave(nodes, owner)
        kept = owner >= 0
        nodes = nodes.join(kept, more)
        owner, planes = _grouped(cloud, nodes, cube, options)
        if wide == 1:
            break
        # walls close together are found one after the other; what is left then may be rough
        wide = 0 if np.any(owner[np.count_nonzero(kept) :] >= 0) else 1
    progress.stage("extents of planes", 0.8)
    while len(planes) > 0:
        near = near_planes(nodes, owner, planes)
        rasters = lay_rasters(nodes, owner, planes, near)
        covered, sums = cloud.cover(near, rasters, planes)
        of_nodes = np.bincount(owner[owner >= 0], nodes.count[owner >= 0], len(planes))
        own = sums[:, 0] >= OWN * of_nodes
        if own.all():
            break
        # the others consist of edges: most points of their nodes are nearer to other planes
        owner, planes = _without(owner, planes, own)
    if len(planes) == 0:
        explanation.leave(nodes, owner)
        return _nothing(cloud, explanation.columns(cube), label=label)
    planes[:, 3] += _mean_distance(sums, planes[:, 4])
    min_points = np.full(len(planes), np.inf)
    np.minimum.at(min_points, owner[owner >= 0], SUPPORT * nodes.min_points[owner >= 0])
    surfaces = lay_surfaces(cloud, rasters, covered, sums[:, 0], min_points, split=options.split)
    progress.stage("points of planes", 1.0)
    sums, farthest, owners, distances = cloud.settle(near, rasters, planes, surfaces, label=label)
    beneath = surfaces.beneath(cloud, rasters, nodes, owner)
    weights = np.bincount(beneath, nodes.weights(cloud.size), len(sums) + 1)[1:]
    keep = np.flatnonzero(sums[:, 0] >= (options.min_points or min_points[surfaces.plane]))
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
    return Detection(columns, owners, distances, explanation.columns(cube))


def _noise(nodes: PlanarNodes) -> float:
    """Give the variance across the node of the median point."""
    return weighted_median(nodes.values[:, 0], nodes.count)


def _sound(nodes: PlanarNodes, noise: float) -> Any:
    """Tell which nodes are not thicker than noise explains; a node of two walls is thicker."""
    return nodes.values[:, 0] <= max(ROUGH * ROUGH * noise, (MIN_DISTANCE / ROOT) ** 2)


def _grouped(cloud: Any, nodes: PlanarNodes, cube: Cube, options: "Options") -> tuple[Any, Any]:
    """Vote, find the peaks, and assign nodes to planes; the most representative plane is first.

    Returns
    -------
    owner : int32[nodes]
    planes : float64[planes, 5]
        Normal, offset and maximum distance, in steps from the minimum corner of the cube.
    """
    around = ball(options.phi_num)
    means = nodes.mean - nodes.centroid
    farthest = float(np.sqrt((means * means).sum(1).max(initial=0.0)))
    noise = float(np.sqrt(np.median(nodes.values[:, 0]))) if len(nodes) else 0.0
    rho_num = options.rho_num
    if rho_num is None:
        low, high = RHO_STEPS
        rho_num = high if noise == 0 else int(min(max(farthest / (NOISES * noise), low), high))
    rho_step = (farthest or 1.0) / rho_num
    shape = len(around.directions), rho_num + BEYOND + RADIUS
    weights = nodes.weights(cloud.size)
    # a node that contains more than its plane is thick and gets a lower weight
    precisions = nodes.count / (nodes.values[:, 0] + 0.5 * noise * noise + 1 / ROOT**2)
    shares = nodes.count / (options.min_points or SUPPORT * nodes.min_points)
    owner, planes = np.full(len(nodes), FREE, np.int32), np.empty((0, 5))
    while True:  # a large peak suppresses those beside it, which therefore vote again without it
        free = np.flatnonzero(owner == FREE)
        places, votes = cloud.peaks(
            nodes.join(owner == FREE), means[free], weights[free], around, rho_step, shape,
            options.kernel, cube.half,
        )  # fmt: skip
        order = np.lexsort((places, -votes))
        at, rhos = np.divmod(places[order], shape[1])
        before, planes = len(planes), np.vstack([planes, np.empty((at.size, 5))])
        n = group(
            np.ascontiguousarray(around.directions[at]), (rhos - BEYOND) * rho_step,
            nodes.count, precisions, means, nodes.covariance, nodes.values, nodes.vectors,
            around.step, rho_step, max(noise, 1 / ROOT), shares, MIN_NODES, before, owner,
            planes,
        )  # fmt: skip
        planes = planes[:n]
        if n == before:
            break
    unite(
        around.step, max(noise, 1 / ROOT), precisions, means, nodes.covariance, owner, planes
    )  # fmt: skip
    has = np.bincount(owner[owner >= 0], minlength=len(planes)) > 0
    owner, planes = _without(owner, planes, has)
    planes[faces_down(planes), :4] *= -1
    planes += 0.0  # no -0
    return owner, _in_steps(nodes, planes, cube, options)


def _without(owner: Any, planes: Any, kept: Any) -> tuple[Any, Any]:
    """Remove the planes that are not kept; their nodes become free."""
    renamed = np.append(np.where(kept, np.cumsum(kept) - 1, FREE), [EXPLAINED, FREE])
    return renamed[owner].astype(np.int32), planes[kept]


def _in_steps(nodes: PlanarNodes, planes: Any, cube: Cube, options: "Options") -> Any:
    """Give normals, offsets and maximum distances of planes in steps from the minimum corner."""
    normals = planes[:, :3]
    offsets = (planes[:, 3] + (normals * (nodes.centroid + 1.0)).sum(1)) * ROOT
    if options.max_distance is None:
        limits = NOISES * np.sqrt(planes[:, 4]) * ROOT
    else:
        limits = np.full(len(planes), min(options.max_distance * cube.scale, 4 * ROOT))
    # the points of an exactly flat plane differ from it by rounding only
    return np.column_stack([normals, offsets, np.maximum(limits, MIN_DISTANCE)])


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
    upright = np.abs(normals[:, 2])
    tolerance = np.radians(options.orientation_tolerance)
    level, steep = upright >= np.cos(tolerance), upright <= np.sin(tolerance)
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


def _nothing(cloud: Any, nodes: dict[str, Any], *, label: bool) -> Detection:
    columns: dict[str, Any] = dict.fromkeys(COLUMNS, np.empty(0))
    for name, kind in KINDS.items():
        columns[name] = np.empty(0, kind)
    if not label:
        return Detection(columns, None, None, nodes)
    xp = cloud.xp
    return Detection(
        columns,
        xp.zeros(cloud.size, np.int64),
        xp.full(cloud.size, np.nan),
        nodes,
    )
