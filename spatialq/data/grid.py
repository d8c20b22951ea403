"""A terrain grid: an array of heights, and the coordinates of its cells."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.runtime import cuda

MAX_HEIGHT = 1e60
"""Maximum absolute height: the fourth powers of larger ones, which moments need, overflow."""
BAND_CELLS = 1 << 24
"""Cells of a file that a kernel gets at once, more or less."""
BAND_RESULTS = 1 << 20
"""Rows of its result at once, more or less: as lists DuckDB holds them several times, 0.6 KiB a
row."""
EQUAL = 1e-10
"""Relative difference of spacings that rounding explains: such cells are square."""


@dataclass(frozen=True)
class Grid:
    """A regular grid, or a window of one, such as a band of complete rows.

    Parameters
    ----------
    z : float32 or float64 [rows, columns], contiguous
        Row 0 is the southernmost; NaN where there is no value. In main memory or on a GPU.
    x0, y0 : float
        Centre of the south-western cell of the whole grid.
    dx, dy : float, > 0
        Spacing of the cells.
    first_row : int
        Number of the row of the whole grid that `z[0]` is.
    all_rows : int, optional
        Rows of the whole grid; by default those of `z`.
    first_column : int
        Number of the column of the whole grid that `z[:, 0]` is.
    all_columns : int, optional
        Columns of the whole grid; by default those of `z`.
    """

    z: Any
    x0: float = 0.0
    y0: float = 0.0
    dx: float = 1.0
    dy: float = 1.0
    first_row: int = 0
    all_rows: int | None = None
    first_column: int = 0
    all_columns: int | None = None

    def __post_init__(self) -> None:
        if abs(self.dx - self.dy) < EQUAL * self.dx:
            object.__setattr__(self, "dy", self.dx)

    @property
    def rows(self) -> int:
        """Rows of the whole grid."""
        return int(self.z.shape[0]) if self.all_rows is None else self.all_rows

    @property
    def columns(self) -> int:
        """Columns of the whole grid."""
        return int(self.z.shape[1]) if self.all_columns is None else self.all_columns

    @property
    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The centres of the south-western and of the north-eastern cell of the whole grid."""
        east, north = (self.columns - 1) * self.dx, (self.rows - 1) * self.dy
        return (self.x0, self.y0), (self.x0 + east, self.y0 + north)


@dataclass(frozen=True)
class WindowAxis:
    """Windows along one axis: each `size` cells, `step` cells apart, `count` of them."""

    size: int
    step: int
    count: int

    @property
    def extent(self) -> int:
        """Cells from the first cell of the first window to the last cell of the last window."""
        return self.size + (self.count - 1) * self.step


@dataclass(frozen=True)
class Windows(WindowAxis):
    """Runs of rows that a band must contain completely."""

    x: WindowAxis
    """Runs of columns, of which a tile of a job has some."""
    results: int
    """Rows of the result per window."""

    def bands(self, columns: int, among: range | None = None) -> list[tuple[int, int]]:
        """Divide so many columns into bands of some windows each, one at least.

        `among` are the windows that are needed, by default all.

        Returns
        -------
        list of (int, int)
            The first row of a band, from the south, and the one behind its last.
        """
        among = range(self.count) if among is None else among
        by_cells = 1 + (BAND_CELLS // columns - self.size) // self.step
        n = max(1, min(by_cells, BAND_RESULTS // self.results))
        parts = (among[first : first + n] for first in range(0, len(among), n))
        return [(part[0] * self.step, part[-1] * self.step + self.size) for part in parts]


def heights(values: Any, missing: Any = None) -> Any:
    """Convert numbers to heights.

    Parameters
    ----------
    values : array of numbers [rows, columns]
        In main memory or on a GPU.
    missing : bool[rows, columns], optional
        True where there is no value; NaN is always missing.

    Returns
    -------
    float32 or float64 [rows, columns], contiguous
        float32 if it can hold every number of the type. Copied only if necessary.
    """
    single = np.can_cast(values.dtype, np.float32)
    z = values.astype(np.float32 if single else np.float64, order="C", copy=missing is not None)
    if missing is not None:
        z[missing] = np.nan
    return z


def count_values(whose: str, grid: Grid) -> int:
    """Count the cells of a grid that have a value.

    Parameters
    ----------
    whose : str
        Name at the beginning of an error sentence.
    grid : Grid

    Raises
    ------
    ValueError
        If a value is infinite, or so large that its moments overflow.
    """
    xp = cuda.device().xp if cuda.on_gpu(grid.z) else np
    if grid.z.dtype == np.float32:  # larger float32 are infinite
        beyond = xp.isinf(grid.z)
    else:
        beyond = (grid.z > MAX_HEIGHT) | (grid.z < -MAX_HEIGHT)
    if cuda.count(beyond):
        row, column = divmod(int(beyond.argmax()), int(grid.z.shape[1]))
        x = grid.x0 + (grid.first_column + column) * grid.dx
        y = grid.y0 + (grid.first_row + row) * grid.dy
        value = float(grid.z[row, column])
        must = f"from {-MAX_HEIGHT:g} to {MAX_HEIGHT:g}, or missing"
        message = f"{whose}: z must be {must}, got {value!r} at x = {x!r}, y = {y!r}"
        raise ValueError(message)
    return int(grid.z.size) - cuda.count(xp.isnan(grid.z))


def require_values(whose: str, grid: Grid) -> None:
    """Reject a grid without any value, or with a value that is infinite or too large.

    Raises
    ------
    ValueError
    """
    if not count_values(whose, grid) and grid.z.size:
        message = f"{whose}: the grid has no value: all {grid.z.size} cells are missing"
        raise ValueError(message)
