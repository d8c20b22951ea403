"""Pairs of near boxes by a hashed uniform grid: boxes that share a cell are compared.

Cells are hashed into buckets, so that empty space costs nothing. A pair that shares several cells
counts in one of them: the cell of the lower corner of the intersection. Boxes that are large
relative to the cells are not entered; an R-tree finds their pairs.
"""

import numpy as np

from spatialq.geometry import rtree
from spatialq.geometry.boxes import Boxes, not_empty
from spatialq.geometry.pair_collection import Pairs, Rows, gather, in_order
from spatialq.runtime.compile_cache import njit

MAX_CELLS = 27
"""A box that overlaps more of them is large."""

AXIS_BITS = 21
AXIS_MASK = (1 << AXIS_BITS) - 1  # cells this far apart share a key, which does no harm
MAX_CELL = 2.0**40  # cells from the origin


def pairs(boxes_a: Boxes, boxes_b: Boxes | None, distance: float) -> Pairs:
    """Find the pairs of boxes that are nowhere farther apart than `distance` along an axis.

    As `rtree.pairs`, with the same result.
    """
    # A box covers its minimum to its maximum + margin, so that two near ones share a cell: where
    # b.min - a.max rounds to distance or less, b.min <= a.max + margin.
    margin = max(float(np.nextafter(distance, np.inf)), 0.0)
    a = boxes_a[rows_a := not_empty(boxes_a)]
    b = a if boxes_b is None else boxes_b[rows_b := not_empty(boxes_b)]
    if 0 in (len(a), len(b)):
        return rows_a[:0], rows_a[:0]
    size = _cell_size(np.concatenate([a, b]), margin)
    small_a, large_a = _by_size(a, margin, size)
    if boxes_b is None:
        met = [
            _of_cells(a, small_a, None, small_a, distance, size, margin),
            _of_tree(a, small_a, a, large_a, distance),
            _of_tree(a, large_a, None, large_a, distance),
        ]
        i, j = (rows_a[np.concatenate(rows)] for rows in zip(*met, strict=True))
        return in_order(np.minimum(i, j), np.maximum(i, j))
    small_b, large_b = _by_size(b, margin, size)
    met = [
        _of_cells(a, small_a, b, small_b, distance, size, margin),
        _of_tree(a, small_a, b, large_b, distance),
        _of_tree(a, large_a, b, np.arange(len(b)), distance),
    ]
    i, j = (np.concatenate(rows) for rows in zip(*met, strict=True))
    return in_order(rows_a[i], rows_b[j])


def _of_tree(a: Boxes, i: Rows, b: Boxes | None, j: Rows, distance: float) -> Pairs:
    """Find pairs of rows i of a and rows j of b, or of rows i alone."""
    found_i, found_j = rtree.pairs(a[i], None if b is None else b[j], distance)
    return i[found_i], j[found_j]


def _of_cells(
    a: Boxes, i: Rows, b: Boxes | None, j: Rows, distance: float, size: float, margin: float
) -> Pairs:
    """Find pairs of rows i of a and rows j of b, or of rows i alone, by their cells."""
    alone = b is None
    queries, elements = a[i], a[i] if b is None else b[j]
    swapped = alone or len(queries) < len(elements)  # the smaller set is entered in cells
    if swapped:
        queries, elements = elements, queries
    room = int(_cells(elements, margin, size).sum())
    keys, owners = _enter(elements, margin, size, room)
    buckets = 2 << keys.size.bit_length()
    shift = 65 - buckets.bit_length()
    starts, keys, owners = _sort(keys, owners, buckets, shift)

    def search(start: int, stop: int, found_a: Rows, found_b: Rows) -> int:
        query, element = (found_b, found_a) if swapped else (found_a, found_b)
        return int(
            _search(
                queries, elements, alone, distance, size, margin, shift, starts, keys, owners,
                start, stop, query, element,
            )
        )  # fmt: skip

    found_a, found_b = gather(search, len(queries))
    return i[found_a], j[found_b]


def _cell_size(boxes: Boxes, margin: float) -> float:
    """Choose the side of a cell: the longest side of an ordinary box."""
    sides = (boxes[:, 3:] + margin - boxes[:, :3]).max(axis=1)
    smallest = max(np.abs(boxes).max() / MAX_CELL, np.finfo(np.float64).tiny)
    return max(float(np.median(sides)), float(smallest))


