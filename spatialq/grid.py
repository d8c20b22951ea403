"""A terrain grid as kernels see it: an array of heights, and where its cells are."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq import cuda


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


def heights(values: Any, missing: Any = None) -> Any:
    """Make heights of the numbers of a file or a caller.

    Parameters
    ----------
    values : array of numbers [rows, columns]
    missing : bool[rows, columns], optional
        Where there is no value, besides NaN.

    Returns
    -------
    float32 or float64 [rows, columns]
        float32 where that holds every number of the type.
    """
    z = values.astype(np.float32 if np.can_cast(values.dtype, np.float32) else np.float64)
    if missing is not None:
        z[missing] = np.nan
    return z


def has_values(whose: str, grid: Grid) -> bool:
    """Whether a cell of a grid has a value.

    Parameters
    ----------
    whose : str
        What an error begins with.
    grid : Grid

    Raises
    ------
    ValueError
        If a value is infinite.
    """
    xp = cuda.device().xp if cuda.on_gpu(grid.z) else np
    infinite = xp.isinf(grid.z)
    if infinite.any():
        row, column = divmod(int(infinite.argmax()), grid.columns)
        x, y = grid.x0 + column * grid.dx, grid.y0 + (grid.first_row + row) * grid.dy
        value = float(grid.z[row, column])
        message = f"{whose}: z must be finite or missing, got {value!r} at x = {x!r}, y = {y!r}"
        raise ValueError(message)
    return not bool(xp.isnan(grid.z).all())


def require_values(whose: str, grid: Grid) -> None:
    """Refuse a grid without a value, or with one that is infinite.

    Raises
    ------
    ValueError
    """
    if not has_values(whose, grid):
        message = f"{whose}: the grid has no value: all {grid.z.size} cells are missing"
        raise ValueError(message)
