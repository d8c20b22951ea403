"""Clusters of points: those that a chain of short steps connects."""

from typing import Any

import numpy as np

from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit


def clusters(points: Floats, distance: float) -> Ints:
    """Give each point the lowest index of a point in its cluster.

    Two points are in one cluster if there is a chain of points from one to the other with steps of
    at most `distance`. A point that is not finite is alone.

    Parameters
    ----------
    points : float64[n, 3]
    distance : float

    Returns
    -------
    int64[n]
    """
    chosen = np.flatnonzero(np.isfinite(points).all(axis=1))
    found = np.arange(len(points))
    if len(chosen):
        axis = int(np.argmax(np.ptp(points[chosen], axis=0)))
        order = chosen[np.argsort(points[chosen, axis], kind="stable")]
        turned = np.ascontiguousarray(np.roll(points[order], -axis, axis=1), np.float64)
        root = _roots(turned, float(distance))
        lowest = np.full(len(order), len(points))
        np.minimum.at(lowest, root, order)
        found[order] = lowest[root]
    return found


@njit(cache=True, nogil=True)
def _roots(points: Any, distance: float) -> Any:
    """Join each point with near ones behind it, in the order of the first coordinate."""
    parent = np.arange(points.shape[0])
    for i in range(points.shape[0]):
        for j in range(i + 1, points.shape[0]):
            along = points[j, 0] - points[i, 0]
            if along > distance:
                break
            aside, above = points[j, 1] - points[i, 1], points[j, 2] - points[i, 2]
            if along * along + aside * aside + above * above > distance * distance:
                continue
            one, other = i, j
            while parent[one] != one:
                parent[one] = parent[parent[one]]
                one = parent[one]
            while parent[other] != other:
                parent[other] = parent[parent[other]]
                other = parent[other]
            parent[max(one, other)] = min(one, other)
    for k in range(points.shape[0]):  # a parent is not behind its child
        parent[k] = parent[parent[k]]
    return parent


def clusters_of_lists(
    x: list[float | None] | None,
    y: list[float | None],
    z: list[float | None],
    distance: float | None,
) -> list[int] | None:
    """Do as `clusters` for lists; None is no place."""
    if x is None:
        return None
    points = np.array([x, y, z], np.float64).T
    found: list[int] = clusters(points, np.inf if distance is None else distance).tolist()
    return found
