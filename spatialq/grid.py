"""A terrain grid as kernels see it: an array of heights, and where its cells are."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Grid:
    """A regular grid, or a band of whole rows of one.

    Parameters
    ----------
    z : float32 or float64 [rows, columns], contiguous
        Row 0 is the southernmost; NaN where there is no value. In the memory of the host or of a
        GPU.
    x0, y0 : float
        Centre of the south-western cell of the whole grid.
    dx, dy : float, > 0
        Spacing of the cells.
    first_row : int
        Which row of the whole grid `z[0]` is.
    all_rows : int, optional
        Rows of the whole grid; by default those of `z`.
    """

    z: Any
    x0: float = 0.0
    y0: float = 0.0
    dx: float = 1.0
    dy: float = 1.0
    first_row: int = 0
    all_rows: int | None = None

    @property
    def rows(self) -> int:
        """Rows of the whole grid."""
        return int(self.z.shape[0]) if self.all_rows is None else self.all_rows

    @property
    def columns(self) -> int:
        """Columns of the grid."""
        return int(self.z.shape[1])
