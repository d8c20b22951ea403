"""The Numba loops of `owm_ground` on the CPU. No allocation of note, no Python objects.

A cell is a record: `z` and `p` are height and position of its lowest point, `n` its number of
points; all zero while it is empty. `cloud` is the tuple (x, y, z, point_id, root); `root` is the
octree's (x, y, half side) for ties in its order, with a half side of 0 for ties by point_id.
"""

from typing import Any

import numpy as np
from numba import njit

LEAF = 0.10
"""Octants of the reference's tree are halved while half of their half side exceeds this."""


@njit(cache=True, nogil=True)
def extent(x: Any, y: Any, start: int, stop: int) -> tuple[float, float, float, float, int]:
    """Least and greatest x and y, and how many of the points have one that is not finite."""
    x_low, x_high, y_low, y_high, bad = np.inf, -np.inf, np.inf, -np.inf, 0
    for i in range(start, stop):
        a, b = x[i], y[i]
        x_low, x_high = min(x_low, a), max(x_high, a)
        y_low, y_high = min(y_low, b), max(y_high, b)
        bad += (a - a) + (b - b) != 0  # infinity and NaN give NaN
    return x_low, x_high, y_low, y_high, bad


@njit(cache=True, nogil=True)
def octree_before(cloud: Any, p: int, q: int) -> bool:
    """Whether the reference's octree visits point p before q (its octants: x, then y, then z)."""
    x, y, z, point_id, root = cloud
    cx, cy, cz = root[0], root[1], 0.0
    half = np.float32(root[2])
    while half / np.float32(2) > LEAF:
        half = half / np.float32(2)
        px, qx = x[p] >= cx, x[q] >= cx
        py, qy = y[p] >= cy, y[q] >= cy
        up = z[p] >= cz
        if px != qx:
            return not px
        if py != qy:
            return not py
        cx += half if px else -half
        cy += half if py else -half
        cz += half if up else -half
    return point_id[p] < point_id[q]


@njit(cache=True, nogil=True)
def before(cloud: Any, p: int, q: int) -> bool:
    """Whether point p wins over point q of the same z."""
    if cloud[4][2] > 0:
        return octree_before(cloud, p, q)
    return cloud[3][p] < cloud[3][q]


@njit(cache=True, nogil=True)
def column(value: float, axis: Any) -> int:
    """Column of a coordinate in the table of cells; -1 where no window or fill cell reaches."""
    borders, guess, scale, interval_column, border_column, _ = axis
    last = borders.size - 1
    if not (value >= borders[0] and value <= borders[last]):
        return -1
    k = guess[min(int((value - borders[0]) * scale), guess.size - 1)]
    while k > 0 and borders[k] > value:
        k -= 1
    while k < last and borders[k + 1] <= value:
        k += 1
    return border_column[k] if borders[k] == value else interval_column[k]


@njit(cache=True, nogil=True)
def occupy(values: Any, axis: Any, used: Any) -> None:
    """Mark the columns of an axis that have points."""
    for i in range(values.size):
        k = column(values[i], axis)
        if k >= 0:
            used[k] = True


@njit(cache=True, nogil=True)
def fill_table(cloud: Any, start: int, stop: int, columns: Any, rows: Any, table: Any) -> int:
    """Bin the points [start, stop); return how many have a z that is not finite."""
    x, y, z = cloud[0], cloud[1], cloud[2]
    bad = 0
    for i in range(start, stop):
        height = z[i]
        bad += height - height != 0
        c = column(x[i], columns)
        r = column(y[i], rows)
        if c < 0 or r < 0:
            continue
        cell = table[r, c]
        if (
            cell.n == 0
            or height < cell.z
            or (height == cell.z and before(cloud, i, cell.p))
        ):
            cell.z = height
            cell.p = i
        cell.n += 1
    return bad


