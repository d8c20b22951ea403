"""How much work a call of `classify_ground` is: bytes and steps, no machine constants."""

import sys
from dataclasses import replace
from math import ceil, sqrt
from typing import Any

from spatialq.functions.declaration import Size, Work

from ..owm_ground import cost as owm_ground

MIN_CELL = 1.0
SPACINGS_PER_CELL = 0.5
CELLS_PER_WINDOW = 8.0
"""As in method.py, which imports NumPy: metres, and mean spacings of the points."""

BYTES_OF_ROW = 8 + 1 + 4
"""Height, whether it is ground, and by how much."""

BYTES_PER_POINT = 24 + 8 + BYTES_OF_ROW
"""x, y, z; the order of the points for the seeds; what is found."""

BYTES_PER_POINT_OF_TILE = 24 + BYTES_OF_ROW
"""x, y, z; what is found."""

PASSES = 4
"""Over the tiles: extent, occupied area, lowest points, heights; the seeds are a fifth."""

BYTES_PER_CELL = 96
"""Nine grids of heights and slopes, four of flags, the same at half the sides and so on for what is
filled, and eight tables of runs for the discs, wider by their margin."""

BYTES_PER_CELL_AT_SEEDS = 48
"""What there is of these while the seeds are found: no tables."""


def work(size: Size, options: Any) -> Work:
    """Count points, the cells of the grid, and the rows of the discs that are moved over it.

    Cells are half the spacing of the points wide, or a metre: a cloud of ten points on a square
    metre has a tenth as many cells as points, a sparse one four times as many. The widest object
    says how many rows of cells the largest disc has.
    """
    cell, cells = _cells(size, options)
    return Work(
        bytes_in=24 * size.rows,
        bytes_out=BYTES_OF_ROW * size.rows,
        steps={
            "points": size.rows,
            "cells": cells,
            "rows of discs": cells * options.object_width / cell,
        },
        bytes_kernel=BYTES_PER_POINT * size.rows + round(BYTES_PER_CELL * cells),
    )


def _cells(size: Size, options: Any) -> tuple[float, float]:
    """Give the side of a cell in metres, and the number of cells."""
    area = size.area * options.metres * options.metres
    cell = max(MIN_CELL, SPACINGS_PER_CELL * sqrt(area / max(size.rows, 1)))
    return cell, min(1 + area / cell / cell, float(sys.maxsize))


def work_in_tiles(size: Size, options: Any, tiles: int) -> Work:
    """Count passes over runs of points with the grid resident, and the tiles of the seeds."""
    whole = work(size, options)
    cell, cells = _cells(size, options)
    window = max(options.window_size, CELLS_PER_WINDOW * cell)
    fill = options.cell_size and max(options.cell_size, 2 * window)
    asked = replace(options, window_size=window, cell_size=fill, bounds=None)
    extent = size.extent and tuple(side * options.metres for side in size.extent)
    seeds = owm_ground.work_in_tiles(replace(size, extent=extent), asked, tiles)
    run = BYTES_PER_POINT_OF_TILE * ceil(size.rows / tiles)
    return replace(
        whole,
        bytes_in=PASSES * whole.bytes_in + seeds.bytes_in,
        bytes_host=seeds.bytes_host,
        bytes_kernel=max(
            run + round(BYTES_PER_CELL * cells),
            seeds.bytes_kernel + round(BYTES_PER_CELL_AT_SEEDS * cells),
        ),
    )
