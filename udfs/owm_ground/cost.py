"""How much work a call of `owm_ground` is: bytes and steps, no machine constants."""

import sys
from dataclasses import replace
from typing import Any

from spatialq.functions.declaration import Size, Work

from .rounding import window_step

CACHED = 10_000
"""Windows whose cells a cache of some hundred KiB holds."""

BYTES_PER_WINDOW = 128
"""Up to four cells begin at the borders of a window, with the lowest point of each."""


def steps(size: Size, options: Any) -> dict[str, float]:
    """Count points, the windows over their extent, and points whose cell is not in the cache.

    Every point is read twice (x and y for the extent, x, y and z for its cell), and its cell is
    touched once: of a wide cloud in any order, mostly in main memory.
    """
    step = window_step(options.window_size, options.overlap)
    windows = min(1 + _area(size, options) / step / step, float(sys.maxsize))
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
    step = window_step(options.window_size, options.overlap)
    distance: float = options.window_size + options.cell_size + step
    return distance


def work_in_tiles(size: Size, options: Any, tiles: int) -> Work:
    """Count the strips, each with the points and windows of its halo."""
    if options.bounds is not None:
        xmin, ymin, xmax, ymax = options.bounds
        size = replace(size, extent=(xmax - xmin, ymax - ymin, 0.0))
    strip = work(size.strip(tiles, halo(options)), replace(options, bounds=None))
    return strip.times(tiles)
