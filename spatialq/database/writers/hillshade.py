"""Terrain grids as a picture of their hillshade."""

from pathlib import Path

from spatialq.database.cells import raster_of
from spatialq.database.writers import Result, Writer
from spatialq.export.hillshade import write_hillshade


def write(result: Result, path: Path) -> int:
    """Write cells."""
    raster, rows = raster_of(result, path)
    write_hillshade(path, raster)
    return rows


WRITER = Writer(
    name="Hillshade",
    suffixes=(".png",),
    takes="cells",
    write=write,
    keeps="a picture lit from the north-west, its place and CRS (.pgw, .aux.xml)",
    loses="heights",
)