@njit(cache=True, nogil=True)
def merge(cloud: Any, table: Any, other: Any, start: int, stop: int) -> None:
    """Take rows [start, stop) of another table into this one."""
    for r in range(start, stop):
        for c in range(table.shape[1]):
            new, cell = other[r, c], table[r, c]
            if new.n == 0:
                continue
            if (
                cell.n == 0
                or new.z < cell.z
                or (new.z == cell.z and before(cloud, new.p, cell.p))
            ):
                cell.z = new.z
                cell.p = new.p
            cell.n += new.n


@njit(cache=True, nogil=True)
def slide(
    cloud: Any, source: Any, order: Any, runs: Any, first: int, last: int, result: Any
) -> None:
    """Lowest point and number of points of every run of slots along each row.

    Row k of the axis is `source[order[0][k]]`, slot i of a row is its cell `order[1][i]`; run w
    is the slots [runs[0][w], runs[1][w]), both rising with w. `result[w, k]` is its sum. Along
    a row a queue holds the slots that may still become the lowest, so each slot is looked at
    a fixed number of times however far the windows overlap.
    """
    row_order, slot_order = order
    starts, stops = runs
    queue = np.empty(slot_order.size, np.int32)
    for k in range(first, last):
        row = source[row_order[k]]
        head, tail, entered, left, n = 0, 0, 0, 0, 0
        for w in range(starts.size):
            while entered < stops[w]:
                new = row[slot_order[entered]]
                if new.n > 0:
                    n += new.n
                    while tail > head:
                        old = row[slot_order[queue[tail - 1]]]
                        if old.z < new.z or (old.z == new.z and before(cloud, old.p, new.p)):
                            break
                        tail -= 1
                    queue[tail] = entered
                    tail += 1
                entered += 1
            while left < starts[w]:
                n -= row[slot_order[left]].n
                left += 1
            while head < tail and queue[head] < left:
                head += 1
            out = result[w, k]
            out.n = n
            if n > 0:
                lowest = row[slot_order[queue[head]]]
                out.z = lowest.z
                out.p = lowest.p


@njit(cache=True, nogil=True)
def count_hits(
    cloud: Any, windows: Any, least: int, needed: int, columns: Any, rows: Any, hits: Any
) -> Any:
    """Count for each cell the windows that its point wins; return the points with `needed`."""
    x, y = cloud[0], cloud[1]
    seeds = np.empty(windows.size // needed, np.int64)
    n = 0
    for j in range(windows.shape[0]):
        for i in range(windows.shape[1]):
            window = windows[j, i]
            if window.n < least:
                continue
            r, c = column(y[window.p], rows), column(x[window.p], columns)
            hits[r, c] += 1
            if hits[r, c] == needed:
                seeds[n] = window.p
                n += 1
    return seeds[:n].copy()


@njit(cache=True, nogil=True)
def fill_gaps(
    cloud: Any, table: Any, hits: Any, needed: int, orders: Any, row_runs: Any, column_runs: Any
) -> Any:
    """The lowest point of each fill cell that has points but no seed."""
    row_order, column_order = orders
    found = np.empty(row_runs[0].size * column_runs[0].size, np.int64)
    n = 0
    for j in range(row_runs[0].size):
        for i in range(column_runs[0].size):
            lowest = -1
            seeded = False
            for b in range(row_runs[0][j], row_runs[1][j]):
                for a in range(column_runs[0][i], column_runs[1][i]):
                    r, c = row_order[b], column_order[a]
                    if hits[r, c] >= needed:
                        seeded = True
                        break
                    cell = table[r, c]
                    if cell.n > 0 and (
                        lowest < 0
                        or cell.z < cloud[2][lowest]
                        or (cell.z == cloud[2][lowest] and before(cloud, cell.p, lowest))
                    ):
                        lowest = cell.p
                if seeded:
                    break
            if lowest >= 0 and not seeded:
                found[n] = lowest
                n += 1
    return found[:n].copy()


@njit(cache=True, nogil=True)
def hits_of(cloud: Any, points: Any, columns: Any, rows: Any, hits: Any) -> Any:
    """How many windows each of these points won."""
    result = np.empty(points.size, np.int32)
    for i in range(points.size):
        p = points[i]
        result[i] = hits[column(cloud[1][p], rows), column(cloud[0][p], columns)]
    return result
