"""How much work a call of `classify_ground` is: bytes and steps, no machine constants."""

import sys
from math import sqrt
from typing import Any

from spatialq.functions.declaration import Size, Work

MIN_CELL = 1.0
SPACINGS_PER_CELL = 0.5
"""As in method.py, which imports NumPy: metres, and mean spacings of the points."""

BYTES_PER_POINT = 24 + 8 + 9
"""x, y, z; the order of the points for the seeds; height and whether it is ground."""

BYTES_PER_CELL = 64
"""Nine grids of heights and slopes, four of flags, and six tables of runs for the discs."""


def work(size: Size, options: Any) -> Work:
    """Count points, the cells of the grid, and the rows of the discs that are moved over it.

    Cells are half the spacing of the points wide, or a metre: a cloud of ten points on a square
    metre has a tenth as many cells as points, a sparse one four times as many. The widest object
    says how many rows of cells the largest disc has.
    """
    area = size.area * options.metres * options.metres
    cell = max(MIN_CELL, SPACINGS_PER_CELL * sqrt(area / max(size.rows, 1)))
    cells = min(1 + area / cell / cell, float(sys.maxsize))
    return Work(
        bytes_in=24 * size.rows,
        bytes_out=9 * size.rows,
        steps={
            "points": size.rows,
            "cells": cells,
            "rows of discs": cells * options.object_width / cell,
        },
        bytes_kernel=BYTES_PER_POINT * size.rows + round(BYTES_PER_CELL * cells),
    )
