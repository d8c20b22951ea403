"""From a first guess of the ground cells to the terrain: the Numba loops.

Every loop reads the state before it and writes another, so cells have no order.
"""

from typing import Any

import numpy as np
from numba import njit

ZERO, ONE, TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
SIX, NINE = np.float32(6.0), np.float32(9.0)
HALF = np.float32(0.5)


@njit(cache=True, nogil=True)
def flag(before: Any, after: Any, most: Any, flags: Any, first: int, last: int) -> None:
    """Flag the cells that an opening has lowered by more than `most`."""
    for i in range(first, last):
        a, b, out = before[i], after[i], flags[i]
        for j in range(out.size):
            out[j] = out[j] | (a[j] - b[j] > most)


@njit(cache=True, nogil=True)
def blur_rows(z: Any, radius: int, result: Any, first: int, last: int) -> None:
    """Mean of the 2 * radius + 1 cells of the row around each cell, the border cell repeated."""
    columns = z.shape[1]
    padded = np.empty(columns + 2 * radius, np.float32)
    scale = ONE / np.float32(2 * radius + 1)
    for i in range(first, last):
        row, out = z[i], result[i]
        padded[:radius] = row[0]
        padded[radius : radius + columns] = row
        padded[radius + columns :] = row[columns - 1]
        out[:] = ZERO
        for d in range(2 * radius + 1):
            part = padded[d : d + columns]
            for j in range(columns):
                out[j] += part[j]
        for j in range(columns):
            out[j] *= scale


@njit(cache=True, nogil=True)
def blur_columns(z: Any, radius: int, result: Any, first: int, last: int) -> None:
    """Mean of the 2 * radius + 1 cells of the column around each cell, likewise."""
    rows, columns = z.shape
    scale = ONE / np.float32(2 * radius + 1)
    for i in range(first, last):
        out = result[i]
        out[:] = ZERO
        for d in range(-radius, radius + 1):
            row = z[min(max(i + d, 0), rows - 1)]
            for j in range(columns):
                out[j] += row[j]
        for j in range(columns):
            out[j] *= scale


@njit(cache=True, nogil=True)
def fit_planes(
    z: Any, scale: Any, slope_x: Any, slope_y: Any, rms: Any, first: int, last: int
) -> None:
    """Slopes of the plane through 3 x 3 cells, and how far they are from it.

    `scale` is cells per metre. Beyond the border its cells are repeated.
    """
    rows, columns = z.shape
    for i in range(first, last):
        above, row, below = z[max(i - 1, 0)], z[i], z[min(i + 1, rows - 1)]
        for j in range(columns):
            west, east = max(j - 1, 0), min(j + 1, columns - 1)
            centre = row[j]
            a, b, c = above[west] - centre, above[j] - centre, above[east] - centre
            d, e = row[west] - centre, row[east] - centre
            f, g, h = below[west] - centre, below[j] - centre, below[east] - centre
            x = ((c - a) + (e - d) + (h - f)) / SIX
            y = ((f - a) + (g - b) + (h - c)) / SIX
            mean = ((a + b + c) + (d + e) + (f + g + h)) / NINE
            squares = (a * a + b * b + c * c) + (d * d + e * e) + (f * f + g * g + h * h)
            rest = squares - NINE * mean * mean - SIX * (x * x + y * y)
            slope_x[i, j] = x * scale
            slope_y[i, j] = y * scale
            rms[i, j] = np.sqrt((rest if rest > ZERO else ZERO) / NINE)


@njit(cache=True, nogil=True)
def grow(
    z: Any, slope_x: Any, slope_y: Any, rms: Any, ground: Any, cell: Any, most_rms: Any,
    most_step: Any, needed: int, result: Any, first: int, last: int,
) -> None:  # fmt: skip
    """Add smooth cells that continue the slope of smooth ground cells beside them."""
    rows, columns = z.shape
    for i in range(first, last):
        for j in range(columns):
            result[i, j] = ground[i, j]
            if ground[i, j] or rms[i, j] > most_rms:
                continue
            n = 0
            for r in range(max(i - 1, 0), min(i + 2, rows)):
                for c in range(max(j - 1, 0), min(j + 2, columns)):
                    if not ground[r, c] or rms[r, c] > most_rms:
                        continue
                    x = HALF * (slope_x[r, c] + slope_x[i, j]) * (np.float32(c - j) * cell)
                    y = HALF * (slope_y[r, c] + slope_y[i, j]) * (np.float32(r - i) * cell)
                    n += abs((z[r, c] - z[i, j]) - (x + y)) <= most_step
            result[i, j] = n >= needed


