"""The search for planes: octrees of the points that no plane explains, votes, groups of nodes."""

from typing import Any

import numpy as np

from spatialq.runtime import progress

from . import Options, groups
from .accumulator import BEYOND, RADIUS, ball
from .cells import BITS
from .explanation import Explanation
from .groups import EXPLAINED, FREE
from .nodes import LAYERS
from .octree import (
    MIN_S_MS,
    Cube,
    PlanarNodes,
    faces_down,
    planar_nodes,
    stairs,
    two_layers,
    weighted_median,
)
from .surfaces import near_planes
from .votes import ONE, PAPER_ONE, SMOOTHED

NOISES = 3.0
"""Maximum distance of a point from its plane, in standard deviations, without max_distance: within
it are 99.7 % of the points of a plane with Gaussian noise."""

MIN_NODES = 3
"""Minimum number of nodes of a plane; a node counts as many times as parts of it were tested. Two
nodes that agree by chance are frequent, three are rare."""

ROUGH = 3.0
"""A node may be this many times as thick as the node of the median point: noise that
varies over a scan remains, and most nodes that contain two walls are thicker. Where the noise of
the cloud is known and less, it is used instead."""

MAX_SEARCHES = 5
"""Maximum number of repeated searches in the points that no plane explains. Each costs a pass
over them, and finds walls that are close to those found before: few are close to several."""

LEFT = 0.98
"""The last search follows if the planes that were found left this share of the points: those
that remain are clutter, or rough."""

LAST_ROUND = 0.05
"""Nodes vote again unless the last round added no more than this share of all planes: what a
large peak hides, the next search finds as well."""

SUPPORT = 3
"""Points that a plane needs without min_points, as a multiple of the points of a minimal node: see
MIN_NODES."""

RHO_STEPS = 100, 1000
"""Minimum and maximum number of steps of rho, without rho_num: peaks of walls remain apart,
and the accumulator has some megabytes with the default phi_num."""

MIN_DISTANCE = 2.0
"""Lower bound of the maximum distance of points from a plane, in steps: rounding moves a point by
less than two."""

ROOT = float(1 << (BITS - 1))
"""Half the side of the root cube, in steps."""


def search(
    cloud: Any, cube: Cube, options: Options, explanation: Explanation
) -> tuple[PlanarNodes, Any, Any]:
    """Find the planes of a cloud.

    Returns
    -------
    nodes : PlanarNodes
    owner : int32[nodes]
        Plane of each node, if >= 0.
    planes : float64[planes, 5]
        Normal, offset and maximum distance, in steps from the minimum corner of the cube; the plane
        whose nodes have the most points is first.
    """
    progress.stage("nodes", 0.3)
    nodes = _without_stairs(planar_nodes(cloud, options, 0, cloud.size), explanation)
    single = nodes.parts < LAYERS
    noise = weighted_median(nodes.values[single, 0], nodes.count[single])
    noise = min(noise, (deviation(nodes, cube, options) / ROOT) ** 2)
    nodes = _sound(cloud, nodes, noise, options, explanation)
    progress.stage("planes", 0.4)
    owner, planes = _group(
        cloud, nodes, _none(nodes), np.empty((0, 5)), cube, options, explanation
    )  # fmt: skip
    rest, wide = cloud, 0
    for turn in range(1, MAX_SEARCHES + 1):
        progress.stage("points without a plane", 0.4 + 0.3 * turn / MAX_SEARCHES)
        steps = in_steps(nodes, planes, cube, options)
        before, rest = rest.size, rest.rest(near_planes(nodes, owner, steps), steps)
        if rest.size < MIN_S_MS * MIN_NODES:
            break
        if turn == MAX_SEARCHES or rest.size > LEFT * before:
            wide = 1
        more = _without_stairs(planar_nodes(rest, options, wide, cloud.size), explanation)
        more = _sound(rest, more, noise, options, explanation)
        explanation.leave(nodes, owner)
        kept = owner >= 0
        nodes, owner = nodes.join(kept, more), np.concatenate([owner[kept], _none(more)])
        owner, planes = _group(cloud, nodes, owner, planes, cube, options, explanation)
        if wide == 1:
            break
        # walls close together are found one after the other; what is left then may be rough
        wide = 0 if np.any(owner[np.count_nonzero(kept) :] >= 0) else 1
    planes[faces_down(planes[:, :3]), :4] *= -1
    planes += 0.0  # no -0
    return nodes, owner, in_steps(nodes, planes, cube, options)


def _none(nodes: PlanarNodes) -> Any:
    return np.full(len(nodes), FREE, np.int32)


def _without_stairs(nodes: PlanarNodes, explanation: Explanation) -> PlanarNodes:
    return explanation.keep(nodes, ~stairs(nodes), "stair")


def _sound(
    cloud: Any, nodes: PlanarNodes, noise: float, options: Options, explanation: Explanation
) -> PlanarNodes:
    """Leave out nodes that are thicker than noise explains, but for their layers."""
    limit = max(ROUGH * ROUGH * noise, (MIN_DISTANCE / ROOT) ** 2)
    single, thin = nodes.parts < LAYERS, nodes.values[:, 0] <= limit
    layers = two_layers(cloud, nodes, ~(single & thin), options)
    kept = explanation.keep(nodes.join(single), thin[single], "thick")
    return kept.join(np.ones(len(kept), np.bool_), layers.join(layers.values[:, 0] <= limit))


