"""The Numba loops of `owm_ground` on the CPU.

A cell is a record: `z` and `p` are the height and the position of its lowest point, `n` is its
number of points; all are zero while it is empty. Of two points with the same z the one with the
lower `code` wins, then the one with the lower `point_id`; either may be empty, then the positions
decide.

Two rules decide the speed. Arrays are separate arguments and hot loops call no functions, because
Numba counts references in memory shared by all threads whenever an array is passed on. Indices that
cannot be negative are unsigned, which saves the test for negative (wrap-around) indices.
"""

from typing import Any

import numpy as np
from numba import uint64

from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit

from .windows import LEAF

BLOCK = 2048
"""Points whose columns are computed together, before any cell is accessed."""


@njit(cache=True, nogil=True)
def extent(x: Floats, y: Floats, start: int, stop: int) -> tuple[float, float, float, float, int]:
    """Find minimum and maximum of x and y, and count the points that are not finite."""
    x_low, x_high, y_low, y_high, bad = np.inf, -np.inf, np.inf, -np.inf, 0
    for i in range(start, stop):
        a, b = x[i], y[i]
        x_low, x_high = min(x_low, a), max(x_high, a)
        y_low, y_high = min(y_low, b), max(y_high, b)
        bad += (a - a) + (b - b) != 0  # infinity and NaN give NaN
    return x_low, x_high, y_low, y_high, bad


@njit(cache=True, nogil=True)
def octree_codes(
    x: Floats, y: Floats, z: Floats, root_x: float, root_y: float, root_half: float,
    start: int, stop: int, codes: Any,
) -> None:  # fmt: skip
    """Write codes that order the points [start, stop) as the reference's octree visits them.

    A code has three bits per level, x before y before z. The reference stores half sides in single
    precision and sets the centre of the root to height 0.
    """
    for i in range(start, stop):
        cx, cy, cz = root_x, root_y, 0.0
        half: Any = np.float32(root_half)
        code = 0
        while half / np.float32(2) > LEAF:
            half = half / np.float32(2)
            right, behind, up = x[i] >= cx, y[i] >= cy, z[i] >= cz
            code = 8 * code + 4 * right + 2 * behind + up
            cx += half if right else -half
            cy += half if behind else -half
            cz += half if up else -half
        codes[i] = code


@njit(cache=True, nogil=True)
def before(code: Any, point_id: Ints, p: int, q: int) -> Any:
    """Whether point p wins over point q of the same z."""
    if code.size > 0 and code[p] != code[q]:
        return code[p] < code[q]
    return point_id[p] < point_id[q] if point_id.size > 0 else p < q


@njit(cache=True, nogil=True)
def locate(values: Any, step: float, borders: Any, guess: Any, columns: Any, result: Any) -> None:
    """Find the columns of coordinates; -1 outside all windows and fill cells."""
    if step > 0:
        _locate_even(values, borders[0], step, borders.size - 1, result)
    else:
        _locate_any(values, borders, guess, columns, result)


@njit(cache=True, nogil=True)
def _locate_even(values: Any, low: float, step: float, n_borders: int, result: Any) -> None:
    # Branch-free arithmetic, which the compiler vectorises: eight points at a time.
    scale = 1 / step
    high = low + (n_borders - 1.0) * step
    for i in range(values.size):
        value = values[i]
        nearest = np.floor((value - low) * scale + 0.5)
        border = low + nearest * step
        column = nearest - (1.0 if value < border else 0.0)
        column = n_borders - 1.0 + nearest if value == border else column
        column = column if value >= low else -1.0
        result[i] = np.int32(column if value <= high else -1.0)


@njit(cache=True, nogil=True)
def _locate_any(values: Any, borders: Any, guess: Any, columns: Any, result: Any) -> None:
    low, high = borders[0], borders[borders.size - 2]
    scale = (guess.size - 1) / (high - low) if high > low else 0.0
    for i in range(values.size):
        value = values[i]
        if not (value >= low and value <= high):
            result[i] = -1
            continue
        k = uint64(guess[uint64((value - low) * scale)])
        k += uint64(borders[k + uint64(1)] <= value)  # nearly always sufficient, without a branch
        while borders[k + uint64(1)] <= value:
            k += uint64(1)
        result[i] = columns[uint64(2) * k + uint64(borders[k] < value)]


