"""Points as LAS and LAZ: `spatialq.export.las_points`."""

from pathlib import Path

from spatialq.database.writers import Result, Writer
from spatialq.export.las_points import write_points
from spatialq.io.source import LAS, ROW_GROUP

BATCH = ROW_GROUP // 6
"""Rows that are checked and packed at a time: their columns stay in the processor's cache."""


def write(result: Result, path: Path) -> int:
    """Write points."""
    batches = result.batches(BATCH)
    return write_points(path, result.columns, batches, crs=result.crs, layout=result.layout)


WRITER = Writer(
    name="LAS",
    suffixes=LAS,
    takes="points",
    write=write,
    keeps="LAS dimensions, other numbers as extra bytes, scale and offset, CRS",
    loses="point_id, file_name, waveform data, other records of the source",
)
