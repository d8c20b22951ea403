"""An R-tree in packed arrays: bulk-loaded, and searched with many boxes at once.

The boxes are sorted by their centres along a space-filling curve. `FAN_OUT` consecutive boxes make
a node, `FAN_OUT` nodes a node of the next level, and so on up to one root. Child and parent follow
from the position alone, so a search needs neither pointers nor a stack.
"""

from dataclasses import dataclass

import numpy as np

from spatialq.geometry.boxes import Boxes, not_empty
from spatialq.geometry.pair_collection import Pairs, Rows, gather
from spatialq.runtime.arrays import Ints
from spatialq.runtime.compile_cache import njit

FAN_OUT = 4
AXIS_BITS = 21  # of a position along the curve
SAFETY = 1.0 - 2.0**-49
"""Factor on a squared lower bound that outweighs the rounding errors of two bounds."""


@dataclass(frozen=True)
class Tree:
    """A packed R-tree.

    Parameters
    ----------
    boxes : float64[m, 6]
        First the boxes of the elements in the order of the tree, then those of the nodes, level
        by level; the root last.
    starts : int64[levels + 1]
        Where each level begins; level 0 are the elements.
    rows : int64[n]
        Rows of the elements, in the order of the tree; those without a box are left out.
    """

    boxes: Boxes
    starts: Ints
    rows: Rows

    @classmethod
    def of(cls, boxes: Boxes) -> "Tree":
        """Build the tree of float64[n, 6], n < 2^31."""
        rows = not_empty(boxes)
        rows = rows[along_curve(boxes, rows)]
        starts = level_starts(rows.size)
        packed = np.empty((starts[-1], 6))
        np.take(boxes, rows, axis=0, out=packed[: rows.size])
        _fill(packed, starts)
        return cls(packed, starts, rows)


def level_starts(n: int) -> Ints:
    """Where the levels of a tree of n elements begin, and the last one ends."""
    sizes = [n]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // FAN_OUT))
    return np.cumsum([0, *sizes])


def pairs(
    boxes_a: Boxes,
    boxes_b: Boxes | None,
    distance: float,
    tree_a: Tree | None = None,
    tree_b: Tree | None = None,
) -> Pairs:
    """Find the pairs of boxes that are nowhere farther apart than `distance` along an axis.

    Parameters
    ----------
    boxes_a, boxes_b : float64[n, 6], metres
        Without boxes_b pairs within boxes_a, i < j.
    distance : float, metres
    tree_a, tree_b : Tree, optional
        Their trees, if there are any: none is built then.

    Returns
    -------
    i, j : int64[m]
        Rows of boxes_a and of boxes_b, sorted by (i, j): all pairs with
        a.min - b.max <= distance and b.min - a.max <= distance along x, y and z, in doubles.
    """
    if boxes_b is None:
        tree = tree_a or Tree.of(boxes_a)

        def within(start: int, stop: int, i: Rows, j: Rows) -> int:
            return int(_within(tree.boxes, tree.starts, tree.rows, distance, start, stop, i, j))

        return gather(within, tree.rows.size)
    a_is_smaller = len(boxes_a) < len(boxes_b)
    has_one_tree = (tree_a is None) != (tree_b is None)
    swapped = tree_a is not None if has_one_tree else a_is_smaller
    queries, indexed = (boxes_b, boxes_a) if swapped else (boxes_a, boxes_b)
    queries = np.ascontiguousarray(queries)
    tree = (tree_a if swapped else tree_b) or Tree.of(indexed)

    def between(start: int, stop: int, i: Rows, j: Rows) -> int:
        query, element = (j, i) if swapped else (i, j)
        return int(
            _between(
                tree.boxes, tree.starts, tree.rows, queries, distance, start, stop, query, element
            )
        )

    return gather(between, len(queries) if tree.rows.size else 0)


def nearest(boxes_a: Boxes, boxes_b: Boxes | None, k: int, tree: Tree | None = None) -> Pairs:
    """Find for each box of boxes_a those that may be among its k nearest.

    Parameters
    ----------
    boxes_a, boxes_b : float64[n, 6], metres
        Without boxes_b others of boxes_a.
    k : int, > 0
    tree : Tree, optional
        That of the boxes among which the nearest are, if there is one.

    Returns
    -------
    i, j : int64[m]
        Sorted by (i, j): all pairs whose boxes can be as near as the k-th smallest of the
        distances that i's box and another can at most have. The k nearest elements are among
        them, whatever is in the boxes; all elements where there are no more than k.
    """
    tree = tree or Tree.of(boxes_a if boxes_b is None else boxes_b)
    queries = np.ascontiguousarray(boxes_a)
    own = boxes_b is None

    def near(start: int, stop: int, i: Rows, j: Rows) -> int:
        return int(_near(tree.boxes, tree.starts, tree.rows, queries, own, k, start, stop, i, j))

    return gather(near, len(queries) if tree.rows.size else 0)


