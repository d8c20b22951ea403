"""Sort points into the leaves of the octree: a counting sort, repeated in cells that are too full.

Schütz et al. 2023, section 4.1. The paper merges small neighbouring cells from the bottom up. This
module splits from the root and stops at cells with few enough points, which gives the same leaves.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.runtime import buffers
from spatialq.runtime.arrays import Floats, Int32s, Ints
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import FEW_POINTS, in_threads, n_threads, spans, steps

from .places import KEY_LEVELS, codes_of_keys, codes_of_places, gather, keys, place
from .tree import BITS, Cube, Points, Root

DEPTH = 6
"""Levels of one counting sort: its 2**18 counters fit into the cache of one core."""
SMALL = 1 << 15
"""With fewer points, several threads are not worth their start."""
MAX_SORTED_POINTS = 1 << 12
"""Fewer points are sorted by comparison instead of counted in cells."""


@dataclass(frozen=True)
class Leaves:
    """Leaves in depth-first Morton order.

    Parameters
    ----------
    level : int64[leaves]
    cell : int64[leaves, 3]
    first, points : int64[leaves]
        The points of a leaf are ``order[first : first + points]``.
    """

    level: Any
    cell: Any
    first: Any
    points: Any

    def root(self, k: int) -> Root:
        """Give the cell of the k-th leaf."""
        x, y, z = self.cell[k].tolist()
        return Root(int(self.level[k]), (x, y, z))


@dataclass
class Sorted:
    """Points sorted in the order of the leaves.

    Parameters
    ----------
    points : Points
    cube : Cube
    root : Root
        The cell that all the points lie in.
    key : int64[n]
        Morton codes of `KEY_LEVELS` levels below the root, in the order of the leaves.
    order : uint32[n]
    """

    points: Points
    cube: Cube
    root: Root
    key: Any
    order: Any

    def codes(self, level: int, depth: int, start: int, stop: int, out: Any) -> None:
        """Write the Morton codes of `depth` levels below `level` for order[start:stop]."""
        rest = KEY_LEVELS - (level - self.root.level) - depth
        if rest >= 0:
            codes_of_keys(self.key, 3 * rest, 3 * depth, start, stop, out)
        else:
            xyz, cube = self.places()
            codes_of_places(*xyz, *cube, self.order, level, depth, start, stop, out)

    def places(self) -> tuple[tuple[Any, ...], tuple[float, ...]]:
        """Give the coordinates and the cube, from which kernels compute places."""
        points, cube = self.points, self.cube
        return (points.x, points.y, points.z), (cube.x0, cube.y0, cube.z0, cube.size)


def split(points: Sorted, max_points: int) -> Leaves:
    """Sort the points in the order of the leaves, in place, and list the leaves."""
    return _Splitter(points, max_points).leaves()


class _Splitter:
    def __init__(self, points: Sorted, max_points: int) -> None:
        self.sorted = points
        self.max_points = max_points
        self.spare = buffers.empty_like(points.key), buffers.empty_like(points.order)
        self.found: list[tuple[Any, Any, Any, Any]] = []

    def leaves(self) -> Leaves:
        root = self.sorted.root
        self._settle(root.level, np.array(root.cell), root.level, 0, len(self.sorted.key))
        level, cell, first, points = (
            np.concatenate(each) for each in zip(*self.found, strict=True)
        )
        ranked = np.argsort(first)
        return Leaves(level[ranked], cell[ranked], first[ranked], points[ranked])

    def _settle(self, level: int, cell: Any, alone: int, start: int, stop: int) -> None:
        """Make a cell a leaf or split it; from level `alone` on no other cell holds points."""
        if stop - start > self.max_points and not self._is_one_place(start, stop):
            self._divide(level, cell, start, stop)
            return
        self._keep(alone, cell[None] >> (level - alone), [start], [stop - start])

    def _keep(self, level: int, cell: Any, first: Any, points: Any) -> None:
        self.found.append((np.full(len(cell), level), cell, np.asarray(first), np.asarray(points)))

    def _is_one_place(self, start: int, stop: int) -> bool:
        xyz, cube = self.sorted.places()
        return bool(is_one_place(*xyz, *cube, self.sorted.order, start, stop))

    def _divide(self, level: int, cell: Any, start: int, stop: int) -> None:
        n = stop - start
        depth = self._depth(n)
        parts = spans(n, 1 if n < SMALL else n_threads())
        codes = buffers.scratch(n, np.uint32)
        counts = np.zeros((len(parts), 1 << 3 * depth), np.uint32)

        def count(which: tuple[int, int]) -> None:
            for k in range(*which):
                for low, high in steps(*parts[k]):
                    self.sorted.codes(level, depth, start + low, start + high, codes[low:high])
                    count_codes(codes, low, high, counts[k])

        in_threads(count, len(parts))
        sums = pyramid(counts)
        most = min(n, 1 << 3 * depth)
        groups = np.empty((4, most), np.int64)
        group_of = np.empty(1 << 3 * depth, np.uint32)
        deep, code, points, alone = groups[:, : cut(sums, depth, self.max_points, group_of, groups)]
        first = start + np.cumsum(points) - points
        slots = np.empty((len(parts), len(code)), np.int64)
        begin_slots(counts, group_of, first, slots)
        key, order = self.sorted.key, self.sorted.order

        def move(which: tuple[int, int]) -> None:
            for k in range(*which):
                for part in steps(*parts[k]):
                    move_points(codes, group_of, slots[k], key, order, start, *part, *self.spare)

        def back(span: tuple[int, int]) -> None:
            low, high = start + span[0], start + span[1]
            key[low:high] = self.spare[0][low:high]
            order[low:high] = self.spare[1][low:high]

        in_threads(move, len(parts))
        if n == len(key):  # swap instead of copying a whole cloud back
            self.sorted.key, self.sorted.order, self.spare = *self.spare, (key, order)
        else:
            in_threads(back, n, worth=FEW_POINTS)
        inside = cells_below(cell, deep, code)
        full = points > self.max_points
        for d in range(1, depth + 1):
            here = ~full & (deep == d)
            self._keep(level + d, inside[here], first[here], points[here])
        few = full & (points <= MAX_SORTED_POINTS)
        self._divide_few(level + deep[few], level + alone[few], first[few], points[few])
        for k in np.flatnonzero(full & ~few):
            bottom = level + int(deep[k])
            self._settle(
                bottom, inside[k], level + int(alone[k]), int(first[k]), int(first[k] + points[k])
            )

    def _divide_few(self, level: Any, alone: Any, first: Any, points: Any) -> None:
        """Split cells of few points each; a thread splits one after the other."""
        if not len(first):
            return
        xyz, cube = self.sorted.places()
        key, order = self.sorted.key, self.sorted.order
        begin = int(first[0])
        n = int(first[-1] + points[-1]) - begin
        leaf_level, leaf_points = buffers.zeros(n, np.int32), buffers.zeros(n, np.int32)

        def divide(which: tuple[int, int]) -> None:
            for k in range(*which):
                low, high = int(first[k]), int(first[k] + points[k])
                divide_few(
                    *xyz, *cube, key, order, low, high, int(level[k]), int(alone[k]),
                    self.max_points, begin, leaf_level, leaf_points,
                )  # fmt: skip

        in_threads(divide, len(first))
        at = buffers.positions(leaf_points)
        level = leaf_level[at].astype(np.int64)
        cell = np.empty((len(at), 3), np.int64)
        cells_of(*xyz, *cube, order, begin + at, level, cell)
        self.found.append((level, cell, begin + at, leaf_points[at]))

    def _depth(self, n: int) -> int:
        """Levels that suffice for n points of a surface, and some more for dense places."""
        leaves = n // self.max_points
        return min(DEPTH, 2 + leaves.bit_length() // 2)


def cells_below(cell: Any, deep: Any, code: Any) -> Any:
    """Find the cells `deep` levels below a cell by their Morton codes."""
    return (cell << deep[:, None]) + np.stack([gather(code >> k) for k in (2, 1, 0)], 1)


@njit(cache=True, nogil=True, error_model="numpy")
def is_one_place(
    x: Floats,
    y: Floats,
    z: Floats,
    x0: float,
    y0: float,
    z0: float,
    size: float,
    order: Any,
    start: int,
    stop: int,
) -> bool:
    """Whether all points have the same place."""
    one = order[start]
    at_x, at_y, at_z = place(x[one], x0, size), place(y[one], y0, size), place(z[one], z0, size)
    i = start + 1
    while (
        i < stop
        and place(x[order[i]], x0, size) == at_x
        and place(y[order[i]], y0, size) == at_y
        and place(z[order[i]], z0, size) == at_z
    ):
        i += 1
    return i == stop


@njit(cache=True, nogil=True, error_model="numpy")
def divide_few(
    x: Floats,
    y: Floats,
    z: Floats,
    x0: float,
    y0: float,
    z0: float,
    size: float,
    key: Any,
    order: Any,
    start: int,
    stop: int,
    level: int,
    alone: int,
    max_points: int,
    begin: int,
    leaf_level: Int32s,
    leaf_points: Int32s,
) -> None:
    """Split a cell by sorting its points by their codes, `KEY_LEVELS` levels at a time.

    Parameters
    ----------
    alone : int
        The level from which on no other cell holds points.
    begin : int
        The position in `order` to which the first entry of `leaf_level` and `leaf_points` belongs.
    leaf_level, leaf_points : int32[...]
        Out: written at the position of the first point of each leaf.
    """
    n = stop - start
    codes = np.empty(n, np.int64)
    waiting = np.empty((n, 4), np.int64)  # cells to sort
    waiting[0] = start, stop, level, alone
    n_waiting = 1
    inside = np.empty((8 * KEY_LEVELS, 3), np.int64)  # sorted cells that are still to be divided
    while n_waiting:
        n_waiting -= 1
        first, last, top, alone = waiting[n_waiting]
        if is_one_place(x, y, z, x0, y0, z0, size, order, first, last):
            leaf_level[first - begin] = alone
            leaf_points[first - begin] = last - first
            continue
        keys(x[order[first:last]], y[order[first:last]], z[order[first:last]],
             x0, y0, z0, size, top, codes, 0, last - first)  # fmt: skip
        ranked = np.argsort(codes[: last - first], kind="mergesort")
        codes[: last - first] = codes[ranked]
        key[first:last] = key[first:last][ranked]
        order[first:last] = order[first:last][ranked]
        inside[0] = 0, last - first, 0
        n_inside = 1
        while n_inside:
            n_inside -= 1
            low, high, deep = inside[n_inside]
            if high - low <= max_points:
                leaf_level[first + low - begin] = top + deep
                leaf_points[first + low - begin] = high - low
                by_position = np.argsort(order[first + low : first + high])
                key[first + low : first + high] = key[first + low : first + high][by_position]
                order[first + low : first + high] = order[first + low : first + high][by_position]
            elif codes[low] == codes[high - 1]:
                waiting[n_waiting, 0], waiting[n_waiting, 1] = first + low, first + high
                waiting[n_waiting, 2] = top + KEY_LEVELS
                waiting[n_waiting, 3] = top + deep if deep > 0 else alone
                n_waiting += 1
            else:
                shift = 3 * (KEY_LEVELS - 1 - deep)
                end = low
                while end < high:
                    begins = end
                    while end < high and codes[end] >> shift == codes[begins] >> shift:
                        end += 1
                    inside[n_inside, 0], inside[n_inside, 1] = begins, end
                    inside[n_inside, 2] = deep + 1
                    n_inside += 1


@njit(cache=True, nogil=True, error_model="numpy")
def cells_of(
    x: Floats,
    y: Floats,
    z: Floats,
    x0: float,
    y0: float,
    z0: float,
    size: float,
    order: Any,
    at: Any,
    level: Any,
    cell: Any,
) -> None:
    """Write the cell of each point at its level."""
    for k in range(len(at)):
        point = order[at[k]]
        cell[k, 0] = place(x[point], x0, size) >> (BITS - level[k])
        cell[k, 1] = place(y[point], y0, size) >> (BITS - level[k])
        cell[k, 2] = place(z[point], z0, size) >> (BITS - level[k])


@njit(cache=True, nogil=True, error_model="numpy")
def count_codes(codes: Any, start: int, stop: int, counts: Any) -> None:
    """Count the points of each cell."""
    for i in range(start, stop):
        counts[codes[i]] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def pyramid(counts: Any) -> Any:
    """Sum the counts of all threads, then of eight siblings: level d begins at (8**d - 1) / 7."""
    n_parts, n_cells = counts.shape
    first = (n_cells - 1) // 7
    sums = np.zeros(first + n_cells, np.int64)
    for part in range(n_parts):
        for c in range(n_cells):
            sums[first + c] += counts[part, c]
    for k in range(first + n_cells - 1, 0, -1):
        sums[(k - 1) // 8] += sums[k]
    return sums


@njit(cache=True, nogil=True, error_model="numpy")
def cut(sums: Ints, depth: int, max_points: int, group_of: Any, groups: Ints) -> int:
    """Find the coarsest cells that have few enough points, or else the finest cells.

    Parameters
    ----------
    sums : int64[...]
        From `pyramid`.
    group_of : uint32[8**depth]
        Out: the group of each finest cell; not written for cells without points.
    groups : int64[4, most]
        Out, for each group: its depth, its Morton code at that depth, its number of points, and the
        depth from which on it holds all points of the cell around it.
    """
    found = 0
    at = 0
    while at < 1 << 3 * depth:
        deep = 1
        first = 1
        size = 1 << 3 * (depth - 1)
        # a cell that begins here is in no group yet, so all cells above it were too full
        while at % size != 0 or (deep < depth and sums[first + at // size] > max_points):
            deep += 1
            first = 8 * first + 1
            size >>= 3
        points = sums[first + at // size]
        if points > 0:
            groups[0, found] = deep
            groups[1, found] = at // size
            groups[2, found] = points
            alone = deep
            node = first + at // size
            while alone > 1 and sums[(node - 1) // 8] == points:
                node = (node - 1) // 8
                alone -= 1
            groups[3, found] = alone
            group_of[at : at + size] = found
            found += 1
        at += size
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def begin_slots(counts: Any, group_of: Any, first: Any, slots: Any) -> None:
    """Find the first position in each group that each thread writes to."""
    n_parts, n_cells = counts.shape
    slots[:] = 0
    for part in range(n_parts):
        for c in range(n_cells):
            if counts[part, c] > 0:
                slots[part, group_of[c]] += counts[part, c]
    for group in range(len(first)):
        at = first[group]
        for part in range(n_parts):
            points = slots[part, group]
            slots[part, group] = at
            at += points


@njit(cache=True, nogil=True, error_model="numpy")
def move_points(
    codes: Any,
    group_of: Any,
    slots: Any,
    key: Any,
    order: Any,
    first: int,
    start: int,
    stop: int,
    key_out: Any,
    order_out: Any,
) -> None:
    """Move points to their groups and keep their order within each group."""
    for i in range(start, stop):
        group = group_of[codes[i]]
        slot = slots[group]
        slots[group] = slot + 1
        key_out[slot] = key[first + i]
        order_out[slot] = order[first + i]
