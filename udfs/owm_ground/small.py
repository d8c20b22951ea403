"""The seeds of a small cloud on the CPU, without a table of slots.

A small cloud has few windows and fill cells, so that each point looks for those that it is in, by
comparison with the borders that windows.py defines. Groups of `GROUP BY` often have ten points, for
which the arrays of cpu.py take a hundred calls of NumPy.
"""

from typing import Any

import numpy as np

from spatialq.runtime.arrays import Array, Floats, Int32s, Ints
from spatialq.runtime.compile_cache import njit

from . import Options
from .windows import MIN_STEP, Box

MAX_POINTS = 256
MAX_ALONG = 64
"""Windows, and fill cells, along an axis."""
OF_POINTS = 4 * (np.nan,)
"""Stands for the extent of the points."""


def seeds_of(
    cloud: tuple[Array, Array, Array, Array],
    options: Options,
    box: Box | None,
) -> tuple[Ints, Int32s, int] | None:
    """Find the seeds of a cloud, and the lowest points of the fill cells that have none.

    Parameters
    ----------
    cloud : x, y, z float64[n], n > 0, and point_id int64[n] or int64[0] for the positions
        All read-only.
    options : Options
        With ties by id; `bounds` are not looked at.
    box : Box, optional
        The extent that windows and fill cells divide; by default that of the points.

    Returns
    -------
    points : int64[m]
        Their positions: seeds, then filled points, each by ascending id.
    hits : int32[m]
    n_seeds : int
    None
        If cpu.py has to do it: because the windows are many, or a coordinate is not valid.
    """
    # whole numbers would be compiled for, too
    size, cell, *along = map(
        float, (options.window_size, options.cell_size, *options.overlaps, *options.steps)
    )
    given = OF_POINTS if box is None else map(float, (end for side in box.sides for end in side))
    points, hits, n_seeds = _seeds(
        *cloud, *given, size, *along, options.half(size), cell, options.half(cell),
        options.min_points or 0, options.hits_needed,
    )  # fmt: skip
    return None if n_seeds < 0 else (points, hits, n_seeds)


