"""Points as E57: `spatialq.export.e57`."""

from pathlib import Path

from spatialq.database.writers import Result, Writer
from spatialq.export.e57 import write_e57


def write(result: Result, path: Path) -> int:
    """Write points."""
    return write_e57(path, result.columns, result.batches(), crs=result.crs)


WRITER = Writer(
    name="E57",
    suffixes=(".e57",),
    takes="points",
    write=write,
    keeps="columns of numbers, coordinates in double precision, CRS",
    loses="scans and their poses, point_id, file_name",
    extra="e57",
)
