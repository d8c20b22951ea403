"""`classify_noise` on the CPU."""

from functools import partial
from typing import Any

import numpy as np

from spatialq.data.points import all_finite, ids_of, not_finite, read_only
from spatialq.data.strays import ends_of, strays_of
from spatialq.geometry.neighbours import NeighbourLists, Neighbours
from spatialq.runtime import buffers, progress
from spatialq.runtime.arrays import Bytes, Floats, Ints
from spatialq.runtime.compile_cache import njit

from . import HIGH_NOISE, LOW_NOISE, NEVER_CLASSIFIED, Options
from .limit import limit_of, total_of


def run(
    x: Floats,
    y: Floats,
    z: Floats,
    point_id: Ints | None,
    options: Options,
    classification: Bytes | None = None,
) -> dict[str, Any]:
    """Find the points of a cloud that are noise, low or high.

    Parameters
    ----------
    x, y, z : float64[n]
    point_id : int64[n] or None
        None for 0, 1, 2 ...
    options : Options
    classification : uint8[n] or None
        Of the points, masked where there is none.

    Returns
    -------
    dict of arrays
        `point_id`; `classification` (uint8): 7 or 18 for noise, else as given, or 0. In the order
        of the points.

    Raises
    ------
    ValueError
        If coordinates are not finite.

    References
    ----------
    Rusu et al. 2008, Towards 3D point cloud based object maps for household environments, Robotics
    and Autonomous Systems 56(11), section 4.1, as in PDAL's `filters.outlier`; isolated points as
    `lasnoise` of LAStools and `ivf` of lidR count them.
    """
    if not all_finite(x, y, z):
        raise ValueError(not_finite(options.function, x, y, z, point_id))
    found = buffers.full(x.size, NEVER_CLASSIFIED, np.uint8)
    if classification is not None:
        np.copyto(found, np.ma.filled(classification, NEVER_CLASSIFIED))
    stray = strays_of((x, y, z), 1.0, ends_of((x, y, z))) if x.size else None
    if stray is None:
        _classify(options, x, y, z, found)
    else:
        rows = np.setdiff1d(np.arange(x.size), stray[0], assume_unique=True)
        some = found[rows]
        near = _classify(options, x[rows], y[rows], z[rows], some)
        found[rows] = some
        far = np.column_stack([values[stray[0]] for values in (x, y, z)])
        near.nearest(
            far,
            options.mean_k,
            lambda some: low_or_high(some, 0, far, near.xyz[2], stray[0], found),
        )
    return {"point_id": ids_of(point_id, x.size), "classification": found}


def _classify(options: Options, x: Any, y: Any, z: Any, found: Any) -> Neighbours:
    """Find the noise among points that are not stray; give the search among them."""
    progress.stage("order", 0.3)
    near = Neighbours(x, y, z)
    progress.stage("noise", 1.0)
    k = options.mean_k + 1  # the point itself included
    if options.method == "isolated":
        alone = near.alone(options.voxel_size, options.max_points)
        points, rows = near.points[alone], near.order[alone]
        near.nearest(points, k, lambda some: low_or_high(some, 1, points, near.xyz[2], rows, found))
        return near
    distance, level = buffers.empty(x.size), buffers.empty(x.size, np.uint8)

    def measure(some: NeighbourLists) -> None:
        mean_distance(some, near.order, distance)
        low_or_high(some, 1, near.points, near.xyz[2], near.order, level)

    near.nearest(near.points, k, measure)
    if x.size > 1:
        limit = limit_of(x.size, options.multiplier, partial(total_of, distance))
        np.copyto(found, level, where=distance > limit)
    return near


def mean_distance(some: NeighbourLists, rows: Any, distance: Any) -> None:
    """Give queries, of which the first neighbour is the query itself, their mean distance."""
    _mean_distance(some.starts, some.squared, some.first, rows, distance)


def low_or_high(
    some: NeighbourLists, skip: int, queries: Any, z: Any, rows: Any, level: Any
) -> None:
    """Give queries their class of noise; the first neighbours may be the queries themselves."""
    _low_or_high(some.starts, some.rows, some.first, skip, read_only(queries), z, rows, level)


@njit(cache=True, nogil=True)
def _mean_distance(starts, squared, first, order, distance):  # type: ignore[no-untyped-def]
    """Give the mean distance of each query's neighbours; the first of them is itself."""
    for q in range(starts.size - 1):
        total, count = 0.0, starts[q + 1] - starts[q] - 1
        for i in range(starts[q] + 1, starts[q + 1]):
            total += np.sqrt(squared[i])
        distance[order[first + q]] = total / count if count > 0 else 0.0


@njit(cache=True, nogil=True)
def _low_or_high(starts, found, first, skip, queries, z, rows, level):  # type: ignore[no-untyped-def]
    """Say of each query whether it is below the mean height of its neighbours."""
    for q in range(starts.size - 1):
        own, higher = queries[first + q, 2], 0.0
        for i in range(starts[q] + skip, starts[q + 1]):
            higher += z[found[i]] - own
        level[rows[first + q]] = LOW_NOISE if higher > 0.0 else HIGH_NOISE
