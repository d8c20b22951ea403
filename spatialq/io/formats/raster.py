"""Grids that GDAL reads, and .npy: `spatialq.io.grid`."""

from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.io.formats import Reader

if TYPE_CHECKING:
    from spatialq.io.grid.source import GridSource


def _open(path: Path) -> "GridSource":
    from spatialq.io.grid.source import GridSource

    return GridSource(path)


READER = Reader(
    name="Raster",
    suffixes=(".tif", ".tiff", ".asc", ".hgt", ".dem", ".npy"),
    kind="grid",
    open=_open,
    skips="x, y or z; blocks outside of bounds",
    keeps="cell centres, one band, missing values, CRS",
    loses="colours, overviews, metadata",
    extra="raster",
)
