"""Cells of space with about equally many boxes, in each of which pairs of near boxes are sought."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spatialq.runtime.arrays import Floats, Ints

MOST_COPIES = 1.25
"""A cell is not divided where both halves would have this many times its boxes: they are long."""


@dataclass(frozen=True)
class BoxCell:
    """A cell, and the boxes that touch it."""

    rows: Ints
    low: Floats
    """float64[3]: the corner that belongs to the cell, or minus infinity."""
    high: Floats
    """float64[3]: the other, of which no side belongs to it."""


def box_cells(low: Floats, high: Floats, most: int) -> Iterator[BoxCell]:
    """Divide space into cells, until each has few boxes.

    The cells do not overlap and cover all of space. Of two boxes that meet, the greater of both
    lower corners on each axis, which is the lower corner of what they have in common, is in one
    cell, which both touch: there they are a pair.

    Parameters
    ----------
    low, high : float64[n, 3]
        The corners of boxes.
    most : int
        Boxes of a cell, unless they are so long that dividing them hardly makes them fewer.

    Yields
    ------
    BoxCell
        One at least, in an order that depends on the boxes alone.
    """
    nowhere = np.full(3, np.inf)
    left = [BoxCell(np.arange(len(low)), -nowhere, nowhere)]
    while left:
        cell = left.pop()
        halves = _halves(cell, low, high) if cell.rows.size > most else None
        if halves is None:
            yield cell
        else:
            left.extend(halves)


def _halves(cell: BoxCell, low: Floats, high: Floats) -> tuple[BoxCell, BoxCell] | None:
    """Divide a cell across the axis that cuts the fewest boxes; None if none is worth it."""
    rows, best = cell.rows, None
    copies = MOST_COPIES * rows.size
    for axis in range(3):
        starts = low[rows, axis]
        at = np.partition(starts, rows.size // 2)[rows.size // 2]
        below, above = starts < at, high[rows, axis] >= at
        both = int(below.sum() + above.sum())
        if both < copies and not (below.all() or above.all()):
            copies, best = both, (axis, at, rows[below], rows[above])
    if best is None:
        return None
    axis, at, below, above = best
    upper, lower = cell.high.copy(), cell.low.copy()
    upper[axis] = lower[axis] = at
    return BoxCell(above, lower, cell.high), BoxCell(below, cell.low, upper)