@njit(cache=True, nogil=True)
def extend(
    z: Any, slope_x: Any, slope_y: Any, rms: Any, ground: Any, candidate: Any,
    offset_rows: Any, offset_columns: Any, offset_x: Any, offset_y: Any, most: Any,
    most_rms: Any, needed: Any, share: Any, result: Any, first: int, last: int,
) -> None:  # fmt: skip
    """Add candidates that lie on the planes of the ground cells around them."""
    rows, columns = z.shape
    for i in range(first, last):
        for j in range(columns):
            result[i, j] = ground[i, j]
            if ground[i, j] or not candidate[i, j]:
                continue
            n, agree = 0, 0
            for k in range(offset_rows.size):
                r, c = i + offset_rows[k], j + offset_columns[k]
                if r < 0 or r >= rows or c < 0 or c >= columns:
                    continue
                if not ground[r, c] or rms[r, c] > most_rms:
                    continue
                n += 1
                plane = z[r, c] - (slope_x[r, c] * offset_x[k] + slope_y[r, c] * offset_y[k])
                agree += abs(z[i, j] - plane) <= most[k]
            wanted = share * np.float32(n)
            result[i, j] = np.float32(agree) >= needed and np.float32(agree) >= wanted


@njit(cache=True, nogil=True)
def join_cliffs(
    z: Any, ground: Any, candidate: Any, reach: int, cell: Any, diagonal: Any, slope: Any,
    distance: Any, top_slope: Any, result: Any, first: int, last: int,
) -> None:  # fmt: skip
    """Add candidates between the ground above and the ground below a steep face."""
    rows, columns = z.shape
    for i in range(first, last):
        for j in range(columns):
            result[i, j] = ground[i, j]
            if ground[i, j] or not candidate[i, j]:
                continue
            for k in range(4):
                dr, dc = (0 if k == 0 else 1), (1 if k < 2 else (0 if k == 2 else -1))
                length = diagonal if dr != 0 and dc != 0 else cell
                n_steps = np.int64(np.float32(reach) * cell / length)
                ahead, behind = 0, 0
                for s in range(1, n_steps + 1):
                    r, c = i + s * dr, j + s * dc
                    if r < 0 or r >= rows or c < 0 or c >= columns:
                        break
                    if ground[r, c]:
                        ahead = s
                        break
                for s in range(1, n_steps + 1):
                    r, c = i - s * dr, j - s * dc
                    if r < 0 or r >= rows or c < 0 or c >= columns:
                        break
                    if ground[r, c]:
                        behind = s
                        break
                if ahead == 0 or behind == 0:
                    continue
                above, below = z[i + ahead * dr, j + ahead * dc], z[i - behind * dr, j - behind * dc]
                to_top = np.float32(ahead) * length
                if above < below:
                    above, below = below, above
                    to_top = np.float32(behind) * length
                height = z[i, j]
                result[i, j] |= (
                    above - below >= slope * (np.float32(ahead + behind) * length)
                    and height <= above + (distance + top_slope * to_top)
                    and height >= below - distance
                )


@njit(cache=True, nogil=True)
def slopes(terrain: Any, scale: Any, result: Any, first: int, last: int) -> None:
    """Slope by central differences; `scale` is half the cells per metre."""
    rows, columns = terrain.shape
    for i in range(first, last):
        up, row, down = terrain[max(i - 1, 0)], terrain[i], terrain[min(i + 1, rows - 1)]
        for j in range(columns):
            x = (row[min(j + 1, columns - 1)] - row[max(j - 1, 0)]) * scale
            y = (down[j] - up[j]) * scale
            result[i, j] = np.sqrt(x * x + y * y)


@njit(cache=True, nogil=True)
def near_terrain(
    z: Any, known: Any, terrain: Any, slope: Any, distance: Any, per_slope: Any, ground: Any,
    result: Any, first: int, last: int,
) -> int:  # fmt: skip
    """Ground anew: known cells near the terrain. Returns how many cells have changed."""
    changed = 0
    for i in range(first, last):
        for j in range(z.shape[1]):
            near = abs(z[i, j] - terrain[i, j]) <= distance + per_slope * slope[i, j]
            result[i, j] = known[i, j] and near
            changed += result[i, j] != ground[i, j]
    return changed