def along_curve(boxes: Boxes, rows: Rows) -> Rows:
    """Order rows by the centres of their boxes along a Morton curve."""
    row_bits = max(1, rows.size - 1).bit_length()
    bits = min(AXIS_BITS, (64 - row_bits) // 3)
    keys = np.empty(rows.size, np.uint64)
    _morton(boxes, rows, bits, row_bits, keys)
    keys.sort()  # code and row in one key: all keys differ, and this sort is the fastest
    return (keys & np.uint64((1 << row_bits) - 1)).astype(np.int64)


@njit(cache=True, nogil=True)
def _spread(v):  # type: ignore[no-untyped-def]
    """Put two zeros between the bits of a number of 21 bits."""
    v = (v | v << np.uint64(32)) & np.uint64(0x001F00000000FFFF)
    v = (v | v << np.uint64(16)) & np.uint64(0x001F0000FF0000FF)
    v = (v | v << np.uint64(8)) & np.uint64(0x100F00F00F00F00F)
    v = (v | v << np.uint64(4)) & np.uint64(0x10C30C30C30C30C3)
    return (v | v << np.uint64(2)) & np.uint64(0x1249249249249249)


@njit(cache=True, nogil=True)
def _morton(boxes, rows, bits, row_bits, keys):  # type: ignore[no-untyped-def]
    extent = 0.0
    lows = np.full(3, np.inf)
    for axis in range(3):
        high = -np.inf
        for row in rows:
            centre = 0.5 * boxes[row, axis] + 0.5 * boxes[row, 3 + axis]
            lows[axis], high = min(lows[axis], centre), max(high, centre)
        extent = max(extent, high - lows[axis])
    scale = (2.0**bits - 1.0) / extent if extent > 0.0 else 0.0
    keys[:] = 0
    for axis in range(3):
        for n in range(rows.size):
            row = rows[n]
            centre = 0.5 * boxes[row, axis] + 0.5 * boxes[row, 3 + axis]
            place = np.uint64((centre - lows[axis]) * scale)
            keys[n] |= _spread(place) << np.uint64(row_bits + axis)
    for n in range(rows.size):
        keys[n] |= np.uint64(n)


@njit(cache=True, nogil=True)
def _fill(boxes, starts):  # type: ignore[no-untyped-def]
    """Make the boxes of the nodes, from the boxes below."""
    for level in range(1, starts.size - 1):
        for node in range(starts[level], starts[level + 1]):
            first = starts[level - 1] + (node - starts[level]) * FAN_OUT
            boxes[node] = boxes[first]
            for child in range(first + 1, min(first + FAN_OUT, starts[level])):
                for axis in range(3):
                    boxes[node, axis] = min(boxes[node, axis], boxes[child, axis])
                    boxes[node, 3 + axis] = max(boxes[node, 3 + axis], boxes[child, 3 + axis])


# Every traversal visits (level, place) in the same way: down to the first child of a node that is
# near the query, otherwise on to the next node; from the last child of a node to the node after its
# parent. A node is near whatever one of its elements is near: rounding a - b never reverses an
# order. Comparisons are joined by &: six of them take less time than a mispredicted branch.


@njit(cache=True, nogil=True)
def _onward(starts, level, place):  # type: ignore[no-untyped-def]
    """Go to the node after a node and its descendants; the level above the root is the end."""
    place += 1
    while level < starts.size - 1 and (
        place % FAN_OUT == 0 or place == starts[level + 1] - starts[level]
    ):
        level += 1
        place = (place + FAN_OUT - 1) // FAN_OUT
    return level, place


@njit(cache=True, nogil=True)
def _is_near(boxes, node, west, south, bottom, east, north, top, distance):  # type: ignore[no-untyped-def]
    """Whether a node's box is within a distance of another on each axis; NaN is near nothing."""
    return (
        (boxes[node, 0] - east <= distance)
        & (west - boxes[node, 3] <= distance)
        & (boxes[node, 1] - north <= distance)
        & (south - boxes[node, 4] <= distance)
        & (boxes[node, 2] - top <= distance)
        & (bottom - boxes[node, 5] <= distance)
    )


@njit(cache=True, nogil=True)
def _within(boxes, starts, rows, distance, start, stop, i, j):  # type: ignore[no-untyped-def]
    """Find the pairs of elements; each is compared only with those after it in the tree."""
    n, levels = 0, starts.size - 1
    for query in range(start, stop):
        west, south, bottom = boxes[query, 0], boxes[query, 1], boxes[query, 2]
        east, north, top = boxes[query, 3], boxes[query, 4], boxes[query, 5]
        level, place = _onward(starts, 0, query)
        while level < levels:
            node = starts[level] + place
            if _is_near(boxes, node, west, south, bottom, east, north, top, distance):
                if level > 0:
                    level, place = level - 1, place * FAN_OUT
                    continue
                if n < i.size:
                    i[n] = min(rows[query], rows[place])
                    j[n] = max(rows[query], rows[place])
                n += 1
            level, place = _onward(starts, level, place)
    return n


@njit(cache=True, nogil=True)
def _between(boxes, starts, rows, queries, distance, start, stop, i, j):  # type: ignore[no-untyped-def]
    """Find the elements of the tree near each query."""
    n, levels = 0, starts.size - 1
    for query in range(start, stop):
        west, south, bottom = queries[query, 0], queries[query, 1], queries[query, 2]
        east, north, top = queries[query, 3], queries[query, 4], queries[query, 5]
        level, place = levels - 1, 0
        while level < levels:
            node = starts[level] + place
            if _is_near(boxes, node, west, south, bottom, east, north, top, distance):
                if level > 0:
                    level, place = level - 1, place * FAN_OUT
                    continue
                if n < i.size:
                    i[n], j[n] = query, rows[place]
                n += 1
            level, place = _onward(starts, level, place)
    return n


@njit(cache=True, nogil=True)
def _min_square(boxes, node, west, south, bottom, east, north, top):  # type: ignore[no-untyped-def]
    """Square of the minimum distance between a node's box and another."""
    x = max(0.0, boxes[node, 0] - east, west - boxes[node, 3])
    y = max(0.0, boxes[node, 1] - north, south - boxes[node, 4])
    z = max(0.0, boxes[node, 2] - top, bottom - boxes[node, 5])
    return x * x + y * y + z * z


@njit(cache=True, nogil=True)
def _max_square(boxes, node, west, south, bottom, east, north, top):  # type: ignore[no-untyped-def]
    """Square of the maximum distance between a point of a box and one of another."""
    x = max(boxes[node, 3] - west, east - boxes[node, 0])
    y = max(boxes[node, 4] - south, north - boxes[node, 1])
    z = max(boxes[node, 5] - bottom, top - boxes[node, 2])
    return x * x + y * y + z * z


@njit(cache=True, nogil=True)
def _keep(smallest, value):  # type: ignore[no-untyped-def]
    """Insert a value into the smallest values so far, which are sorted."""
    k = smallest.size - 1
    if value >= smallest[k]:
        return
    while k > 0 and smallest[k - 1] > value:
        smallest[k] = smallest[k - 1]
        k -= 1
    smallest[k] = value


@njit(cache=True, nogil=True)
def _near(boxes, starts, rows, queries, own, k, start, stop, i, j):  # type: ignore[no-untyped-def]
    """Find the elements that may be among the k nearest of each query."""
    n, levels = 0, starts.size - 1
    smallest = np.empty(min(k, rows.size + 1))
    for query in range(start, stop):
        west, south, bottom = queries[query, 0], queries[query, 1], queries[query, 2]
        east, north, top = queries[query, 3], queries[query, 4], queries[query, 5]
        if not (west <= east and south <= north and bottom <= top):
            continue
        # a first bound: k elements around the one that the nearest children lead to
        place = 0
        for level in range(levels - 2, -1, -1):
            first, nearest = starts[level] + place * FAN_OUT, np.inf
            for child in range(first, min(first + FAN_OUT, starts[level + 1])):
                low = _min_square(boxes, child, west, south, bottom, east, north, top)
                if low < nearest:
                    nearest, place = low, child - starts[level]
        smallest[:] = np.inf
        for element in range(max(0, place - k), min(rows.size, place + k + 1)):
            if not (own and rows[element] == query):
                _keep(smallest, _max_square(boxes, element, west, south, bottom, east, north, top))
        bound = smallest[-1]
        smallest[:] = np.inf
        level, place = levels - 1, 0
        while level < levels:
            node = starts[level] + place
            if _min_square(boxes, node, west, south, bottom, east, north, top) <= bound:
                if level > 0:
                    level, place = level - 1, place * FAN_OUT
                    continue
                if not (own and rows[place] == query):
                    _keep(smallest, _max_square(boxes, node, west, south, bottom, east, north, top))
                    bound = min(bound, smallest[-1])
            level, place = _onward(starts, level, place)
        level, place = levels - 1, 0
        while level < levels:
            node = starts[level] + place
            if _min_square(boxes, node, west, south, bottom, east, north, top) * SAFETY <= bound:
                if level > 0:
                    level, place = level - 1, place * FAN_OUT
                    continue
                if not (own and rows[place] == query):
                    if n < i.size:
                        i[n], j[n] = query, rows[place]
                    n += 1
            level, place = _onward(starts, level, place)
    return n