@njit(cache=True, nogil=True)
def fill_table(
    x: Floats, y: Floats, z: Floats, code: Any, point_id: Ints, start: int, stop: int,
    x_step: float, x_borders: Any, x_guess: Any, x_columns: Any,
    y_step: float, y_borders: Any, y_guess: Any, y_columns: Any, table: Any, n_columns: int,
) -> int:  # fmt: skip
    """Bin the points [start, stop) into the flat table; count those whose z is not finite."""
    columns = np.empty(BLOCK, np.int32)
    rows = np.empty(BLOCK, np.int32)
    bad = 0
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        locate(x[first:last], x_step, x_borders, x_guess, x_columns, columns)
        locate(y[first:last], y_step, y_borders, y_guess, y_columns, rows)
        for k in range(last - first):
            i = uint64(first + k)
            height = z[i]
            bad += height - height != 0
            if columns[k] < 0 or rows[k] < 0:
                continue
            cell = uint64(rows[k]) * uint64(n_columns) + uint64(columns[k])
            n = table[cell].n
            table[cell].n = n + 1
            if n > 0:
                lowest = table[cell].z
                if height > lowest:
                    continue
                if height == lowest:
                    p = uint64(table[cell].p)
                    if code.size > 0 and code[p] != code[i]:
                        if code[p] < code[i]:
                            continue
                    elif point_id[p] < point_id[i] if point_id.size > 0 else p < i:
                        continue
            table[cell].z = height
            table[cell].p = i
    return bad


@njit(cache=True, nogil=True)
def merge(code: Any, point_id: Any, table: Any, other: Any, start: int, stop: int) -> None:
    """Merge the cells [start, stop) of another flat table into this one."""
    for i in range(start, stop):
        n = other[i].n
        if n == 0:
            continue
        height, p = other[i].z, other[i].p
        lowest = table[i].z
        if (
            table[i].n == 0
            or height < lowest
            or (height == lowest and before(code, point_id, p, table[i].p))
        ):
            table[i].z = height
            table[i].p = p
        table[i].n += n


@njit(cache=True, nogil=True)
def slide(
    code: Any, point_id: Any, source: Any, row_order: Any, slot_order: Any,
    starts: Any, stops: Any, first: int, last: int, result: Any,
) -> None:  # fmt: skip
    """Find the lowest point and the count of each run of slots along the rows [first, last).

    Row k of the axis is `source[row_order[k]]`, and slot i of a row is its cell `slot_order[i]`.
    Run w is the slots [starts[w], stops[w]), both ascending with w; its result is `result[w, k]`.
    A queue holds the slots that can still become the lowest, so that each slot is visited a fixed
    number of times, however far the windows overlap.
    """
    queue = np.empty(slot_order.size, np.int32)
    for k in range(first, last):
        r = row_order[k]
        head, tail, entered, left, n = 0, 0, 0, 0, 0
        for w in range(starts.size):
            while entered < stops[w]:
                new = slot_order[entered]
                if source[r, new].n > 0:
                    n += source[r, new].n
                    height = source[r, new].z
                    while tail > head:
                        old = slot_order[queue[tail - 1]]
                        lowest = source[r, old].z
                        if lowest < height or (
                            lowest == height
                            and before(code, point_id, source[r, old].p, source[r, new].p)
                        ):
                            break
                        tail -= 1
                    queue[tail] = entered
                    tail += 1
                entered += 1
            while left < starts[w]:
                n -= source[r, slot_order[left]].n
                left += 1
            while head < tail and queue[head] < left:
                head += 1
            result[w, k].n = n
            if n > 0:
                lowest_slot = slot_order[queue[head]]
                result[w, k].z = source[r, lowest_slot].z
                result[w, k].p = source[r, lowest_slot].p


@njit(cache=True, nogil=True)
def count_hits(
    winners: Any, rows: Any, columns: Any, needed: int, hits: Any, seeds: Any
) -> int:  # fmt: skip
    """Count the windows that each cell's point wins; list points that win `needed` of them.

    Returns how many `seeds` there are.
    """
    n = 0
    for i in range(winners.size):
        hits[rows[i], columns[i]] += 1
        if hits[rows[i], columns[i]] == needed:
            seeds[n] = winners[i]
            n += 1
    return n


@njit(cache=True, nogil=True)
def fill_gaps(
    z: Floats, code: Any, point_id: Any, table: Any, seeded: Any,
    row_order: Any, row_starts: Any, row_stops: Any,
    column_order: Any, column_starts: Any, column_stops: Any, first: int, last: int,
) -> Any:  # fmt: skip
    """Find the lowest point of each fill cell of the rows [first, last) that has no seed.

    A cell without points has none.
    """
    found = np.empty((last - first) * column_starts.size, np.int64)
    n = 0
    for j in range(first, last):
        for i in range(column_starts.size):
            if seeded[j, i]:
                continue
            lowest = -1
            for b in range(row_starts[j], row_stops[j]):
                for a in range(column_starts[i], column_stops[i]):
                    r, c = row_order[b], column_order[a]
                    if table[r, c].n == 0:
                        continue
                    p = table[r, c].p
                    if (
                        lowest < 0
                        or z[p] < z[lowest]
                        or (z[p] == z[lowest] and before(code, point_id, p, lowest))
                    ):
                        lowest = p
            if lowest >= 0:
                found[n] = lowest
                n += 1
    return found[:n].copy()
