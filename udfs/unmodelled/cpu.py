"""`unmodelled` on the CPU: points far from all faces, their clusters, and a plane of each."""

from itertools import product
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.data.points import all_finite, not_finite
from spatialq.geometry.connected import connected
from spatialq.geometry.nearest_faces import NO_FACE, NearestFaces
from spatialq.runtime import progress
from spatialq.runtime.arrays import Floats, Ints

from . import Options

WIDER = 3.0
"""How many times as far a plane must spread along itself as across."""
LEAST = 1e-3
"""Metres: what spreads less in a second direction is a line, whatever rounding makes of it."""
NEIGHBOURS = [cell for cell in product((-1, 0, 1), repeat=3) if cell > (0, 0, 0)]
"""Half of the cubes around one: each pair of cubes is met once."""


def run(
    x: Floats, y: Floats, z: Floats, point_id: Ints | None, elements: Meshes, options: Options
) -> dict[str, Any]:
    """Find clusters of points that are far from all elements.

    Parameters
    ----------
    x, y, z : float64[n]
    point_id : int64[n] or None
        None for 0, 1, 2 ...
    elements : Meshes
        In metres.
    options : Options

    Returns
    -------
    dict of arrays
        The columns of the declaration; of one that is no plane `nx`, `ny`, `nz` and `d` are NaN.
        The order of the points does not matter.

    Raises
    ------
    ValueError
        If a coordinate is not finite, or `gap` is too small for the extent of the points.
    """
    if not all_finite(x, y, z):
        raise ValueError(not_finite(options.function, x, y, z, point_id))
    progress.stage("distances", 0.8)
    nearest = NearestFaces(elements, options.max_distance)
    far = np.flatnonzero(nearest.find(x, y, z, options.metres).face == NO_FACE)
    progress.stage("clusters", 1.0)
    points = np.stack([each[far] for each in (x, y, z)], axis=1)
    edge = options.gap / options.metres
    keys, strides = _keys(points, edge, options)
    # by coordinates, so that sums do not depend on the order in which points came
    order = np.lexsort((*points.T, keys))
    points, keys = points[order], keys[order]
    cubes, cube_of = np.unique(keys, return_inverse=True)
    cluster = _joined(cubes, strides)[cube_of]
    counts = np.bincount(cluster)
    found = np.flatnonzero(counts >= options.min_points)
    found = found[np.argsort(-counts[found], kind="stable")]
    order = np.argsort(cluster, kind="stable")
    ends = np.cumsum(counts)
    rows = [_describe(points[order[ends[k] - counts[k] : ends[k]]], options) for k in found]
    columns = np.array(rows).reshape(-1, len(COLUMNS)).T
    described = dict(zip(COLUMNS, columns, strict=True))
    return {
        "cluster_id": np.arange(1, len(found) + 1),
        "point_count": counts[found],
        **described,
        "is_plane": described["is_plane"] > 0,
    }


COLUMNS = (
    "cx", "cy", "cz", "xmin", "ymin", "zmin", "xmax", "ymax", "zmax", "size", "is_plane", "nx",
    "ny", "nz", "d", "rmse",
)  # fmt: skip
"""Of a cluster, as `_describe` gives them."""


def _keys(points: Any, edge: float, options: Options) -> tuple[Any, Any]:
    """Give each point its cube as a number, and by how much those of neighbours differ."""
    if not len(points):
        return np.empty(0, np.int64), np.ones(3, np.int64)
    cells = np.floor(points / edge)
    cells -= cells.min(axis=0)
    counts = [int(each) + 3 for each in cells.max(axis=0)]  # a free one at each end
    strides = (counts[1] * counts[2], counts[2], 1)
    if counts[0] * strides[0] >= 2**62:
        sides = " x ".join(f"{each * options.metres:.0f}" for each in np.ptp(points, axis=0))
        options.reject("gap", f"large enough for points that extend over {sides} metres")
    return (cells.astype(np.int64) + 1) @ np.array(strides, np.int64), np.array(strides, np.int64)


def _joined(cubes: Ints, strides: Ints) -> Ints:
    """Give each cube its cluster, of those that touch: numbers in the order of their first cubes.

    Parameters
    ----------
    cubes : int64[m]
        Ascending.
    strides : int64[3]

    Returns
    -------
    int64[m]
    """
    rows = np.arange(len(cubes))
    pairs = []
    for shift in NEIGHBOURS:
        beside = cubes + int(np.dot(shift, strides))
        at = np.minimum(np.searchsorted(cubes, beside), max(0, len(cubes) - 1))
        met = cubes[at] == beside if len(cubes) else rows > 0
        pairs.append((rows[met], at[met]))
    one, other = map(np.concatenate, zip(*pairs, strict=True))
    return np.unique(connected(len(cubes), one, other), return_inverse=True)[1].ravel()


def _describe(points: Any, options: Options) -> tuple[float, ...]:
    """Describe a cluster by its points, float64[n, 3]."""
    low, high = points.min(axis=0), points.max(axis=0)
    near = points - low  # coordinates of a survey have seven digits before the point
    middle = near.mean(axis=0)
    off = near - middle
    variances, axes = np.linalg.eigh(off.T @ off / len(points))
    across, along = np.sqrt(np.maximum(variances[:2], 0.0)) * options.metres
    is_plane = bool(across <= options.max_rmse and along > max(WIDER * across, LEAST))
    normal = axes[:, 0] * np.sign(axes[np.argmax(np.abs(axes[:, 0])), 0])
    plane = (*normal, float(normal @ (low + middle))) if is_plane else (np.nan,) * 4
    size = float((high - low).max()) * options.metres
    return *(low + middle), *low, *high, size, float(is_plane), *plane, across
