"""The Numba loops of `ground_surface` on the CPU.

`side`, `height` and `weigh` compute the values of one cell in double precision and in a fixed
order, so that another device gives the same bits.
"""

from math import ceil, floor
from typing import Any

import numpy as np

from spatialq.runtime.arrays import Floats, Int32s, Ints
from spatialq.runtime.compile_cache import njit

MARGIN = 2
"""Columns beyond its corners that a triangle may be tested for: one on purpose, one by rounding."""


@njit(cache=True, nogil=True, inline="always")
def side(ax: float, ay: float, bx: float, by: float, px: float, py: float) -> float:
    """Twice the area of a, b, p: > 0 where p is left of a -> b.

    Exchanging a and b changes nothing but the sign. So a place beside the common edge of two
    triangles is in exactly one of them, and a place on the edge is in both.
    """
    return (ax - px) * (by - py) - (ay - py) * (bx - px)


@njit(cache=True, nogil=True, inline="always")
def height(a: float, b: float, c: float, to_a: float, to_b: float, to_c: float) -> float:
    """Height in a triangle whose corners have heights a, b, c, from the areas opposite them.

    Uses differences from the first corner, so that a level triangle stays exactly level.
    """
    return a + (to_b * (b - a) + to_c * (c - a)) / (to_a + to_b + to_c)


@njit(cache=True, nogil=True)
def nearest_to_centres(
    x: Floats, y: Floats, z: Floats, start: int, stop: int,
    centre_x: Any, centre_y: Any, resolution: float, nearest: Any,
) -> None:  # fmt: skip
    """Point nearest to the centre of each cell; of equally near ones the lowest, then by x, y.

    x and y are relative to the lower left corner of the grid; `nearest` must be filled with -1
    before the first call, and has then the nearest of the points up to `stop`.
    """
    for p in range(start, stop):
        column = min(max(floor(x[p] / resolution), 0), centre_x.size - 1)
        row = min(max(floor(y[p] / resolution), 0), centre_y.size - 1)
        q = nearest[row, column]
        if q >= 0:
            px, py = centre_x[column], centre_y[row]
            new = (x[p] - px) * (x[p] - px) + (y[p] - py) * (y[p] - py)
            old = (x[q] - px) * (x[q] - px) + (y[q] - py) * (y[q] - py)
            if (old, z[q], x[q], y[q]) <= (new, z[p], x[p], y[p]):
                continue
        nearest[row, column] = p


@njit(cache=True, nogil=True)
def list_crossing(
    x: Floats, triangles: Any, start: int, stop: int, x0: float, resolution: float, column: int,
    found: Any,
) -> int:  # fmt: skip
    """List those of the triangles [start, stop) that may cover a column; returns how many.

    `found` gets their numbers and their last columns; where it has no rows, they are only counted.
    """
    n, wanted = 0, len(found) > 0
    for t in range(start, stop):
        east = x[triangles[t, 0]]
        for corner in (triangles[t, 1], triangles[t, 2]):
            east = x[corner] if x[corner] > east else east
        last = ceil((east - x0) / resolution) + MARGIN
        if last >= column:
            if wanted:
                found[n, 0], found[n, 1] = t, last
            n += 1
    return n


@njit(cache=True, nogil=True)
def rasterise(
    x: Floats, y: Floats, z: Floats, triangles: Int32s, crossing: Ints, first: int, behind: int,
    centre_x: Any, centre_y: Any, resolution: float, start: int, stop: int, grid: Floats,
) -> None:  # fmt: skip
    """Heights of the cells in a strip of columns whose centre is in a triangle or on its edge.

    A centre on an edge belongs to the first triangle.

    Parameters
    ----------
    x, y, z : float64[n]
    triangles : int32[m, 3]
    crossing : int64[k, 2]
        Triangles before `first` that may cover columns of the strip, in their order, and others;
        with the last column that each may cover.
    first, behind : int
        The other triangles to take are [first, behind).
    centre_x, centre_y : float64[columns], float64[rows]
    resolution : float
    start, stop : int
        Columns of the strip.
    grid : float64[rows, columns]
        In: NaN in the strip.
    """
    for t, last in crossing:
        if last >= start:
            fill_triangle(x, y, z, triangles[t], centre_x, centre_y, resolution, start, stop, grid)
    for t in range(first, behind):
        fill_triangle(x, y, z, triangles[t], centre_x, centre_y, resolution, start, stop, grid)


@njit(cache=True, nogil=True)
def fill_triangle(
    x: Floats, y: Floats, z: Floats, corners: Any, centre_x: Any, centre_y: Any, resolution: float,
    start: int, stop: int, grid: Any,
) -> None:  # fmt: skip
    """Heights of the cells of a triangle that have none and are in the columns [start, stop)."""
    x0, y0, n_rows = centre_x[0], centre_y[0], centre_y.size
    i, j, k = corners[0], corners[1], corners[2]
    ax, ay, bx, by, cx, cy = x[i], y[i], x[j], y[j], x[k], y[k]
    low, high = ay if ay < by else by, by if ay < by else ay
    low, high = cy if cy < low else low, cy if cy > high else high
    bottom, top = floor((low - y0) / resolution), ceil((high - y0) / resolution)
    for row in range(max(0, bottom), min(n_rows - 1, top) + 1):
        py = centre_y[row]
        # A row crosses two or three edges and is in the triangle between the crossings. These
        # only limit the cells that are tested; the signs of the sides decide.
        low, high = np.inf, -np.inf
        for ux, uy, vx, vy in ((ax, ay, bx, by), (bx, by, cx, cy), (cx, cy, ax, ay)):
            if (uy <= py) != (vy <= py) or uy == py or vy == py:
                at = ux + (py - uy) / (vy - uy) * (vx - ux) if uy != vy else ux
                end = vx if uy == vy else at
                low = min(low, at, end)
                high = max(high, at, end)
        if low > high:
            continue
        first = max(start, floor((low - x0) / resolution) - 1)
        last = min(stop - 1, ceil((high - x0) / resolution) + 1)
        for column in range(first, last + 1):
            px = centre_x[column]
            to_a = side(bx, by, cx, cy, px, py)
            to_b = side(cx, cy, ax, ay, px, py)
            to_c = side(ax, ay, bx, by, px, py)
            if to_a < 0 or to_b < 0 or to_c < 0 or to_a + to_b + to_c == 0:
                continue
            if np.isnan(grid[row, column]):
                grid[row, column] = height(z[i], z[j], z[k], to_a, to_b, to_c)