def _by_size(boxes: Boxes, margin: float, size: float) -> tuple[Rows, Rows]:
    """Rows of the small boxes and of the large ones."""
    is_large = _cells(boxes, margin, size) > MAX_CELLS
    return np.flatnonzero(~is_large), np.flatnonzero(is_large)


def _cells(boxes: Boxes, margin: float, size: float) -> Boxes:
    """How many cells each box overlaps."""
    first, last = np.floor(boxes[:, :3] / size), np.floor((boxes[:, 3:] + margin) / size)
    return np.asarray((last - first + 1.0).prod(axis=1))


@njit(cache=True, nogil=True)
def _cell(place, size):  # type: ignore[no-untyped-def]
    """Cell of a place along an axis; a larger place never has a smaller cell."""
    return np.int64(np.floor(place / size))


@njit(cache=True, nogil=True)
def _enter(boxes, margin, size, room):  # type: ignore[no-untyped-def]
    """List the keys of the cells that the boxes overlap, and the box of each entry."""
    keys, owners = np.empty(room, np.uint64), np.empty(room, np.int32)
    n = 0
    for box in range(boxes.shape[0]):
        x0, x1 = _cell(boxes[box, 0], size), _cell(boxes[box, 3] + margin, size)
        y0, y1 = _cell(boxes[box, 1], size), _cell(boxes[box, 4] + margin, size)
        z0, z1 = _cell(boxes[box, 2], size), _cell(boxes[box, 5] + margin, size)
        for z in range(z0, z1 + 1):
            for y in range(y0, y1 + 1):
                for x in range(x0, x1 + 1):
                    keys[n], owners[n] = _key(x, y, z), box
                    n += 1
    return keys, owners


@njit(cache=True, nogil=True)
def _key(x, y, z):  # type: ignore[no-untyped-def]
    row = (z & AXIS_MASK) << AXIS_BITS | (y & AXIS_MASK)
    return np.uint64(row << AXIS_BITS | (x & AXIS_MASK))


@njit(cache=True, nogil=True)
def _bucket(key, shift):  # type: ignore[no-untyped-def]
    """Hash a cell to 64 - `shift` bits (Fibonacci hashing)."""
    return np.int64(key * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(shift))


@njit(cache=True, nogil=True)
def _sort(keys, owners, buckets, shift):  # type: ignore[no-untyped-def]
    """Sort entries by bucket, and therein by box."""
    starts = np.zeros(buckets + 1, np.int64)
    for key in keys:
        starts[_bucket(key, shift) + 1] += 1
    for bucket in range(buckets):
        starts[bucket + 1] += starts[bucket]
    ends = starts[:-1].copy()  # so far
    sorted_keys, sorted_owners = np.empty_like(keys), np.empty_like(owners)
    for n in range(keys.size):
        bucket = _bucket(keys[n], shift)
        sorted_keys[ends[bucket]], sorted_owners[ends[bucket]] = keys[n], owners[n]
        ends[bucket] += 1
    return starts, sorted_keys, sorted_owners


@njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    queries, elements, alone, distance, size, margin, shift, starts, keys, owners, start, stop, i, j
):  # fmt: skip
    """Find the elements near each query; within one set only those before it."""
    n = 0
    for query in range(start, stop):
        west, south, bottom = queries[query, 0], queries[query, 1], queries[query, 2]
        east, north, top = queries[query, 3], queries[query, 4], queries[query, 5]
        x0, x1 = _cell(west, size), _cell(east + margin, size)
        y0, y1 = _cell(south, size), _cell(north + margin, size)
        z0, z1 = _cell(bottom, size), _cell(top + margin, size)
        for z in range(z0, z1 + 1):
            for y in range(y0, y1 + 1):
                for x in range(x0, x1 + 1):
                    key = _key(x, y, z)
                    bucket = _bucket(key, shift)
                    for entry in range(starts[bucket], starts[bucket + 1]):
                        element = owners[entry]
                        if alone and element >= query:
                            break
                        if (
                            keys[entry] == key
                            and elements[element, 0] - east <= distance
                            and west - elements[element, 3] <= distance
                            and elements[element, 1] - north <= distance
                            and south - elements[element, 4] <= distance
                            and elements[element, 2] - top <= distance
                            and bottom - elements[element, 5] <= distance
                            and _cell(max(west, elements[element, 0]), size) == x
                            and _cell(max(south, elements[element, 1]), size) == y
                            and _cell(max(bottom, elements[element, 2]), size) == z
                        ):
                            if n < i.size:
                                i[n], j[n] = query, element
                            n += 1
    return n