@njit(cache=True, nogil=True)
def _seeds(
    x: Floats, y: Floats, z: Floats, point_id: Any, west: float, east: float, south: float,
    north: float, size: float, overlap_x: float, overlap_y: float, step_x: float, step_y: float,
    half: float, cell: float, half_cell: float, min_points: int, needed: int,
) -> tuple[Any, Any, int]:  # fmt: skip
    """Do as `seeds_of`; the number of seeds is -1 for None."""
    n = x.size
    points, hits = np.empty(n, np.int64), np.zeros(n, np.int32)
    none = points[:0], hits[:0], -1
    x_low, x_high, y_low, y_high = x[0], x[0], y[0], y[0]
    for i in range(n):
        if x[i] - x[i] + (y[i] - y[i]) + (z[i] - z[i]) != 0:  # infinity and NaN give NaN
            return none
        x_low, x_high = min(x_low, x[i]), max(x_high, x[i])
        y_low, y_high = min(y_low, y[i]), max(y_high, y[i])
    if not np.isnan(west):
        x_low, x_high, y_low, y_high = west, east, south, north
    largest = max(abs(x_low), abs(x_high), abs(y_low), abs(y_high))
    if np.spacing(largest) * MIN_STEP > min(step_x, step_y):
        return none
    width, height = _hundredths(x_high - x_low), _hundredths(y_high - y_low)
    n_columns = _count(width, size, overlap_x, step_x)
    n_rows = _count(height, size, overlap_y, step_y)
    n_across = np.floor(width / cell) + 1 if cell > 0 else 0.0
    n_along = np.floor(height / cell) + 1 if cell > 0 else 0.0
    if max(n_columns, n_rows, n_across, n_along) > MAX_ALONG:
        return none
    if min_points == 0:
        area = width * height
        share = 0.5 * (n / area) * size * size if area > 0 else 1.0
        min_points = max(1, int(min(share, n + 1.0)))

    starts, stops = np.zeros((2, n), np.int64), np.zeros((2, n), np.int64)
    _find(x, x_low - half + step_x, step_x, half, 0.0, int(n_columns), starts[0], stops[0])
    _find(y, y_low - half + step_y, step_y, half, 0.0, int(n_rows), starts[1], stops[1])
    shape = max(int(n_rows), 0), max(int(n_columns), 0)
    counts, lowest = np.zeros(shape, np.int32), np.empty(shape, np.int32)
    for p in range(n):
        for j in range(starts[1, p], stops[1, p]):
            for i in range(starts[0, p], stops[0, p]):
                if counts[j, i] == 0 or _is_lower(z, point_id, p, lowest[j, i]):
                    lowest[j, i] = p
                counts[j, i] += 1
    for j in range(shape[0]):
        for i in range(shape[1]):
            if counts[j, i] >= min_points:
                hits[lowest[j, i]] += 1
    n_seeds = 0
    for p in range(n):
        if hits[p] >= needed:
            points[n_seeds] = p
            n_seeds += 1

    side = 2 * half_cell
    _find(x, x_low, cell, 0.0, side, int(n_across), starts[0], stops[0])
    _find(y, y_low, cell, 0.0, side, int(n_along), starts[1], stops[1])
    cells = np.empty((int(n_along), int(n_across)), np.int64)
    for j in range(cells.shape[0]):
        for i in range(cells.shape[1]):
            cells[j, i] = -1
    for p in range(n):
        if stops[0, p] - starts[0, p] > 1 or stops[1, p] - starts[1, p] > 1:
            return none  # where cells overlap by rounding
        if stops[0, p] and stops[1, p] and hits[p] >= needed:
            cells[starts[1, p], starts[0, p]] = n
    for p in range(n):
        if stops[0, p] and stops[1, p]:
            j, i = starts[1, p], starts[0, p]
            best = cells[j, i]
            if best < 0 or (best < n and _is_lower(z, point_id, p, best)):
                cells[j, i] = p
    m = n_seeds
    for j in range(cells.shape[0]):
        for i in range(cells.shape[1]):
            if 0 <= cells[j, i] < n:
                points[m] = cells[j, i]
                m += 1
    _sort(points[:n_seeds], point_id)
    _sort(points[n_seeds:m], point_id)
    of_points = np.empty(m, np.int32)
    for k in range(m):
        of_points[k] = hits[points[k]]
    return points[:m], of_points, n_seeds


@njit(cache=True, nogil=True)
def _hundredths(value: float) -> float:
    return float(np.floor(100.0 * value + 0.5) / 100.0)


@njit(cache=True, nogil=True)
def _count(extent: float, size: float, overlap: float, step: float) -> float:
    """Count windows as `windows.window_count`."""
    if overlap == 0:
        return float(np.floor(extent / size) + 1)
    return float(np.floor((extent + 2 * size * overlap) / step + 0.5) - 1)


@njit(cache=True, nogil=True)
def _find(
    values: Any, first: float, step: float, half: float, side: float, count: int,
    starts: Any, stops: Any,
) -> None:  # fmt: skip
    """Find the run of open intervals that each value is in; start and stop are 0 for none.

    Intervals are at the places first + k * step: windows end `half` before and behind them, fill
    cells begin there and are `side` long.
    """
    for i in range(values.size):
        starts[i], stops[i] = 0, 0
        for k in range(count):
            place = first + k * step
            lower = place - half
            upper = place + (half if side == 0 else side)
            if lower < values[i] < upper:
                if stops[i] == 0:
                    starts[i] = k
                stops[i] = k + 1


@njit(cache=True, nogil=True)
def _is_lower(z: Floats, point_id: Ints, p: int, q: int) -> bool:
    """Whether point p is lower than point q, or as low and of a lower id."""
    if z[p] != z[q]:
        return bool(z[p] < z[q])
    return bool(point_id[p] < point_id[q] if point_id.size > 0 else p < q)


@njit(cache=True, nogil=True)
def _sort(points: Any, point_id: Ints) -> None:
    """Sort a few positions by their ids."""
    for k in range(1, points.size):
        point, at = points[k], k
        while at > 0 and (
            point_id[points[at - 1]] > point_id[point]
            if point_id.size > 0
            else points[at - 1] > point
        ):
            points[at] = points[at - 1]
            at -= 1
        points[at] = point
