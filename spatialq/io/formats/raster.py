"""Grids that GDAL reads, and .npy: `spatialq.io.grid`."""

from functools import partial

from spatialq.functions.implementations import call
from spatialq.io.formats import Reader

READER = Reader(
    name="Raster",
    suffixes=(".tif", ".tiff", ".asc", ".hgt", ".dem", ".npy"),
    kind="grid",
    open=partial(call, "spatialq.io.grid.source:GridSource"),
    skips="x, y or z; blocks outside of bounds",
    keeps="cell centres, one band, missing values, CRS",
    loses="colours, overviews, metadata",
    extra="raster",
)
