"""An order of places in which neighbours are near each other: that of a Hilbert curve."""

from collections.abc import Sequence

import numpy as np

from spatialq.runtime.arrays import Floats, Ints

LEVELS = 16
"""The curve passes through 2^16 x 2^16 cells, which is one in a square of 65 km."""


def cells_of(x: Floats, y: Floats, box: Sequence[float]) -> tuple[Ints, Ints]:
    """Find the cells of places in a box of 2^16 x 2^16; those without a place are in the first."""
    xmin, ymin, xmax, ymax = box
    last = (1 << LEVELS) - 1
    longer = max(xmax - xmin, ymax - ymin)
    if not 0 < longer < np.inf:  # one place, or none
        return np.zeros(x.shape, np.int64), np.zeros(x.shape, np.int64)
    column, row = (
        np.clip(np.nan_to_num((values - low) / longer, nan=0.0) * last, 0, last).astype(np.int64)
        for values, low in ((x, xmin), (y, ymin))
    )
    return column, row


def hilbert(column: Ints, row: Ints) -> Ints:
    """Count how many cells the curve has passed before each cell.

    It begins in cell 0, 0 and ends in the last one of row 0.

    Parameters
    ----------
    column, row : int64[n]
        >= 0, < 2^16.

    References
    ----------
    D. Hilbert: Ueber die stetige Abbildung einer Linie auf ein Flaechenstueck, Mathematische
    Annalen 38 (1891): each quarter of a square has a curve like the whole one, turned so that it
    begins beside the end of the one before.
    """
    column, row = column.copy(), row.copy()
    passed = np.zeros(column.shape, np.int64)
    for level in reversed(range(LEVELS)):
        side = 1 << level
        east, north = (column & side) != 0, (row & side) != 0
        passed += np.where(east, np.where(north, 2, 3), np.where(north, 1, 0)) * side * side
        # within its quarter
        column, row = column & (side - 1), row & (side - 1)
        last = ~north & east
        column, row = np.where(last, side - 1 - column, column), np.where(last, side - 1 - row, row)
        turned = ~north
        column, row = np.where(turned, row, column), np.where(turned, column, row)
    return passed
