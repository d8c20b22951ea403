"""Points as PLY: `spatialq.export.ply`."""

from pathlib import Path

from spatialq.database.writers import Result, Writer
from spatialq.export.ply import write_ply


def write(result: Result, path: Path) -> int:
    """Write points."""
    return write_ply(path, result.columns, result.batches(), crs=result.crs)


WRITER = Writer(
    name="PLY",
    suffixes=(".ply",),
    takes="points",
    write=write,
    keeps="columns of numbers, coordinates in double precision",
    loses="CRS (a comment names it), point_id, file_name",
)
