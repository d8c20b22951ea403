"""The Numba loops of `ground_surface` on the CPU.

`side`, `height` and `weigh` compute the values of one cell in double precision and in a fixed
order, so that another device gives the same bits.
"""

from math import ceil, floor
from typing import Any

import numpy as np

from spatialq.runtime.compile_cache import njit


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
    x: Any, y: Any, z: Any, centre_x: Any, centre_y: Any, resolution: float, nearest: Any
) -> None:
    """Point nearest to the centre of each cell; of equally near ones the lowest, then by x, y.

    x and y are relative to the lower left corner of the grid; `nearest` must be filled with -1.
    """
    for p in range(x.size):
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
def span_rows(
    y: Any, triangles: Any, y0: float, resolution: float, n_rows: int,
    start: int, stop: int, first_row: Any, last_row: Any,
) -> None:  # fmt: skip
    """Rows that the triangles [start, stop) may cover, with up to one more on either side."""
    for t in range(start, stop):
        a, b, c = y[triangles[t, 0]], y[triangles[t, 1]], y[triangles[t, 2]]
        low, high = a if a < b else b, b if a < b else a
        low, high = c if c < low else low, c if c > high else high
        bottom, top = floor((low - y0) / resolution), ceil((high - y0) / resolution)
        first_row[t] = bottom if bottom > 0 else 0
        last_row[t] = top if top < n_rows - 1 else n_rows - 1


@njit(cache=True, nogil=True)
def rasterise(
    x: Any, y: Any, z: Any, triangles: Any, first_row: Any, last_row: Any,
    centre_x: Any, centre_y: Any, resolution: float, start: int, stop: int, grid: Any,
) -> None:  # fmt: skip
    """Heights of the cells in the rows [start, stop) whose centre is in a triangle or on its edge.

    A centre on an edge belongs to the first triangle. `grid` must be filled with NaN.
    """
    x0, n_columns = centre_x[0], centre_x.size
    for t in range(first_row.size):
        if last_row[t] < start or first_row[t] >= stop:
            continue
        i, j, k = triangles[t, 0], triangles[t, 1], triangles[t, 2]
        ax, ay, bx, by, cx, cy = x[i], y[i], x[j], y[j], x[k], y[k]
        for row in range(max(start, first_row[t]), min(stop, last_row[t] + 1)):
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
            first = max(0, floor((low - x0) / resolution) - 1)
            last = min(n_columns - 1, ceil((high - x0) / resolution) + 1)
            for column in range(first, last + 1):
                px = centre_x[column]
                to_a = side(bx, by, cx, cy, px, py)
                to_b = side(cx, cy, ax, ay, px, py)
                to_c = side(ax, ay, bx, by, px, py)
                if to_a < 0 or to_b < 0 or to_c < 0 or to_a + to_b + to_c == 0:
                    continue
                if np.isnan(grid[row, column]):
                    grid[row, column] = height(z[i], z[j], z[k], to_a, to_b, to_c)


@njit(cache=True, nogil=True)
def weigh(
    x: Any, y: Any, z: Any, starts: Any, bucket: float, n_columns: int, n_rows: int,
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
