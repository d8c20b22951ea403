"""Bands of a large grid: which rows they must hold complete, and the size of their results."""

from typing import TYPE_CHECKING

from spatialq.data.grid import Grid, Windows

from .division import Division, divide
from .table import series_of

if TYPE_CHECKING:
    from .options import Options


def feature_windows(grid: Grid, options: "Options") -> Windows:
    """Find the rows of examples of a grid; the result has one row per example and series."""
    division = divide(grid, options)
    return _windows(grid, division, len(series_of(division, options)))


def patch_windows(grid: Grid, options: "Options") -> Windows:
    """Find the rows of examples of a grid; the result has one row per series and patch."""
    division = divide(grid, options)
    series = series_of(division, options)
    return _windows(grid, division, sum(division.scales[each.scale].patches for each in series))


def _windows(grid: Grid, division: Division, results: int) -> Windows:
    y, columns = division.y, division.within(grid).columns
    return Windows(y.size, y.step, y.count, division.x, results=len(columns) * results)
