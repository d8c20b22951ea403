"""A uniform grid: boxes are entered in all cells that they reach, and meet there.

Cells are hashed into buckets, so that empty space costs nothing. A pair that shares several cells
counts in one: that of the lower corner of what the two have in common.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .boxes import Boxes, somewhere
from .found import Rows, gather

CELLS_PER_BOX = 4
"""Cells are enlarged until boxes reach no more of them than this, on average."""

AXIS_BITS = 21
LAST_CELL = float((1 << AXIS_BITS) - 1)  # along an axis; what is beyond is in it, too


def pairs(boxes_a: Boxes, boxes_b: Boxes | None, grow: float) -> tuple[Rows, Rows]:
    """Find the pairs of boxes that are nowhere farther apart than `grow` along an axis.

    As `rtree.pairs`, with the same result.
    """
    alone = boxes_b is None
    a, b = boxes_a, boxes_a if boxes_b is None else boxes_b
    swapped = alone or len(a) < len(b)  # the elements in the cells are those of a
    queries, elements = (b, a) if swapped else (a, b)
    queried, entered = somewhere(queries), somewhere(elements)
    queries, elements = queries[queried], elements[entered]
    if 0 in (queried.size, entered.size):
        return gather(_none, 0)
    # A box reaches from its minimum, counted from `low`, to its maximum + reach. So two that meet
    # share a cell: where b.min - a.max rounds to grow or less, b.min <= a.max + reach.
    reach = max(float(np.nextafter(grow, np.inf)), 0.0)
    low = np.minimum(queries[:, :3].min(axis=0), elements[:, :3].min(axis=0))
    size = _cell_size(queries, elements, low, reach)
    cells, owners = _enter(elements, low, reach, size)
    buckets = 1 << cells.size.bit_length()
    shift = 65 - buckets.bit_length()
    starts, cells, owners = _sort(cells, owners, buckets, shift)

    def search(start: int, stop: int, i: Rows, j: Rows) -> int:
        query, element = (j, i) if swapped else (i, j)
        return int(
            _search(
                queries, elements, alone, grow, low, reach, size, shift, starts, cells, owners,
                queried, entered, start, stop, query, element,
            )
        )  # fmt: skip

    return gather(search, queried.size)


def _none(start: int, stop: int, i: Rows, j: Rows) -> int:
    return 0


def _cell_size(queries: Boxes, elements: Boxes, low: NDArray[np.float64], reach: float) -> float:
    """Choose the side of a cell: about that of most boxes, more where some reach many cells."""
    sides = (elements[:, 3:] + reach - elements[:, :3]).max(axis=1)
    extent = (max(queries.max(), elements.max()) - low.min()) / LAST_CELL
    size = max(float(np.median(sides)), float(extent), float(np.finfo(np.float64).tiny))
    limit = CELLS_PER_BOX * (len(queries) + len(elements))
    while _count(queries, low, reach, size) + _count(elements, low, reach, size) > limit:
        size *= 2.0
    return size


@njit(cache=True, nogil=True)
def _cell(place, low, size):  # type: ignore[no-untyped-def]
    """Cell of a place along an axis; a larger place never has a smaller cell."""
    return np.int64(min(max((place - low) / size, 0.0), LAST_CELL))


@njit(cache=True, nogil=True)
def _count(boxes, low, reach, size):  # type: ignore[no-untyped-def]
    """How many cells the boxes reach, a cell counted once for each."""
    total = 0.0  # may be more than any integer
    for box in range(boxes.shape[0]):
        cells = 1.0
        for axis in range(3):
            first = _cell(boxes[box, axis], low[axis], size)
            cells *= _cell(boxes[box, 3 + axis] + reach, low[axis], size) - first + 1.0
        total += cells
    return total


@njit(cache=True, nogil=True)
def _enter(boxes, low, reach, size):  # type: ignore[no-untyped-def]
    """List the cells that the boxes reach, and the box of each entry."""
    n = np.int64(_count(boxes, low, reach, size))
    cells, owners = np.empty(n, np.uint64), np.empty(n, np.int32)
    n = 0
    for box in range(boxes.shape[0]):
        x0, x1 = _cell(boxes[box, 0], low[0], size), _cell(boxes[box, 3] + reach, low[0], size)
        y0, y1 = _cell(boxes[box, 1], low[1], size), _cell(boxes[box, 4] + reach, low[1], size)
        z0, z1 = _cell(boxes[box, 2], low[2], size), _cell(boxes[box, 5] + reach, low[2], size)
        for z in range(z0, z1 + 1):
            for y in range(y0, y1 + 1):
                for x in range(x0, x1 + 1):
                    cells[n], owners[n] = _key(x, y, z), box
                    n += 1
    return cells, owners


@njit(cache=True, nogil=True)
def _key(x, y, z):  # type: ignore[no-untyped-def]
    return np.uint64((z << AXIS_BITS | y) << AXIS_BITS | x)


@njit(cache=True, nogil=True)
def _bucket(key, shift):  # type: ignore[no-untyped-def]
    """Hash a cell to so many bits that `shift` others are left over (Fibonacci hashing)."""
    return np.int64(key * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(shift))


@njit(cache=True, nogil=True)
def _sort(cells, owners, buckets, shift):  # type: ignore[no-untyped-def]
    """Sort entries by bucket, and therein by box."""
    starts = np.zeros(buckets + 1, np.int64)
    for cell in cells:
        starts[_bucket(cell, shift) + 1] += 1
    for bucket in range(buckets):
        starts[bucket + 1] += starts[bucket]
    ends = starts[:-1].copy()  # so far
    sorted_cells, sorted_owners = np.empty_like(cells), np.empty_like(owners)
    for n in range(cells.size):
        bucket = _bucket(cells[n], shift)
        sorted_cells[ends[bucket]], sorted_owners[ends[bucket]] = cells[n], owners[n]
        ends[bucket] += 1
    return starts, sorted_cells, sorted_owners


@njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    queries, elements, alone, grow, low, reach, size, shift, starts, cells, owners,
    queried, entered, start, stop, i, j,
):  # fmt: skip
    """Find the elements that meet each query; within one set only those before it."""
    n = 0
    for query in range(start, stop):
        west, south, bottom = queries[query, 0], queries[query, 1], queries[query, 2]
        east, north, top = queries[query, 3], queries[query, 4], queries[query, 5]
        x0, x1 = _cell(west, low[0], size), _cell(east + reach, low[0], size)
        y0, y1 = _cell(south, low[1], size), _cell(north + reach, low[1], size)
        z0, z1 = _cell(bottom, low[2], size), _cell(top + reach, low[2], size)
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
                            cells[entry] == key
                            and elements[element, 0] - east <= grow
                            and west - elements[element, 3] <= grow
                            and elements[element, 1] - north <= grow
                            and south - elements[element, 4] <= grow
                            and elements[element, 2] - top <= grow
                            and bottom - elements[element, 5] <= grow
                            and _cell(max(west, elements[element, 0]), low[0], size) == x
                            and _cell(max(south, elements[element, 1]), low[1], size) == y
                            and _cell(max(bottom, elements[element, 2]), low[2], size) == z
                        ):
                            if n < i.size:
                                i[n], j[n] = queried[query], entered[element]
                            n += 1
    return n
