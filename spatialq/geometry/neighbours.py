"""The neighbours of points, exact: the k nearest, or those within a distance.

Points are put in the order of a k-d tree, whose cells hold equally many points, so that a search
takes as long in dense parts as in sparse ones, and no coordinate is too large for a key. A cell has
the box around its points (Friedman, Bentley, Finkel 1977, An algorithm for finding best matches in
logarithmic expected time, ACM TOMS 3(3)). All cells of a level have as many points, give or take
one, so that their numbers say where they begin, and there are no pointers. The points of a cell
that is not divided are in the order of the input. Each query is by itself and has a stack of its
own: one thread of a GPU does what an iteration of the loop does here (`neighbours_gpu.py`).

Of points that are equally far, the first in the order of the input is the nearer one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.data.points import all_finite, not_finite, read_only
from spatialq.runtime import buffers, progress
from spatialq.runtime.arrays import Bools, Floats, Ints
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import in_threads, steps, workers

LEAF = 12
"""Points of a cell that is not divided, at most."""
SUBTREES = 6
"""Levels of which each cell is a call of its own, so that threads share the rest."""
QUERIES = 1 << 12
"""Points of which neighbours are found at once, and that are worth a subtree of their own."""
FEW_QUERIES = 1 << 8
"""Points of which a thread finds neighbours in less time than it takes to tell another to."""
FEW_TURNS = 1 << 16
"""Points that are kept or not before the task of the call is asked whether it is to go on."""
ROOM = 64
"""Cells that wait in a stack: one for each level, of which there are fewer."""


@dataclass
class NeighbourLists:
    """Neighbours of the queries `first` to `stop`, in two lists, one query after the other."""

    first: int
    stop: int
    starts: Ints
    """int64[stop - first + 1]: where those of each query begin."""
    rows: Ints
    """int64[m]: which points they are, as numbered in the input."""
    squared: Floats
    """float64[m]: squared distances."""


class Neighbours:
    """A search among points.

    Parameters
    ----------
    x, y, z : float64[n]
        Finite, and so are the squares of their differences.

    Attributes
    ----------
    points : float64[n, 3]
        In the order of the tree, in which near ones are near each other.
    order : int64[n]
        Which of the points that were given they are.
    xyz : three of float64[n]
        The points in the order of the input, read-only.
    """

    def __init__(self, x: Any, y: Any, z: Any) -> None:
        n = x.size
        self.xyz = x, y, z = read_only(x), read_only(y), read_only(z)
        self.levels = levels_of(n)
        self.points, self.order = buffers.empty((n, 3)), buffers.empty(n, np.int64)
        self.boxes = buffers.empty(((2 << self.levels) - 1, 6))
        self.lowest = buffers.empty((2 << self.levels) - 1, np.int64)
        in_threads(lambda part: _fill(x, y, z, *part, self.points, self.order), n, worth=QUERIES)
        if n == 0:
            return
        stop = progress.stop_flag()
        shared = min(SUBTREES, self.levels, (n // QUERIES).bit_length())
        with workers() as pool:
            for level in range(shared + 1):
                below = level + 1 if level < shared else self.levels + 1

                def divide(cell: int, level: int = level, below: int = below) -> None:
                    _divide(
                        self.points, self.order, self.levels, level, cell, below, stop,
                        self.boxes, self.lowest,
                    )  # fmt: skip

                pool.map(divide, range(1 << level))

    @classmethod
    def of(cls, function: str, x: Any, y: Any, z: Any, point_id: Any) -> "Neighbours":
        """Make a search among points that a function was given.

        Raises
        ------
        ValueError
            If coordinates are not finite.
        """
        if not all_finite(x, y, z):
            raise ValueError(not_finite(function, x, y, z, point_id))
        return cls(x, y, z)

    def alone(self, size: float, most: int) -> Ints:
        """Find the points that have few others around them.

        Parameters
        ----------
        size : float
            Edge of voxels, whose corners are at multiples of it.
        most : int
            Points in a voxel and the 26 around it at most, the one in question included.

        Returns
        -------
        int64[m]
            Rows of `points`, ascending.
        """
        few = buffers.empty(len(self.points), np.bool_)
        in_threads(
            lambda part: _alone(*self.tree, *part, size, most, few),
            len(self.points), QUERIES, FEW_QUERIES,
        )  # fmt: skip
        return np.flatnonzero(few)

    def apart(self, turns: Ints, distance: float) -> Bools:
        """Choose points that are nowhere nearer to each other than a distance, as many as fit.

        Parameters
        ----------
        turns : int64[n]
            All rows of the input: each in turn is kept, unless one that is kept is too near.
        distance : float

        Returns
        -------
        bool[n]
            In the order of the input.
        """
        keep: Bools = buffers.zeros(len(turns), np.bool_)
        is_near = buffers.zeros(len(turns), np.bool_)
        places = buffers.empty(len(turns), np.int64)
        places[self.order] = np.arange(len(turns))
        limit = distance * distance
        for first, stop in steps(0, len(turns), FEW_TURNS):
            _apart(*self.tree, turns, places, first, stop, limit, is_near, keep)
        return keep

    def nearest(self, queries: Floats, k: int, use: Callable[[NeighbourLists], None]) -> None:
        """Find the k nearest points of each query, all points where there are fewer.

        Parameters
        ----------
        queries : float64[m, 3]
            Near ones should be near each other, as in `points`. A query that is a point itself
            is its own nearest neighbour.
        k : int
            At least 1.
        use : callable
            Called with some of the queries at a time, in threads; neighbours are by distance.
        """
        k, queries = min(k, len(self.points)), read_only(queries)

        def find(part: tuple[int, int]) -> None:
            first, stop = part
            starts = k * np.arange(stop - first + 1)
            rows, squared = np.empty(starts[-1], np.int64), np.empty(starts[-1])
            if k:
                _nearest(*self.tree, queries, first, stop, k, rows, squared)
            use(NeighbourLists(first, stop, starts, rows, squared))

        in_threads(find, len(queries), max(1, QUERIES * 8 // max(k, 8)), FEW_QUERIES)

    def within(self, queries: Any, radius: float, use: Callable[[NeighbourLists], None]) -> None:
        """Find the points within a distance of each query, that distance included.

        As `nearest`; neighbours are in the order of `points`.
        """
        queries = read_only(queries)

        def find(part: tuple[int, int]) -> None:
            for found in self._within(queries, *part, radius * radius):
                use(found)

        in_threads(find, len(queries), QUERIES, FEW_QUERIES)

    def _within(
        self, queries: Any, first: int, stop: int, limit: float
    ) -> Iterator[NeighbourLists]:
        """Find those of as many queries at a time as there is room for."""
        room = 64 * (stop - first)
        while first < stop:
            starts = np.zeros(stop - first + 1, np.int64)
            rows, squared = np.empty(room, np.int64), np.empty(room)
            if len(self.points):
                done = _within(*self.tree, queries, first, stop, limit, starts, rows, squared)
            else:
                done = stop
            if done == first:
                room *= 2
                continue
            yield NeighbourLists(first, done, starts, rows, squared)
            progress.check()
            first = done

    @property
    def tree(self) -> tuple[Any, ...]:
        """Points, order, levels, boxes and lowest rows, as compiled searches take them."""
        return self.points, self.order, self.levels, self.boxes, self.lowest


def levels_of(n: int) -> int:
    """Count how often the cell of n points is divided, until none has more than `LEAF`."""
    return max(0, (-(-n // LEAF) - 1).bit_length())


@njit(cache=True, nogil=True)
def _fill(x, y, z, first, stop, points, order):  # type: ignore[no-untyped-def]
    for i in range(first, stop):
        points[i, 0], points[i, 1], points[i, 2], order[i] = x[i], y[i], z[i], i


@njit(cache=True, nogil=True)
def _divide(  # type: ignore[no-untyped-def]
    points, order, levels, top, cell, below, stop, boxes, lowest
):
    """Find the boxes of the levels top to below of a cell, and put its points in their order."""
    n = order.size
    for level in range(top, below):
        for j in range(cell << (level - top), (cell + 1) << (level - top)):
            if stop[0]:
                return
            first, last = j * n >> level, (j + 1) * n >> level
            node = (1 << level) - 1 + j
            row = order[first]
            for i in range(first, last):
                row = min(row, order[i])
            lowest[node] = row
            axis, widest = 0, -1.0
            for k in range(3):
                low = high = points[first, k]
                for i in range(first, last):
                    low, high = min(low, points[i, k]), max(high, points[i, k])
                boxes[node, k], boxes[node, 3 + k] = low, high
                if high - low > widest:
                    axis, widest = k, high - low
            if level < levels:
                _select(points, order, axis, first, (2 * j + 1) * n >> (level + 1), last - 1, stop)
            else:
                _by_rows(points, order, first, last)


@njit(cache=True, nogil=True)
def _by_rows(points, order, first, last):  # type: ignore[no-untyped-def]
    """Put the few points first to last in the order of the input, so that there is but one order.

    Insertion sort.
    """
    for i in range(first + 1, last):
        row, x, y, z = order[i], points[i, 0], points[i, 1], points[i, 2]
        j = i
        while j > first and order[j - 1] > row:
            order[j] = order[j - 1]
            for k in range(3):
                points[j, k] = points[j - 1, k]
            j -= 1
        order[j], points[j, 0], points[j, 1], points[j, 2] = row, x, y, z


@njit(cache=True, nogil=True)
def _select(points, order, axis, low, middle, high, stop):  # type: ignore[no-untyped-def]
    """Put the points low to high so that none before the middle is greater than one behind.

    Quickselect (Hoare 1961) with the median of three; equal coordinates are in the order of rows.
    """
    while low < high and not stop[0]:
        a, b, c = low, (low + high) >> 1, high
        if _is_before(points, order, axis, b, points[a, axis], order[a]):
            a, b = b, a
        if _is_before(points, order, axis, c, points[b, axis], order[b]):
            b = c
            if _is_before(points, order, axis, c, points[a, axis], order[a]):
                b = a
        pivot, row = points[b, axis], order[b]
        i, j = low, high
        while i <= j:
            while _is_before(points, order, axis, i, pivot, row):
                i += 1
            while points[j, axis] > pivot or (points[j, axis] == pivot and order[j] > row):
                j -= 1
            if i <= j:
                for k in range(3):
                    points[i, k], points[j, k] = points[j, k], points[i, k]
                order[i], order[j] = order[j], order[i]
                i, j = i + 1, j - 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@njit(cache=True, nogil=True, inline="always")
def _is_before(points, order, axis, i, value, row):  # type: ignore[no-untyped-def]
    return points[i, axis] < value or (points[i, axis] == value and order[i] < row)


@njit(cache=True, nogil=True, inline="always")
def squared_to_box(boxes, node, x, y, z):  # type: ignore[no-untyped-def]
    """Give the squared distance of a box, which rounds to no more than that of a point in it."""
    dx = max(boxes[node, 0] - x, x - boxes[node, 3], 0.0)
    dy = max(boxes[node, 1] - y, y - boxes[node, 4], 0.0)
    dz = max(boxes[node, 2] - z, z - boxes[node, 5], 0.0)
    return dx * dx + dy * dy + dz * dz


@njit(cache=True, nogil=True)
def _nearest(  # type: ignore[no-untyped-def]
    points, order, levels, boxes, lowest, queries, first, stop, k, rows, squared
):
    """Find the k nearest points of each query; a cell is left out if none of it can be nearer."""
    n, leaves = order.size, (1 << levels) - 1
    waiting, distances = np.empty(ROOM, np.int64), np.empty(ROOM)
    for q in range(first, stop):
        x, y, z = queries[q, 0], queries[q, 1], queries[q, 2]
        begin = (q - first) * k
        last = begin + k - 1
        for i in range(begin, begin + k):
            rows[i], squared[i] = n, np.inf
        waiting[0], distances[0], depth = 0, 0.0, 1
        while depth > 0:
            depth -= 1
            node, distance = waiting[depth], distances[depth]
            while True:
                if distance > squared[last] or (
                    distance == squared[last] and lowest[node] > rows[last]
                ):
                    break
                if node < leaves:
                    node, other = 2 * node + 1, 2 * node + 2
                    distance = squared_to_box(boxes, node, x, y, z)
                    farther = squared_to_box(boxes, other, x, y, z)
                    if farther < distance or (farther == distance and lowest[other] < lowest[node]):
                        node, other, distance, farther = other, node, farther, distance
                    waiting[depth], distances[depth] = other, farther
                    depth += 1
                    continue
                j = node - leaves
                for i in range(j * n >> levels, (j + 1) * n >> levels):
                    dx, dy, dz = points[i, 0] - x, points[i, 1] - y, points[i, 2] - z
                    d = dx * dx + dy * dy + dz * dz
                    if d > squared[last]:
                        continue
                    row = order[i]
                    if d == squared[last] and row > rows[last]:
                        continue
                    at = last
                    while at > begin and (
                        squared[at - 1] > d or (squared[at - 1] == d and rows[at - 1] > row)
                    ):
                        squared[at], rows[at] = squared[at - 1], rows[at - 1]
                        at -= 1
                    squared[at], rows[at] = d, row
                break


@njit(cache=True, nogil=True)
def _within(  # type: ignore[no-untyped-def]
    points, order, levels, boxes, lowest, queries, first, stop, limit, starts, rows, squared
):
    """Find the points near each query, until there is no more room; give the next query."""
    n, leaves = order.size, (1 << levels) - 1
    waiting = np.empty(ROOM, np.int64)
    count = 0
    for q in range(first, stop):
        x, y, z = queries[q, 0], queries[q, 1], queries[q, 2]
        waiting[0], depth = 0, 1
        while depth > 0:
            depth -= 1
            node = waiting[depth]
            if squared_to_box(boxes, node, x, y, z) > limit:
                continue
            if node < leaves:
                waiting[depth], waiting[depth + 1] = 2 * node + 2, 2 * node + 1
                depth += 2
                continue
            j = node - leaves
            for i in range(j * n >> levels, (j + 1) * n >> levels):
                dx, dy, dz = points[i, 0] - x, points[i, 1] - y, points[i, 2] - z
                d = dx * dx + dy * dy + dz * dz
                if d <= limit:
                    if count == rows.size:
                        return q
                    rows[count], squared[count] = order[i], d
                    count += 1
        starts[q - first + 1] = count
    return stop


@njit(cache=True, nogil=True)
def _alone(  # type: ignore[no-untyped-def]
    points, order, levels, boxes, lowest, first, stop, size, most, few
):
    """Say which points have no more than so many in the 27 voxels around them."""
    n, leaves = order.size, (1 << levels) - 1
    waiting = np.empty(ROOM, np.int64)
    for q in range(first, stop):
        x, y = np.floor(points[q, 0] / size), np.floor(points[q, 1] / size)
        z = np.floor(points[q, 2] / size)
        waiting[0], depth, count = 0, 1, 0
        while depth > 0 and count <= most:
            depth -= 1
            node = waiting[depth]
            if (
                np.floor(boxes[node, 0] / size) > x + 1.0
                or np.floor(boxes[node, 3] / size) < x - 1.0
                or np.floor(boxes[node, 1] / size) > y + 1.0
                or np.floor(boxes[node, 4] / size) < y - 1.0
                or np.floor(boxes[node, 2] / size) > z + 1.0
                or np.floor(boxes[node, 5] / size) < z - 1.0
            ):
                continue
            if node < leaves:
                waiting[depth], waiting[depth + 1] = 2 * node + 2, 2 * node + 1
                depth += 2
                continue
            j = node - leaves
            for i in range(j * n >> levels, (j + 1) * n >> levels):
                count += (
                    abs(np.floor(points[i, 0] / size) - x) <= 1.0
                    and abs(np.floor(points[i, 1] / size) - y) <= 1.0
                    and abs(np.floor(points[i, 2] / size) - z) <= 1.0
                )
        few[q] = count <= most


@njit(cache=True, nogil=True)
def _apart(  # type: ignore[no-untyped-def]
    points, order, levels, boxes, lowest, turns, places, first, stop, limit, is_near, keep
):
    """Keep the points whose turn it is and that are not near one that is kept."""
    n, leaves = order.size, (1 << levels) - 1
    waiting = np.empty(ROOM, np.int64)
    for turn in range(first, stop):
        q = places[turns[turn]]
        if is_near[q]:
            continue
        keep[turns[turn]] = True
        x, y, z = points[q, 0], points[q, 1], points[q, 2]
        waiting[0], depth = 0, 1
        while depth > 0:
            depth -= 1
            node = waiting[depth]
            if squared_to_box(boxes, node, x, y, z) >= limit:
                continue
            if node < leaves:
                waiting[depth], waiting[depth + 1] = 2 * node + 2, 2 * node + 1
                depth += 2
                continue
            j = node - leaves
            for i in range(j * n >> levels, (j + 1) * n >> levels):
                dx, dy, dz = points[i, 0] - x, points[i, 1] - y, points[i, 2] - z
                is_near[i] |= dx * dx + dy * dy + dz * dz < limit
