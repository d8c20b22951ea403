"""The Numba loops over the points.

A grid that they get may be a part of the whole one: `place` says how many rows and columns the
whole one has, and which of them are the first ones of the part.
"""

from typing import Any

import numpy as np

from spatialq.runtime.compile_cache import njit


@njit(cache=True, nogil=True)
def extent(values: Any, first: int, last: int) -> tuple[float, float, int]:
    """Find the minimum and maximum, and count the values that are not finite."""
    low, high, bad = np.inf, -np.inf, 0
    for i in range(first, last):
        value = values[i]
        low = value if value < low else low
        high = value if value > high else high
        bad += value - value != 0  # infinity and NaN give NaN
    return low, high, bad


@njit(cache=True, nogil=True)
def mark(
    x: Any, y: Any, west: float, south: float, side: float, place: Any, occupied: Any,
    first: int, last: int,
) -> None:  # fmt: skip
    """Mark the squares that contain a point."""
    rows, columns, row, column = place
    for i in range(first, last):
        c, r = int((x[i] - west) / side), int((y[i] - south) / side)
        occupied[min(r, rows - 1) - row, min(c, columns - 1) - column] = True


@njit(cache=True, nogil=True)
def lowest(
    x: Any, y: Any, z: Any, west: float, south: float, cell: float, place: Any, result: Any,
    first: int, last: int,
) -> None:  # fmt: skip
    """Lowest z per cell of the points [first, last)."""
    rows, columns, row, column = place
    for i in range(first, last):
        c, r = int((x[i] - west) / cell), int((y[i] - south) / cell)
        r, c = min(r, rows - 1) - row, min(c, columns - 1) - column
        if z[i] < result[r, c]:
            result[r, c] = z[i]


@njit(cache=True, nogil=True)
def classify(
    x: Any, y: Any, z: Any, west: float, south: float, level: float, cell: float, place: Any,
    terrain: Any, slope: Any, distance: float, per_slope: float, unit: float,
    height: Any, is_ground: Any, margin: Any, first: int, last: int,
) -> None:  # fmt: skip
    """Compute the height above the terrain, whether it is small enough for ground, and by how much.

    Terrain and slope are bilinear between the centres of cells, and constant beyond the outermost.
    Heights and margins are given in the unit of the cloud, of `unit` metres.
    """
    rows, columns, row, column = place
    for i in range(first, last):
        u, v = (x[i] - west) / cell - 0.5, (y[i] - south) / cell - 0.5
        u = min(max(u, 0.0), columns - 1.0)
        v = min(max(v, 0.0), rows - 1.0)
        c, r = int(u), int(v)
        e, s = min(c + 1, columns - 1), min(r + 1, rows - 1)
        a, b = u - c, v - r
        c, e, r, s = c - column, e - column, r - row, s - row
        here = terrain[r, c] + a * (terrain[r, e] - terrain[r, c])
        there = terrain[s, c] + a * (terrain[s, e] - terrain[s, c])
        above = (z[i] - level) - (here + b * (there - here))
        here = slope[r, c] + a * (slope[r, e] - slope[r, c])
        there = slope[s, c] + a * (slope[s, e] - slope[s, c])
        most = distance + per_slope * (here + b * (there - here))
        below = above + (most + most)
        height[i] = above / unit
        is_ground[i] = above <= most and below >= 0
        margin[i] = min(most - above, below) / unit
