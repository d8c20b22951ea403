"""Rasters of features, whose cells are the examples."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.export.raster import write_bands
from spatialq.io.crs import with_one_unit
from spatialq.workflows.feature_choice import Features

if TYPE_CHECKING:
    from spatialq.io.grid.source import GridSource
    from spatialq.runtime.arrays import Array
    from spatialq.udfs.pops_features.division import Division, Examples

    MeansOf = Callable[[str, str, int], Array]


def write_examples(
    target: Path,
    grid: "GridSource",
    division: "Division",
    examples: "Examples",
    shown: Features,
    means: "MeansOf",
) -> None:
    """Write the means of features, one cell per example: as wide as the step, around its centre.

    Parameters
    ----------
    target : Path
    grid : GridSource
    division : Division
        Of the grid.
    examples : Examples
        Those that the raster has.
    shown : mapping of str to (method, feature)
        By their labels.
    means : callable
        Gets a method, a feature of it and the position of a scale, and gives the means as
        float64[columns, rows] of examples.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    bands = {
        f"{label} {scale.length:g} mean": means(method, feature, k).T[::-1]
        for label, (method, feature) in shown.items()
        for k, scale in enumerate(division.scales)
    }
    cells, x, y = grid.frame, division.x, division.y
    west = cells.x0 + (examples.columns.start * x.step + (x.size - 1 - x.step) / 2) * cells.dx
    north = cells.y0 + (y.size - 1 + (2 * examples.rows.stop - 1) * y.step) / 2 * cells.dy
    corner = (x.step * cells.dx, 0.0, west, 0.0, -y.step * cells.dy, north)
    write_bands(target, bands, corner, grid.crs and with_one_unit(grid.crs))