@njit(cache=True, nogil=True, inline="always")
def bucket_of(
    px: float, py: float, x0: float, y0: float, side: float, columns: int, rows: int
) -> int:
    """Find the bucket of a place; those on the upper border are in the last ones."""
    column = min(floor((px - x0) / side), columns - 1)
    return int(min(floor((py - y0) / side), rows - 1) * columns + column)


@njit(cache=True, nogil=True)
def count_in_buckets(
    x: Floats, y: Floats, start: int, stop: int,
    x0: float, y0: float, side: float, columns: int, rows: int, counts: Any,
) -> None:  # fmt: skip
    """Add the number of the points [start, stop) in each bucket to the second entry behind it."""
    for p in range(start, stop):
        counts[bucket_of(x[p], y[p], x0, y0, side, columns, rows) + 2] += 1


@njit(cache=True, nogil=True)
def move_to_buckets(
    x: Floats, y: Floats, z: Floats, start: int, stop: int,
    x0: float, y0: float, side: float, columns: int, rows: int,
    starts: Any, to_x: Any, to_y: Any, to_z: Any,
) -> None:  # fmt: skip
    """Put the points [start, stop) into their buckets, relative to x0 and y0.

    The entry of `starts` behind a bucket says where its next point goes, which in the end is where
    the next bucket starts.
    """
    for p in range(start, stop):
        bucket = bucket_of(x[p], y[p], x0, y0, side, columns, rows) + 1
        at = starts[bucket]
        to_x[at], to_y[at], to_z[at] = x[p] - x0, y[p] - y0, z[p]
        starts[bucket] += 1


@njit(cache=True, nogil=True)
def weigh(
    x: Floats, y: Floats, z: Floats, starts: Any, bucket: float, n_columns: int, n_rows: int,
    px: float, py: float, squares: Any, nearest: Any,
) -> float:  # fmt: skip
    """Mean height of the points nearest to a place, weighted with 1 / distance squared.

    Finds as many points as `nearest` can hold, by ascending distance and then by position; their
    squared distances are in `squares`. The search goes through rings of buckets around the place
    until the next ring is farther than the last point found. A point at the place itself gives its
    height.
    """
    wanted, found = nearest.size, 0
    column = min(max(floor(px / bucket), 0), n_columns - 1)
    row = min(max(floor(py / bucket), 0), n_rows - 1)
    for ring in range(max(n_columns, n_rows)):
        reach = (ring - 1) * bucket
        if found == wanted and ring > 0 and squares[found - 1] < reach * reach:
            break
        for r in range(max(row - ring, 0), min(row + ring, n_rows - 1) + 1):
            # the top and bottom rows of the ring are complete; the others have two cells
            step = 1 if abs(r - row) == ring or ring == 0 else 2 * ring
            for c in range(column - ring, column + ring + 1, step):
                if c < 0 or c >= n_columns:
                    continue
                for p in range(starts[r * n_columns + c], starts[r * n_columns + c + 1]):
                    dx, dy = x[p] - px, y[p] - py
                    square = dx * dx + dy * dy
                    if found < wanted:
                        found += 1
                    elif square > squares[found - 1] or (
                        square == squares[found - 1] and p > nearest[found - 1]
                    ):
                        continue
                    k = found - 1
                    while k > 0 and (
                        squares[k - 1] > square or (squares[k - 1] == square and nearest[k - 1] > p)
                    ):
                        squares[k], nearest[k] = squares[k - 1], nearest[k - 1]
                        k -= 1
                    squares[k], nearest[k] = square, p
    if squares[0] == 0 or found == 1:
        return float(z[nearest[0]])
    base = z[nearest[0]]
    total, weights = 0.0, 0.0
    for k in range(found):
        # relative to the nearest point: no overflow, and level points stay exactly level
        weight = squares[0] / squares[k]
        total += weight * (z[nearest[k]] - base)
        weights += weight
    return float(base + total / weights)


@njit(cache=True, nogil=True)
def weigh_cells(
    x: Any, y: Any, z: Any, starts: Any, bucket: float, n_columns: int, n_rows: int,
    centre_x: Any, centre_y: Any, neighbours: int, wanted: Any, start: int, stop: int, grid: Any,
) -> None:  # fmt: skip
    """Compute the weighted mean for each `wanted` cell of the rows [start, stop)."""
    squares = np.empty(neighbours, np.float64)
    nearest = np.empty(neighbours, np.int64)
    for row in range(start, stop):
        for column in range(centre_x.size):
            if wanted[row, column]:
                grid[row, column] = weigh(
                    x, y, z, starts, bucket, n_columns, n_rows,
                    centre_x[column], centre_y[row], squares, nearest,
                )  # fmt: skip
