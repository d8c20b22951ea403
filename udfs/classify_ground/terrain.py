"""The Numba loops from the first guess of ground cells to the terrain.

Every loop reads one state and writes another, so that the order of cells does not matter.
"""

from typing import Any

import numpy as np

from spatialq.runtime.compile_cache import njit

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
    """Mean of the 2 * radius + 1 cells around each cell along its row; border cells repeat."""
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
    """Mean of the 2 * radius + 1 cells around each cell along its column; border cells repeat."""
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
    """Slopes of the plane through 3 x 3 cells, and the rms distance of the cells from it.

    `scale` is cells per metre. Border cells repeat beyond the border.
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
    z: Any, slope_x: Any, slope_y: Any, rms: Any, ground: Any, cell: Any, smooth: Any,
    needed: int, result: Any, first: int, last: int,
) -> None:  # fmt: skip
    """Add smooth cells that continue the slope of smooth ground cells beside them."""
    rows, columns = z.shape
    for i in range(first, last):
        for j in range(columns):
            result[i, j] = ground[i, j]
            if ground[i, j] or rms[i, j] > smooth:
                continue
            n = 0
            for r in range(max(i - 1, 0), min(i + 2, rows)):
                for c in range(max(j - 1, 0), min(j + 2, columns)):
                    if not ground[r, c] or rms[r, c] > smooth:
                        continue
                    x = HALF * (slope_x[r, c] + slope_x[i, j]) * (np.float32(c - j) * cell)
                    y = HALF * (slope_y[r, c] + slope_y[i, j]) * (np.float32(r - i) * cell)
                    n += abs((z[r, c] - z[i, j]) - (x + y)) <= smooth
            result[i, j] = n >= needed


@njit(cache=True, nogil=True)
def extend(
    z: Any, slope_x: Any, slope_y: Any, ground: Any, known: Any, candidate: Any,
    near_rows: Any, near_columns: Any, near_x: Any, near_y: Any, most: Any, octant: Any,
    min_planes: Any, of_ground: Any, of_known: Any, result: Any, first: int, last: int,
) -> None:  # fmt: skip
    """Add candidates that the planes of the ground cells of some half disc around them meet.

    `min_planes` planes must meet a candidate, and `of_ground` and `of_known` are the minimum
    shares of the half disc's ground cells and of its known cells.
    """
    rows, columns = z.shape
    cells, planes, met = np.empty(8, np.int32), np.empty(8, np.int32), np.empty(8, np.int32)
    for i in range(first, last):
        for j in range(columns):
            result[i, j] = ground[i, j]
            if ground[i, j] or not candidate[i, j]:
                continue
            cells[:] = 0
            planes[:] = 0
            met[:] = 0
            for k in range(near_rows.size):
                r, c = i + near_rows[k], j + near_columns[k]
                if r < 0 or r >= rows or c < 0 or c >= columns or not known[r, c]:
                    continue
                cells[octant[k]] += 1
                if not ground[r, c]:
                    continue
                planes[octant[k]] += 1
                plane = z[r, c] - (slope_x[r, c] * near_x[k] + slope_y[r, c] * near_y[k])
                met[octant[k]] += abs(z[i, j] - plane) <= most[k]
            for o in range(8):
                n_cells, n_planes, n_met = 0, 0, 0
                for k in range(o, o + 4):
                    n_cells += cells[k & 7]
                    n_planes += planes[k & 7]
                    n_met += met[k & 7]
                result[i, j] |= (
                    np.float32(n_met) >= min_planes
                    and np.float32(n_met) >= of_ground * np.float32(n_planes)
                    and np.float32(n_met) >= of_known * np.float32(n_cells)
                )


@njit(cache=True, nogil=True)
def join_cliffs(
    z: Any, ground: Any, candidate: Any, reach: Any, cell: Any, diagonal: Any, slope: Any,
    distance: Any, top_slope: Any, result: Any, first: int, last: int,
) -> None:  # fmt: skip
    """Add candidates on the steep face between ground above and ground below them.

    Looks along the four lines through a cell, up to the distance `reach`, for the nearest ground on
    either side. `cell` and `diagonal` are the steps along rows or columns, and diagonally.
    """
    rows, columns = z.shape
    for i in range(first, last):
        for j in range(columns):
            result[i, j] = ground[i, j]
            if ground[i, j] or not candidate[i, j]:
                continue
            for k in range(4):
                # to the east, and to the north-west, north and north-east
                dr, dc = (0, 1) if k == 0 else (1, k - 2)
                step = diagonal if dr * dc != 0 else cell
                n_steps = int(reach / step)
                ahead, r, c = 0, i, j
                for s in range(1, n_steps + 1):
                    r, c = i + s * dr, j + s * dc
                    if r >= rows or c < 0 or c >= columns:
                        break
                    if ground[r, c]:
                        ahead = s
                        break
                behind, p, q = 0, i, j
                for s in range(1, n_steps + 1):
                    p, q = i - s * dr, j - s * dc
                    if p < 0 or q < 0 or q >= columns:
                        break
                    if ground[p, q]:
                        behind = s
                        break
                if ahead == 0 or behind == 0:
                    continue
                rising = z[r, c] >= z[p, q]
                top, foot = (z[r, c], z[p, q]) if rising else (z[p, q], z[r, c])
                to_top = np.float32(ahead if rising else behind) * step
                result[i, j] |= (
                    top - foot >= slope * (np.float32(ahead + behind) * step)
                    and z[i, j] <= top + (distance + top_slope * to_top)
                    and z[i, j] >= foot - distance
                )


@njit(cache=True, nogil=True)
def slopes(terrain: Any, scale: Any, result: Any, first: int, last: int) -> None:
    """Slope of the plane through 3 x 3 cells; `scale` is a sixth of the cells per metre."""
    rows, columns = terrain.shape
    along, across = np.empty(columns, np.float32), np.empty(columns, np.float32)
    for i in range(first, last):
        up, row, down = terrain[max(i - 1, 0)], terrain[i], terrain[min(i + 1, rows - 1)]
        for j in range(columns):
            along[j] = (up[j] + down[j]) + row[j]
            across[j] = down[j] - up[j]
        for j in range(columns):
            west, east = max(j - 1, 0), min(j + 1, columns - 1)
            x = (along[east] - along[west]) * scale
            y = ((across[west] + across[east]) + across[j]) * scale
            result[i, j] = np.sqrt(x * x + y * y)


@njit(cache=True, nogil=True)
def near_terrain(
    z: Any, known: Any, terrain: Any, slope: Any, distance: Any, per_slope: Any, ground: Any,
    result: Any, first: int, last: int,
) -> int:  # fmt: skip
    """Make ground of the known cells near the terrain; return how many cells changed."""
    changed = 0
    for i in range(first, last):
        for j in range(z.shape[1]):
            above = z[i, j] - terrain[i, j]
            most = distance + per_slope * slope[i, j]
            result[i, j] = known[i, j] and above <= most and above >= -(most + most)
            changed += result[i, j] != ground[i, j]
    return changed