def _group(
    cloud: Any, nodes: PlanarNodes, owner: Any, planes: Any, cube: Cube, options: Options,
    explanation: Explanation,
) -> tuple[Any, Any]:  # fmt: skip
    """Add free nodes to planes, let the others vote, and make planes of those that agree.

    Parameters
    ----------
    owner, planes
        What was found before. Planes are relative to the centroid, in half sides of the root:
        normal, offset, variance across.

    Returns
    -------
    owner, planes
        The plane whose nodes have the most points is first.
    """
    around = ball(options.phi_num)
    means, normals = nodes.mean - nodes.centroid, np.ascontiguousarray(nodes.vectors[:, 0])
    variances = np.ascontiguousarray(nodes.values[:, 0])
    farthest = float(np.sqrt((means * means).sum(1).max(initial=0.0)))
    noise = float(np.sqrt(np.median(variances))) if len(nodes) else 0.0
    min_offset = max(noise, 1 / ROOT)
    rho_num = options.rho_num
    if rho_num is None:
        low, high = RHO_STEPS
        rho_num = high if noise == 0 else int(min(max(farthest / (NOISES * noise), low), high))
    rho_step = (farthest or 1.0) / rho_num
    shape = len(around.directions), rho_num + BEYOND + RADIUS
    weights = nodes.weights(cloud.size)
    # a node that contains more than its plane is thick and gets a lower weight
    precisions = nodes.count / (variances + 0.5 * noise * noise + 1 / ROOT**2)
    shares = nodes.count / (options.min_points or SUPPORT * nodes.min_points)
    tilts = groups.NOISES * np.sqrt(variances / (nodes.count * nodes.values[:, 1]))
    reaches = np.maximum(groups.NOISES * np.sqrt(variances), min_offset)
    bend = groups.WAVES if nodes.noise is None else groups.BEND
    groups.join(
        around.step, tilts, reaches, precisions, means, nodes.covariance, normals, owner, planes
    )  # fmt: skip
    one = ONE if options.kernel == "tangent" else PAPER_ONE
    tried = np.zeros(len(nodes), np.bool_)
    while True:  # a large peak suppresses those beside it, which therefore vote again without it
        free = owner == FREE
        places, votes = cloud.peaks(
            nodes.join(free), means[free], weights[free], around, rho_step, shape, options.kernel,
            cube.half,
        )  # fmt: skip
        order = np.lexsort((places, -votes))
        at, rhos = np.divmod(places[order], shape[1])
        directions, rhos = np.ascontiguousarray(around.directions[at]), (rhos - BEYOND) * rho_step
        if explanation.wanted:
            near = np.zeros(at.size, np.int64)
            groups.count_near(
                directions, rhos, around.step, rho_step, means, normals, owner, near
            )  # fmt: skip
            explanation.vote(around, at, rhos, votes[order] / (one * SMOOTHED), near)
        before, planes = len(planes), np.vstack([planes, np.empty((at.size, 5))])
        n = groups.group(
            directions, rhos, tilts,
            reaches, precisions, means, nodes.covariance, normals, around.step, rho_step,
            min_offset, shares, nodes.parts, MIN_NODES, before, owner, tried, planes,
        )  # fmt: skip
        planes = planes[:n]
        if n - before <= LAST_ROUND * n:
            break
    mine = owner >= 0
    sizes = np.bincount(owner[mine], precisions[mine], len(planes))
    groups.unite(
        np.argsort(sizes, kind="stable"), sizes, around.step, min_offset, bend, nodes.count,
        precisions, means, nodes.covariance, variances, normals, 2.0 ** (1 - nodes.level), owner,
        planes,
    )  # fmt: skip
    return _by_size(nodes, owner, planes)


def deviation(nodes: PlanarNodes, cube: Cube, options: Options) -> float:
    """Give the standard deviation that points of a plane may have, in steps."""
    if options.max_rmse is not None:
        return options.max_rmse * cube.scale
    return np.inf if nodes.noise is None else float(np.sqrt(nodes.noise)) * ROOT


def without(owner: Any, planes: Any, kept: Any) -> tuple[Any, Any]:
    """Remove the planes that are not kept; their nodes become free."""
    renamed = np.append(np.where(kept, np.cumsum(kept) - 1, FREE), [EXPLAINED, FREE])
    return renamed[owner].astype(np.int32), planes[kept]


def _by_size(nodes: PlanarNodes, owner: Any, planes: Any) -> tuple[Any, Any]:
    """Order the planes by the points of their nodes; those without nodes are removed."""
    mine = owner >= 0
    sizes = np.bincount(owner[mine], nodes.count[mine], len(planes))
    order = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    ranks = np.full(len(planes) + 2, FREE, np.int32)
    ranks[order], ranks[EXPLAINED] = np.arange(order.size), EXPLAINED
    return ranks[owner], np.ascontiguousarray(planes[order])


def in_steps(nodes: PlanarNodes, planes: Any, cube: Cube, options: Options) -> Any:
    """Give normals, offsets and maximum distances of planes in steps from the minimum corner."""
    normals = planes[:, :3]
    offsets = (planes[:, 3] + (normals * (nodes.centroid + 1.0)).sum(1)) * ROOT
    if options.max_distance is None:
        most = deviation(nodes, cube, options)
        limits = NOISES * np.minimum(np.sqrt(planes[:, 4]) * ROOT, most)
    else:
        limits = np.full(len(planes), min(options.max_distance * cube.scale, 4 * ROOT))
    # the points of an exactly flat plane differ from it by rounding only
    return np.column_stack([normals, offsets, np.maximum(limits, MIN_DISTANCE)])
