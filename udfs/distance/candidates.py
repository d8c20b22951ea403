"""Which pairs are measured, and the table of the measures: the same on both devices."""

from typing import Any

import numpy as np

from spatialq.geometry import broad_phase, rtree
from spatialq.geometry.boxes import Boxes
from spatialq.runtime.arrays import Floats, Ints

from . import Options

ROUNDING = 2.0**-36
"""Share of the extent of all elements by which box distances may exceed measured ones."""


def candidates(
    boxes_a: Boxes,
    boxes_b: Boxes | None,
    options: Options,
    tree_a: rtree.Tree | None = None,
    tree_b: rtree.Tree | None = None,
) -> tuple[Ints, Ints]:
    """Find the pairs that may be in the result, from the boxes alone.

    Parameters
    ----------
    boxes_a, boxes_b : float64[n, 6]
        Without boxes_b pairs within a.
    options : Options
    tree_a, tree_b : Tree, optional
        Their R-trees, if there are any.

    Returns
    -------
    i, j : int64[m]
        Rows of both, sorted by (i, j); with `k` of each i those first whose boxes are nearest.
    """
    others, tree = (boxes_a, tree_a) if boxes_b is None else (boxes_b, tree_b)
    if options.k is not None:
        i, j = rtree.nearest(boxes_a, boxes_b, options.k, tree)
        order = np.lexsort((_gaps(boxes_a[i], others[j]), i))
        return i[order], j[order]
    if options.max_distance is None:
        return _all_pairs(boxes_a, boxes_b)
    limits = boxes_a if boxes_b is None else np.concatenate([boxes_a, boxes_b])
    apart = box_distance(limits, options.max_distance)
    return broad_phase.pairs(boxes_a, boxes_b, apart, "auto", tree_a, tree_b)


def box_distance(limits: Floats, max_distance: float) -> float:
    """Give how far apart boxes may be along an axis if their elements are within the distance."""
    finite = limits[np.isfinite(limits).all(axis=1)]
    extent = np.ptp(finite.reshape(-1, 3), axis=0).sum() if len(finite) else 0.0
    return max_distance + ROUNDING * float(extent)


def _gaps(one: Any, other: Any) -> Any:
    """Give the squared distances of boxes."""
    gaps = np.maximum(other[:, :3] - one[:, 3:], one[:, :3] - other[:, 3:])
    return np.square(np.maximum(gaps, 0.0)).sum(axis=1)


def _all_pairs(boxes_a: Any, boxes_b: Any) -> tuple[Any, Any]:
    rows_a = np.flatnonzero(np.isfinite(boxes_a[:, 0]))
    if boxes_b is None:
        i, j = np.triu_indices(len(rows_a), 1)
        return rows_a[i], rows_a[j]
    rows_b = np.flatnonzero(np.isfinite(boxes_b[:, 0]))
    return np.repeat(rows_a, len(rows_b)), np.tile(rows_b, len(rows_a))


def table(i: Any, j: Any, measures: Any, options: Options) -> dict[str, Any]:
    """Make the columns of the result from float64[m, 7]: distance and two points of each pair."""
    keep = np.flatnonzero(np.isfinite(measures[:, 0]))
    if options.k is not None:
        keep = keep[np.lexsort((j[keep], measures[keep, 0], i[keep]))]
        place = np.arange(len(keep)) - np.searchsorted(i[keep], i[keep])
        keep = keep[place < options.k]
    names = ("distance", "ax", "ay", "az", "bx", "by", "bz")
    columns = zip(names, np.ascontiguousarray(measures[keep].T), strict=True)
    return {"a": i[keep], "b": j[keep], **dict(columns)}
