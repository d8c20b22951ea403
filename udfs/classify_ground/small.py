"""The terrain of a small grid on the CPU, in a compiled call before the seeds and one after them.

The steps are those of cpu.py, in one thread. That calls a loop of Numba or a formula of NumPy for
each pass over the grid, some hundred in all, which takes longer than the passes over a grid of a
few cells: as that of a group of `GROUP BY` often is.
"""

from typing import Any

import numpy as np

from spatialq.runtime.compile_cache import njit

from . import discs, fill, method, points, terrain

MAX_CELLS = 1 << 12
MAX_POINTS = 1 << 16
HIGHEST = np.float32(-1)
"""The sign with which `discs.lowest` finds the highest values."""


@njit(cache=True, nogil=True)
def objects_of(
    x: Any, y: Any, z: Any, west: float, south: float, side: float, place: Any, places: Any,
    pit: Any, discs_of_all: Any,
) -> tuple[Any, Any, float, Any, Any]:  # fmt: skip
    """Do steps 2 to 4 of README.md.

    Parameters
    ----------
    x, y, z : float64[n], metres
    west, south, side : float, metres
        Corner of the grid, and side of a cell.
    place : (rows, columns, 0, 0)
        As the loops of points.py take it.
    places : int64[levels, 2]
        As `method.places_in_pairs` gives them.
    pit : int32[2]
        Half widths of the disc of one cell.
    discs_of_all : int32[...]
        As `method.half_widths_to` gives them.

    Returns
    -------
    lowest : float32[rows, columns]
    known : bool[rows, columns]
        Without pits.
    level : float
        What heights on the grid are above.
    surface : float32[rows, columns]
    objects : bool[rows, columns]
    """
    shape, cell = (place[0], place[1]), np.float32(side)
    heights = np.full(shape, np.inf)
    points.lowest(x, y, z, west, south, side, place, heights, 0, x.size)
    known = np.isfinite(heights)
    in_order = np.sort(heights.ravel())  # those of cells without a point come last
    n = np.count_nonzero(known)
    low, level = in_order[(n - 1) // 2], in_order[n // 2]
    if low != level:
        level = (low + level) / 2
    lowest = np.zeros(shape, np.float32)
    for i in range(place[0]):
        for j in range(place[1]):
            if known[i, j]:
                lowest[i, j] = _on_grid(heights[i, j], level)
    surface = _filled(lowest, known, places)
    below, closed = -surface, np.empty_like(surface)
    discs.opened(below, pit, 0, closed)
    pits = -closed - surface > method.PIT_SLOPE * cell
    if pits.any():
        known = known & ~pits
        surface = _filled(lowest, known, places)
    return lowest, known, level, surface, _objects(surface, discs_of_all, cell)


@njit(cache=True, nogil=True)
def terrain_of(
    lowest: Any, known: Any, surface: Any, objects: Any, places: Any, discs_of_all: Any,
    seed_x: Any, seed_y: Any, seed_z: Any, west: float, south: float, side: float, level: float,
    blur: int, near_rows: Any, near_columns: Any, near_x: Any, near_y: Any, near_most: Any,
    octant: Any, reach: Any, distance: Any, per_slope: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """Do steps 5 to 10 of README.md.

    Parameters
    ----------
    lowest, known, surface, objects, places, discs_of_all
        Of `objects_of`.
    seed_x, seed_y, seed_z : float64[m], metres
    west, south, side, level
        Of `objects_of`.
    blur : int
        Cells of `method.BASE_RADIUS`.
    near_rows, near_columns, near_x, near_y, near_most, octant
        As `method.neighbours` gives them.
    reach : int32[...]
        Half widths of a disc that contains these.
    distance, per_slope : float32

    Returns
    -------
    heights, slopes : float32[rows, columns]
    """
    rows, columns = lowest.shape
    cell = np.float32(side)
    # 5
    is_seed = np.zeros(lowest.shape, np.bool_)
    for i in range(seed_x.size):
        r = int(min((seed_y[i] - south) / side, rows - 1.0))
        c = int(min((seed_x[i] - west) / side, columns - 1.0))
        is_seed[r, c] |= _on_grid(seed_z[i], level) == surface[r, c]
    base, along = _filled(surface, is_seed & (known & ~objects), places), np.empty_like(surface)
    for _ in range(2):
        terrain.blur_rows(base, blur, along, 0, rows)
        terrain.blur_columns(along, blur, base, 0, rows)
    # 6
    objects = objects & _objects(surface - base, discs_of_all, cell)
    # 7
    bare = known & ~objects
    above = surface - (_filled(lowest, bare, places) if (known & objects).any() else surface)
    slope_x, slope_y, rms = (
        np.empty_like(surface), np.empty_like(surface), np.empty_like(surface),
    )  # fmt: skip
    terrain.fit_planes(surface, np.float32(1 / side), slope_x, slope_y, rms, 0, rows)
    ground, other = ~objects, np.empty_like(objects)
    for _ in range(method.GROWTHS):
        terrain.grow(
            surface, slope_x, slope_y, rms, ground, cell, method.SMOOTH, method.SMOOTH_NEIGHBOURS,
            other, 0, rows,
        )  # fmt: skip
        ground, other = other, ground
    ground = ground & known
    # 8
    candidate = known & (above >= method.CREST_HEIGHT)
    added = ground
    for _ in range(method.CRESTS):
        grown, reached = added.astype(np.float32), np.empty_like(surface)
        discs.lowest(grown, HIGHEST, reach, reached, 0, rows)
        may_grow = candidate & (reached > 0)
        if not may_grow.any():
            break
        before, ground = ground, np.empty_like(ground)
        terrain.extend(
            surface, slope_x, slope_y, before, known, may_grow, near_rows, near_columns, near_x,
            near_y, near_most, octant, method.CREST_CELLS, method.CREST_GROUND, method.CREST_KNOWN,
            ground, 0, rows,
        )  # fmt: skip
        added = ground & ~before
    # 9
    joined = np.empty_like(ground)
    terrain.join_cliffs(
        surface, ground, known & (above >= method.CLIFF_HEIGHT), np.float32(method.CLIFF_REACH),
        cell, np.float32(np.sqrt(2) * side), method.CLIFF_SLOPE, method.CLIFF_DISTANCE,
        method.CLIFF_TOP_SLOPE, joined, 0, rows,
    )  # fmt: skip
    # 10
    ground, slopes, scale = joined, np.empty_like(surface), np.float32(1 / (6 * side))
    for left in range(method.DENSIFICATIONS, -1, -1):
        heights = _filled(lowest, ground, places)
        terrain.slopes(heights, scale, slopes, 0, rows)
        before, ground = ground, np.empty_like(ground)
        if left == 0:
            break
        changed = terrain.near_terrain(
            lowest, known, heights, slopes, distance, per_slope, before, ground, 0, rows
        )
        if changed == 0:
            break
    return heights, slopes


@njit(cache=True, nogil=True)
def _on_grid(height: float, level: float) -> Any:
    """Convert a height to that of the grid."""
    return np.float32(min(max(height - level, -method.FARTHEST), method.FARTHEST))


@njit(cache=True, nogil=True)
def _filled(z: Any, known: Any, places: Any) -> Any:
    result = np.empty_like(z)
    fill.fill(z, known, places, method.SWEEPS, method.RELAXATION, result)
    return result


@njit(cache=True, nogil=True)
def _objects(z: Any, discs_of_all: Any, cell: Any) -> Any:
    """Flag the cells that openings with growing discs cut off."""
    flags = np.zeros(z.shape, np.bool_)
    radius, first = 1, 0
    while first < discs_of_all.size:
        opened = np.empty_like(z)
        disc = discs_of_all[first : first + radius + 1]
        discs.opened(z, disc, int(method.OUTSIDE * radius), opened)
        most = method.OBJECT_SLOPE * (np.float32(radius) * cell)
        terrain.flag(z, opened, most, flags, 0, len(z))
        if opened.min() == opened.max():  # no larger disc will lower it
            break
        z = opened
        first += radius + 1
        radius += 1
    return flags
