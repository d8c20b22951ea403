"""The grid of the result, for all kernels; heights may be NumPy or CuPy arrays."""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor
from typing import Any

import numpy as np

from spatialq.data.points import in_parts
from spatialq.runtime import buffers
from spatialq.runtime.arrays import Floats
from spatialq.runtime.threads import CHUNK, steps

from . import Options

MAX_CELLS = 1 << 28
MIN_STEP = 1000  # a cell must have this many spacings of double precision


@dataclass(frozen=True)
class SurfaceRaster:
    """Square cells whose edges are multiples of the resolution, over the bounding box of points.

    Cell `column` spans [column * resolution, (column + 1) * resolution). Heights are an array of
    shape (rows, columns) with the southernmost row first.
    """

    resolution: float
    first_column: int
    first_row: int
    columns: int
    rows: int

    @cached_property
    def x(self) -> Floats:
        """Centres of the columns, west to east."""
        return _centres(self.first_column, self.columns, self.resolution)

    @cached_property
    def y(self) -> Floats:
        """Centres of the rows, south to north."""
        return _centres(self.first_row, self.rows, self.resolution)

    @property
    def origin(self) -> tuple[float, float]:
        """Lower left corner: kernels use coordinates relative to it, so that no digits are lost."""
        return self.first_column * self.resolution, self.first_row * self.resolution

    @cached_property
    def step(self) -> float:
        """The spacing of double precision at the far corner: a power of two.

        Relative coordinates are multiples of it, so that their differences have no rounding error.
        """
        return float(np.spacing(self.resolution * max(self.columns, self.rows)))

    def relative(self, values: Floats, start: float) -> Floats:
        """Coordinates relative to that of the origin, rounded to multiples of `step`."""
        step = self.step
        if values.size <= CHUNK:
            few: Floats = np.rint((values - start) / step) * step
            return few
        result: Floats = buffers.empty(values.size)
        for part in (slice(*span) for span in steps(0, values.size)):
            result[part] = np.rint((values[part] - start) / step) * step
        return result

    def centres_from(self, corner: tuple[float, float] = (0.0, 0.0)) -> tuple[Floats, Floats]:
        """Centres of columns and rows relative to a corner, which is relative to the origin."""
        x0, y0 = self.origin
        return self.relative(self.x, x0) - corner[0], self.relative(self.y, y0) - corner[1]

    def table(self, heights: Any, xp: Any) -> dict[str, Any]:
        """List the cells as columns x, y, z with the northernmost row first.

        `xp` is the library of `heights`, NumPy or CuPy; the columns are its arrays.
        """
        empty = buffers.empty if xp is np else xp.empty
        x, y, z = (empty((self.rows, self.columns)) for _ in range(3))
        x[:], y[:] = xp.asarray(self.x), xp.asarray(self.y)[::-1, None]
        z[:] = heights[::-1]
        return {"x": x.ravel(), "y": y.ravel(), "z": z.ravel()}


def cover(x: Any, y: Any, options: Options) -> SurfaceRaster:
    """Make the grid over the bounding box of one or more points; arrays of NumPy or CuPy.

    Raises
    ------
    ValueError
        If there are too many cells, or they are too small for double precision.
    """
    resolution = options.resolution
    sides = [_ends(each) for each in (x, y)]
    largest = max(abs(end) for side in sides for end in side)
    if np.spacing(largest) * MIN_STEP > resolution:
        message = (
            f"{options.function}: x and y must be small enough that double precision tells apart "
            f"{MIN_STEP} places in a cell of {resolution:g}, got {largest:g}"
        )
        raise ValueError(message)
    (first_column, columns), (first_row, rows) = (_cells(*side, resolution) for side in sides)
    if columns * rows > MAX_CELLS:
        message = (
            f"{options.function}: resolution {resolution:g} cuts the extent of the points into "
            f"{columns:,} x {rows:,} cells, more than {MAX_CELLS:,}; take a larger resolution, "
            "tiles, or remove stray points"
        )
        raise ValueError(message)
    return SurfaceRaster(resolution, first_column, first_row, columns, rows)


def _ends(values: Any) -> tuple[float, float]:
    """Give minimum and maximum; of NumPy arrays they are found in threads."""
    if not isinstance(values, np.ndarray):
        return float(values.min()), float(values.max())
    parts = in_parts(
        lambda first, stop: (values[first:stop].min(), values[first:stop].max()), values.size
    )
    lows, highs = zip(*parts, strict=True)
    return float(min(lows)), float(max(highs))


def _cells(low: float, high: float, resolution: float) -> tuple[int, int]:
    first = floor(low / resolution)
    return first, max(1, ceil(high / resolution) - first)


def _centres(first: int, count: int, resolution: float) -> Floats:
    index = np.arange(first, first + count, dtype=np.float64)
    centres: Floats = (index + 0.5) * resolution
    return centres
