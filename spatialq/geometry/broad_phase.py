"""Broad phase: which pairs of elements are near each other by their boxes."""

from typing import Literal

import numpy as np

from spatialq.geometry import rtree
from spatialq.geometry.boxes import Boxes, not_empty
from spatialq.geometry.pair_collection import Pairs
from spatialq.geometry.rtree import Tree

Method = Literal["auto", "rtree", "none"]


def pairs(
    boxes_a: Boxes,
    boxes_b: Boxes | None,
    distance: float,
    method: Method = "auto",
    tree_a: Tree | None = None,
    tree_b: Tree | None = None,
) -> Pairs:
    """Find the pairs of boxes that are nowhere farther apart than `distance` along an axis.

    Parameters
    ----------
    boxes_a, boxes_b : float64[n, 6], metres
        xmin, ymin, zmin, xmax, ymax, zmax; inf .. -inf meets nothing. Without boxes_b pairs
        within boxes_a, i < j.
    distance : float, metres
    method : 'auto', 'rtree' or 'none'
        The first two are the R-tree. 'none' gives all pairs of boxes that are not empty, whatever
        the distance, as there are without an index.
    tree_a, tree_b : Tree, optional
        The R-trees of the boxes, if there are any.

    Returns
    -------
    i, j : int64[m]
        Rows of boxes_a and of boxes_b, sorted by (i, j): all pairs with
        a.min - b.max <= distance and b.min - a.max <= distance along x, y and z, in doubles.
    """
    if method == "none":
        return _all(boxes_a, boxes_b)
    return rtree.pairs(boxes_a, boxes_b, distance, tree_a, tree_b)


def _all(boxes_a: Boxes, boxes_b: Boxes | None) -> Pairs:
    a = not_empty(boxes_a)
    if boxes_b is None:
        i, j = np.triu_indices(len(a), k=1)
        return a[i], a[j]
    b = not_empty(boxes_b)
    return np.repeat(a, len(b)), np.tile(b, len(a))
