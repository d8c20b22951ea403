"""Points into the leaves of the octree: a counting sort of cells, again in cells too full.

Schütz et al. 2023, section 4.1. Their merging of small neighbours is, seen from the root, splitting
no cell that has few enough points; so is it done here.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.numba_cache import njit
from spatialq.parallel import in_threads, n_threads, spans

from .places import KEY_LEVELS, codes_of_keys, codes_of_places, gather, place
from .tree import Cube, Points, Root

DEPTH = 6
"""Levels that a counting sort reaches: 2**18 counters stay in a core's own cache."""
SMALL = 1 << 15
"""Points that are no work for several threads."""


@dataclass(frozen=True)
class Leaves:
    """Leaves in Morton order, depth first.

    Parameters
    ----------
    level : int64[leaves]
    cell : int64[leaves, 3]
    first, points : int64[leaves]
        Its points are ``order[first : first + points]``.
    """

    level: Any
    cell: Any
    first: Any
    points: Any

    def root(self, k: int) -> Root:
        """Give the cell of a leaf."""
        x, y, z = self.cell[k].tolist()
        return Root(int(self.level[k]), (x, y, z))


@dataclass
class Sorted:
    """Points in the order of the leaves.

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
        """Write Morton codes of `depth` levels below `level` for places start:stop."""
        rest = KEY_LEVELS - (level - self.root.level) - depth
        if rest >= 0:
            codes_of_keys(self.key, 3 * rest, 3 * depth, start, stop, out)
        else:
            xyz = self.points.x, self.points.y, self.points.z
            cube = self.cube.x0, self.cube.y0, self.cube.z0, self.cube.size
            codes_of_places(*xyz, *cube, self.order, level, depth, start, stop, out)


def split(points: Sorted, max_points: int) -> Leaves:
    """Move the points into the order of the leaves, and list these."""
    return _Splitter(points, max_points).leaves()


class _Splitter:
    def __init__(self, points: Sorted, max_points: int) -> None:
        self.sorted = points
        self.max_points = max_points
        self.spare = np.empty_like(points.key), np.empty_like(points.order)
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
        """Make a leaf of a cell, or split it; from level `alone` on it holds all there is."""
        if stop - start > self.max_points and not self._is_one_place(start, stop):
            self._divide(level, cell, start, stop)
            return
        self._keep(alone, cell[None] >> (level - alone), [start], [stop - start])

    def _keep(self, level: int, cell: Any, first: Any, points: Any) -> None:
        self.found.append((np.full(len(cell), level), cell, np.asarray(first), np.asarray(points)))

    def _is_one_place(self, start: int, stop: int) -> bool:
        points, cube = self.sorted.points, self.sorted.cube
        xyz = points.x, points.y, points.z
        low = cube.x0, cube.y0, cube.z0
        return all(
            places_begin_to_differ(*axis, cube.size, self.sorted.order, start, stop) == stop
            for axis in zip(xyz, low, strict=True)
        )

    def _divide(self, level: int, cell: Any, start: int, stop: int) -> None:
        n = stop - start
        depth = self._depth(n)
        parts = spans(n, 1 if n < SMALL else n_threads())
        codes = np.empty(n, np.uint32)
        counts = np.zeros((len(parts), 1 << 3 * depth), np.uint32)

        def count(which: tuple[int, int]) -> None:
            for k in range(*which):
                low, high = parts[k]
                self.sorted.codes(level, depth, start + low, start + high, codes[low:high])
                count_codes(codes, low, high, counts[k])

        in_threads(count, len(parts))
        sums = pyramid(counts, depth)
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
                low, high = parts[k]
                move_points(codes, group_of, slots[k], key, order, start, low, high, *self.spare)

        def back(span: tuple[int, int]) -> None:
            low, high = start + span[0], start + span[1]
            key[low:high] = self.spare[0][low:high]
            order[low:high] = self.spare[1][low:high]

        in_threads(move, len(parts))
        if n == len(key):  # no need to copy all of a cloud back
            self.sorted.key, self.sorted.order, self.spare = *self.spare, (key, order)
        else:
            in_threads(back, n)
        inside = cells_below(cell, deep, code)
        full = points > self.max_points
        for d in range(1, depth + 1):
            here = ~full & (deep == d)
            self._keep(level + d, inside[here], first[here], points[here])
        for k in np.flatnonzero(full):
            bottom = level + int(deep[k])
            self._settle(
                bottom, inside[k], level + int(alone[k]), int(first[k]), int(first[k] + points[k])
            )

    def _depth(self, n: int) -> int:
        """Levels that will do for points of a surface, and some more where they crowd."""
        leaves = n // self.max_points
        return min(DEPTH, 2 + leaves.bit_length() // 2)


def cells_below(cell: Any, deep: Any, code: Any) -> Any:
    """Find the cells so many levels below one that have these Morton codes there."""
    return (cell << deep[:, None]) + np.stack([gather(code >> k) for k in (2, 1, 0)], 1)


@njit(cache=True, nogil=True, error_model="numpy")
def places_begin_to_differ(
    x: Any, low: float, size: float, order: Any, start: int, stop: int
) -> int:
    """Find the first point whose place along an axis is not that of the points before."""
    where = place(x[order[start]], low, size)
    i = start + 1
    while i < stop and place(x[order[i]], low, size) == where:
        i += 1
    return i


@njit(cache=True, nogil=True, error_model="numpy")
def count_codes(codes: Any, start: int, stop: int, counts: Any) -> None:
    """Count the points of each cell."""
    for i in range(start, stop):
        counts[codes[i]] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def pyramid(counts: Any, depth: int) -> Any:
    """Sum the counts of parts, and of eight cells each: level d begins at (8**d - 1) / 7."""
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
def cut(sums: Any, depth: int, max_points: int, group_of: Any, groups: Any) -> int:
    """Find the coarsest cells that have few enough points, else the finest ones.

    Parameters
    ----------
    sums : int64[...]
        As from `pyramid`.
    group_of : uint32[8**depth]
        Out: which of them a cell is in; not written for cells without points.
    groups : int64[4, most]
        Out, for each: its depth, its Morton code there, its points, and the depth from which on
        it holds all the points of the cells around it.
    """
    found = 0
    at = 0
    while at < 1 << 3 * depth:
        deep = 1
        first = 1
        size = 1 << 3 * (depth - 1)
        # a cell that begins here is not inside of one already taken, so those above were too full
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
    """Find where each part of the points begins to write in each group."""
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
    """Move points to their groups, in the order they come in."""
    for i in range(start, stop):
        group = group_of[codes[i]]
        slot = slots[group]
        slots[group] = slot + 1
        key_out[slot] = key[first + i]
        order_out[slot] = order[first + i]
