"""How much work a call of `classify_ground` is: bytes and steps, no machine constants."""

from typing import Any

from spatialq.functions.declaration import Work

CELLS_PER_POINT = 4
"""Cells are half the spacing of the points wide, or more; gaps between islands come on top."""

BYTES_PER_POINT = 24 + 8 + 9
"""x, y, z; the order of the points for the seeds; height and whether it is ground."""

BYTES_PER_CELL = 64
"""Nine grids of heights and slopes, four of flags, and six tables of runs for the discs."""


def work(rows: int, options: Any) -> Work:
    """Count points: the grid is O(rows) cells, each visited some thousand times."""
    del options  # the widest object changes the factor, not the order
    return Work(
        bytes_in=24 * rows,
        bytes_out=9 * rows,
        steps=rows,
        bytes_kernel=(BYTES_PER_POINT + CELLS_PER_POINT * BYTES_PER_CELL) * rows,
    )
