"""The grid over the cloud (step 1 of README.md), and the clouds that all kernels reject."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import floor, sqrt
from typing import TYPE_CHECKING

import numpy as np
from spatialq.udfs.owm_ground import Options as OwmOptions
from spatialq.udfs.owm_ground.rounding import window_step
from spatialq.udfs.owm_ground.windows import Box

from . import method

if TYPE_CHECKING:
    from . import Options

MAX_CELLS = 1 << 28
MAX_EMPTY, MAX_CELLS_PER_POINT = 1 << 22, 64  # larger grids would be nearly all empty


@dataclass(frozen=True)
class CloudRaster:
    """Square cells over the cloud; row 0 is the southernmost, column 0 the westernmost."""

    west: float
    south: float
    cell: float
    shape: tuple[int, int]
    density: float
    """Points per square metre of the occupied area."""

    @property
    def origin(self) -> tuple[float, float]:
        """South-western corner."""
        return self.west, self.south

    @property
    def first(self) -> tuple[int, int]:
        """Numbers of the first row and column, counted from 0 of the coordinates."""
        return round(self.south / self.cell), round(self.west / self.cell)

    @property
    def step(self) -> np.float32:
        """Side of a cell in the precision of the loops over the grid."""
        return np.float32(self.cell)


def windows(grid: CloudRaster, options: "Options") -> OwmOptions:
    """Make the options of `owm_ground` for the seeds of step 5.

    In a very sparse cloud a window has at least some cells; otherwise nearly all windows would be
    empty.
    """
    return _windows(grid.cell, grid.density, options)


@lru_cache(maxsize=64)  # of many clouds of about one density
def _windows(cell: float, density: float, options: "Options") -> OwmOptions:
    size = max(options.window_size, method.CELLS_PER_WINDOW * cell)
    cell_size = options.cell_size and max(options.cell_size, 2 * size)
    min_points = options.min_points or max(1, int(0.5 * density * size**2))
    return OwmOptions(
        size,
        options.overlap,
        min_points,
        cell_size,
        odd_sizes="reference",
        caller=options.function,
    )


def extent(grid: CloudRaster, options: OwmOptions) -> Box:
    """Make the extent from which windows and fill cells begin: at multiples of their distances.

    Fill cells are as wide as whole steps of windows, unless the user chose it otherwise.
    """
    side = options.cell_size or window_step(options.window_size, options.overlap)
    x, y = _corner(grid.west, grid.south, side)
    rows, columns = grid.shape
    return Box(x, grid.west + columns * grid.cell, y, grid.south + rows * grid.cell)


CountOccupied = Callable[[float, float, float, tuple[int, int]], int]
"""Counts the squares that contain a point; takes the west and south border, side and shape."""


def lay_grid(
    x_ends: tuple[float, float],
    y_ends: tuple[float, float],
    n_points: int,
    count_occupied: CountOccupied,
) -> CloudRaster:
    """Make the grid over a cloud of this extent.

    Raises
    ------
    ValueError
        If the grid is too large for memory.
    """
    (west, east), (south, north) = x_ends, y_ends
    width, height = east - west, north - south
    spacing = sqrt(width) * sqrt(height) / sqrt(n_points)
    block = max(method.BLOCK, method.SPACINGS_PER_BLOCK * method.rung(spacing))
    _reject_too_large(width, height, block, n_points)
    corner = _corner(west, south, block)
    n_blocks = count_occupied(*corner, block, _shape(east - corner[0], north - corner[1], block))
    # A small cloud fills its squares only in part; a scattered one its bounding box.
    area = min(width * height, n_blocks * block * block)
    typical = method.rung(sqrt(area / n_points))
    cell = max(method.MIN_CELL, method.SPACINGS_PER_CELL * typical)
    _reject_too_large(width, height, cell, n_points)
    west, south = _corner(west, south, cell)
    density = 1 / typical**2 if typical > 0 else 0.0
    return CloudRaster(west, south, cell, _shape(east - west, north - south, cell), density)


def part_between(
    shape: tuple[int, int],
    corner: tuple[float, float],
    side: float,
    x_ends: tuple[float, float],
    y_ends: tuple[float, float],
    margin: int = 0,
) -> tuple[slice, slice]:
    """Give the rows and columns of a grid in which the points of an extent are.

    Parameters
    ----------
    shape : (rows, columns)
    corner : (west, south)
        Of the grid, as `side` in metres.
    side : float
        Of its cells.
    x_ends, y_ends : (low, high)
        In metres, in the extent that the grid is over.
    margin : int
        Cells more on each side, as long as there are some.
    """

    def part(n: int, first: float, ends: tuple[float, float]) -> slice:
        low, high = (min(int((end - first) / side), n - 1) for end in ends)
        return slice(max(low - margin, 0), min(high + margin + 1, n))

    return part(shape[0], corner[1], y_ends), part(shape[1], corner[0], x_ends)


def _corner(west: float, south: float, side: float) -> tuple[float, float]:
    """Find the corner of a point's square; squares begin at multiples of their side."""
    return floor(west / side) * side, floor(south / side) * side


def _shape(width: float, height: float, cell: float) -> tuple[int, int]:
    return int(height / cell) + 1, int(width / cell) + 1


def _reject_too_large(width: float, height: float, cell: float, n_points: int) -> None:
    most = min(MAX_CELLS, MAX_EMPTY + MAX_CELLS_PER_POINT * n_points)
    if not (width / cell + 1) * (height / cell + 1) <= most:  # NaN is rejected, too
        message = (
            f"classify_ground: the extent of {n_points} points must have at most {most:.2g} cells "
            f"of {cell:g} m, got {width:g} x {height:g} m; remove stray points, or go tile by tile"
        )
        raise ValueError(message)
