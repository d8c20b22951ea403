"""How much work a call of `owm_ground` is: bytes and steps, no machine constants."""

import sys
from dataclasses import replace
from math import ceil, sqrt
from typing import Any

from spatialq.functions.declaration import Size, Work

CACHED = 10_000
"""Windows whose cells a cache of some hundred KiB holds."""

BYTES_PER_WINDOW = 128
"""Up to four cells begin at the borders of a window, with the lowest point of each."""


BYTES_PER_POINT_OF_RUN = 32
"""x, y, z and the id of a run of points."""

BYTES_PER_CELL = 16 + 16 + 32 + 16
"""A cell of the run, and of all runs; its lowest point; the lowest of a row of it."""

ROUNDED = 16
"""Borders of an axis that would coincide, were it not for the next power of two between them."""

BYTES_AT_LEAST = 4 << 20
"""Borders of windows, bitmaps and results, and what small allocations are rounded to."""

BYTES_GATHERED = 8 + 24
"""The position and the coordinates of a point of a strip."""


def steps(size: Size, options: Any) -> dict[str, float]:
    """Count points, the windows over their extent, and points whose cell is not in the cache.

    Every point is read twice (x and y for the extent, x, y and z for its cell), and its cell is
    touched once: of a wide cloud in any order, mostly in main memory.
    """
    step_x, step_y = options.steps
    windows = min(1 + _area(size, options) / step_x / step_y, float(sys.maxsize))
    return {
        "points": size.rows,
        "windows": windows,
        "scattered": size.rows * windows / (windows + CACHED),
    }


def _area(size: Size, options: Any) -> float:
    """Give the area that windows cover: of the cloud, or of the bounds."""
    if options.bounds is None:
        return size.area
    xmin, ymin, xmax, ymax = options.bounds
    area: float = (xmax - xmin) * (ymax - ymin)
    return area


def work(size: Size, options: Any) -> Work:
    """Count what the kernel moves and goes over."""
    counted = steps(size, options)
    return Work(
        bytes_in=24 * size.rows,
        bytes_out=0,
        steps=counted,
        bytes_kernel=40 * size.rows + round(BYTES_PER_WINDOW * counted["windows"]),
    )


def halo(options: Any) -> float:
    """Give what a tile of a cloud needs on every side, in the unit of x and y.

    Whether a point of the tile is a filled one depends on all seeds of its fill cell, and these on
    all windows above them. A step more keeps borders that were rounded inside.
    """
    distance: float = options.window_size + options.cell_size + max(options.steps)
    return distance


def work_in_tiles(size: Size, options: Any, tiles: int) -> Work:
    """Count what takes less memory: runs of points beside all cells, or strips of the cloud."""
    ways = _in_runs(size, options, tiles), _in_strips(size, options, tiles)
    return min(ways, key=lambda way: way.bytes_kernel)


def keeps_cells(size: Size, options: Any, tiles: int) -> bool:
    """Whether all cells stay on a GPU while runs of points go by: else there are strips."""
    runs, strips = (way(size, options, tiles) for way in (_in_runs, _in_strips))
    return runs.bytes_kernel <= strips.bytes_kernel


def are_apart(size: Size, options: Any, tiles: int) -> bool:
    """Whether tiles are strips, of which none needs what another one found."""
    return not keeps_cells(size, options, tiles)


def _in_runs(size: Size, options: Any, tiles: int) -> Work:
    """Count runs, each of which meets all cells.

    The host finds the extent, which takes it about as long as to copy x and y to a GPU.
    """
    whole, cells = work(size, options), _cells(size, options)
    return replace(
        whole,
        bytes_in=whole.bytes_in + 16 * size.rows,
        bytes_kernel=BYTES_AT_LEAST
        + BYTES_PER_POINT_OF_RUN * ceil(size.rows / tiles)
        + round(BYTES_PER_CELL * cells),
    )


def _in_strips(size: Size, options: Any, tiles: int) -> Work:
    """Count the strips, each with the points and windows of its halo."""
    if options.bounds is not None:
        xmin, ymin, xmax, ymax = options.bounds
        size = replace(size, extent=(xmax - xmin, ymax - ymin, 0.0))
    strip = work(size.strip(tiles, halo(options)), replace(options, bounds=None))
    gathered = BYTES_GATHERED * tiles * strip.steps["points"]
    return replace(strip.times(tiles), bytes_host=round(gathered))


def _cells(size: Size, options: Any) -> float:
    """Count the cells into which the borders of windows and fill cells cut the extent.

    There is a cell between two borders, and one on each. Borders that coincide are one, but not
    all of them where sums are rounded.
    """
    if options.bounds is not None:
        xmin, ymin, xmax, ymax = options.bounds
        sides = xmax - xmin, ymax - ymin
    else:
        sides = (size.extent or (sqrt(size.area),) * 2)[:2]
    fill = options.cell_size
    cells = 1.0
    for side, step in zip(sides, options.steps, strict=True):
        meet = _are_steps(step, 2 * options.half(options.window_size))
        fills_meet = meet and _are_steps(step, fill, 2 * options.half(fill))
        borders = (1 if meet else 2) * ((side + 2 * options.window_size + fill) / step + 1)
        if not fills_meet:
            borders += 2 * (side / fill + 1)
        cells *= 2 * (borders + ROUNDED)
    return min(cells, float(sys.maxsize))


def _are_steps(step: float, *distances: float) -> bool:
    """Whether distances between borders are whole numbers of steps, without rounding."""
    return (1024 * step).is_integer() and all(each % step == 0 for each in distances)
