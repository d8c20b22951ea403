"""Parquet, by DuckDB; GeoParquet if a column is of type GEOMETRY."""

from pathlib import Path

from spatialq.database.duckdb_copy import copy, said_of
from spatialq.database.geoparquet import copy_geoparquet, geometry_columns, known_crs
from spatialq.database.writers import Result, Writer
from spatialq.export.atomic import WRITER as CALLER
from spatialq.export.atomic import whole


def write(result: Result, path: Path) -> int:
    """Write rows, with the option `sort` in the order of their places."""
    columns = geometry_columns(result.relation)
    sort = bool(result.options.get("sort"))
    if sort and not columns and not {"x", "y"} <= result.columns.keys():
        message = (
            f"{CALLER}: sort must be of rows with a geometry or x and y, got "
            f"{', '.join(result.columns)}"
        )
        raise ValueError(message)
    if not columns and not sort:
        return copy("PARQUET", result, path, known_crs(result))
    columns = columns and geometry_columns(result.relation, result.crs)
    with whole(path) as partial, said_of(path, partial):
        return copy_geoparquet(result, partial, columns, sort=sort)


WRITER = Writer(
    name="Parquet",
    suffixes=(".parquet",),
    takes="rows",
    write=write,
    keeps="all columns and types, and the CRS; geometries with boxes (GeoParquet 1.1)",
    loses="",
    options=("sort",),
)
