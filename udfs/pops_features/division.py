"""The two-level division of a grid into examples and their patches, in cells."""

from dataclasses import dataclass
from math import ceil, floor
from typing import TYPE_CHECKING, NamedTuple

from spatialq.data.grid import Grid, WindowAxis

if TYPE_CHECKING:
    from .options import Options

NEAR = 0.02
"""Tolerance in cells within which a length is a whole or half number of cells: coordinates are
rounded by up to a hundredth of a cell at both ends of a grid, and so is the spacing derived from
them."""

ROUNDING = 1e-6
"""Tolerance in cells when a share of them is counted."""


@dataclass(frozen=True)
class Scale:
    """Patches of one scale in an example."""

    length: float
    """As given by the user, in the unit of x and y."""
    x: WindowAxis
    y: WindowAxis

    @property
    def patches(self) -> int:
        """Patches of an example."""
        return self.x.count * self.y.count

    @property
    def cells(self) -> int:
        """Cells of a patch."""
        return self.x.size * self.y.size

    def min_cells(self, options: "Options") -> int:
        """Minimum number of cells of a patch that have a value."""
        min_cells = max(options.min_points, ceil(options.min_valid * self.cells - ROUNDING))
        return min(min_cells, self.cells + 1)  # one more than any patch has


class Examples(NamedTuple):
    """Some adjacent examples, by their numbers in the whole grid."""

    columns: range
    rows: range


@dataclass(frozen=True)
class Division:
    """Examples of a grid, and the patches of each."""

    x: WindowAxis
    y: WindowAxis
    """Examples: columns and rows of the whole grid."""
    scales: tuple[Scale, ...]
    """In ascending order."""

    def within(self, grid: Grid) -> Examples:
        """Give the examples that lie completely in a window of the grid."""
        rows, columns = map(int, grid.z.shape)
        across, along = (self.x, grid.first_column, columns), (self.y, grid.first_row, rows)
        return Examples(_windows_within(*across), _windows_within(*along))


def divide(grid: Grid, options: "Options") -> Division:
    """Divide a grid into examples, and these into patches (Liang et al. 2022, section 3.1).

    Windows start in the south-western corner; cells after the last window are not used. A size is
    the number of whole cells that fit into the length. A step is the nearest number of cells, of
    two equally near ones the even one, and at least 1, as in the published code.

    Raises
    ------
    ValueError
        If a scale is smaller than two cells or larger than an example, an example is larger than
        the grid, or the grid is a single row or column.
    """
    if min(grid.rows, grid.columns) < 2:
        must = "the grid must have two rows and two columns or more"
        message = f"{options.function}: {must}, got {grid.rows} x {grid.columns}"
        raise ValueError(message)
    spacings = (("x", grid.dx, grid.columns), ("y", grid.dy, grid.rows))
    coarse, wide, _ = max(spacings, key=lambda each: each[1])
    low = f"from {2 * wide:g}, two cells along {coarse},"
    axes = []
    for _, spacing, n in spacings:
        size = _size(options.example_scale, spacing, n)
        if not 2 <= size <= n:
            short, narrow, cells = min(spacings, key=lambda each: each[1] * each[2])
            high = f"{cells * narrow:g}, all {cells} along {short}"
            options.reject("example_scale", f"{low} to {high}")
        step = options.example_step
        axes.append(_windows(size, size if step is None else _step(step, spacing, n), n))
    steps = options.steps or [scale / 2 for scale in options.scales]
    scales = []
    for length, step in sorted(zip(options.scales, steps, strict=True)):
        sides = []
        for (_, spacing, n), example in zip(spacings, axes, strict=True):
            size = _size(length, spacing, n)
            if not 2 <= size <= example.size:
                options.reject("scales", f"{low} to example_scale ({options.example_scale:g})")
            sides.append(_windows(size, _step(step, spacing, n), example.size))
        scales.append(Scale(length, sides[0], sides[1]))
    return Division(axes[0], axes[1], tuple(scales))


def _windows_within(axis: WindowAxis, first: int, n: int) -> range:
    start = -(-first // axis.step)
    stop = (first + n - axis.size) // axis.step + 1
    return range(start, max(start, min(stop, axis.count)))


def _windows(size: int, step: int, n: int) -> WindowAxis:
    return WindowAxis(size, step, 1 + (n - size) // step)


def _size(length: float, spacing: float, n: int) -> int:
    """Count the whole cells in a length; n + 1 if there are more than the n cells of the grid."""
    return floor(min(length / spacing, n + 1) + NEAR)


def _step(length: float, spacing: float, n: int) -> int:
    """Round a length to cells; at most n, which already leads out of the grid of n cells."""
    cells = min(length / spacing, n)
    halves = round(2 * cells)
    return max(1, round(halves / 2 if abs(2 * cells - halves) < NEAR else cells))
