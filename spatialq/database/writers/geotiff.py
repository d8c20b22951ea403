"""Terrain grids as Cloud Optimized GeoTIFF."""

from pathlib import Path

from spatialq.database.cells import raster_of
from spatialq.database.writers import Result, Writer
from spatialq.export.raster import write_terrain


def write(result: Result, path: Path) -> int:
    """Write cells."""
    raster, rows = raster_of(result, path)
    write_terrain(path, raster)
    return rows


WRITER = Writer(
    name="GeoTIFF",
    suffixes=(".tif", ".tiff"),
    takes="cells",
    write=write,
    keeps="heights in single precision, missing cells, CRS",
    loses="double precision",
    extra="raster",
)
