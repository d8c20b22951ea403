"""Parquet, by DuckDB; GeoParquet if a column is of type GEOMETRY."""

from pathlib import Path

from spatialq.database.duckdb_copy import copy, said_of
from spatialq.database.geoparquet import copy_geoparquet, geometry_columns
from spatialq.database.writers import Result, Writer
from spatialq.export.atomic import whole


def write(result: Result, path: Path) -> int:
    """Write rows."""
    if not geometry_columns(result.relation):
        return copy("PARQUET", result, path)
    columns = geometry_columns(result.relation, result.crs)
    with whole(path) as partial, said_of(path, partial):
        return copy_geoparquet(result.con, result.query, partial, columns)


WRITER = Writer(
    name="Parquet",
    suffixes=(".parquet",),
    takes="rows",
    write=write,
    keeps="all columns and types; geometries with their CRS (GeoParquet 1.1)",
    loses="CRS of rows without a geometry",
)
