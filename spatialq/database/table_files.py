"""Query results to Parquet, CSV or JSON; grids to GeoTIFF or PNG, GlobalIds to IFC as well."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.database.geoparquet import copy_geoparquet, geometry_columns
from spatialq.database.partial_models import export_ifc
from spatialq.database.sources import require_one_crs
from spatialq.database.statements import one_statement
from spatialq.errors import FileError
from spatialq.export.atomic import WRITER, require_writable, whole
from spatialq.export.ifc import ENDINGS as MODELS
from spatialq.export.raster import from_cells, write_hillshade, write_terrain
from spatialq.functions.sql_text import literal

if TYPE_CHECKING:
    import duckdb

PARQUET = ".parquet"
FORMATS = {PARQUET: "PARQUET", ".csv": "CSV", ".json": "JSON"}
RASTERS = {".tif": write_terrain, ".tiff": write_terrain, ".png": write_hillshade}


def write_table(
    con: "duckdb.DuckDBPyConnection", query: str, path: Path, *, crs: str | None = None
) -> int:
    """Write the result of a query; the ending of the path tells the format.

    A .parquet is GeoParquet if a column is of type GEOMETRY. A .tif or .png takes the columns
    x, y, z of a regular grid, in any order of rows; the .png is the hillshade. A .ifc or .ifczip
    takes GlobalIds, see `export_ifc`.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    query : str
    path : Path
    crs : str, optional
        PROJJSON of grids, and of geometries whose type states none; by default that of the tables
        that the query reads.

    Returns
    -------
    int
        Rows written; for a model, objects with the GlobalIds.

    Raises
    ------
    FileError
        If it cannot be written.
    ValueError
        If the ending is unknown, the query is not one statement, or its result is no grid where
        it must be one.
    CrsError
        If a grid or geometries come from tables of different CRS.
    """
    import duckdb

    require_output(path)
    ending = path.suffix.lower()
    if ending in MODELS:
        return export_ifc(con, query, path)
    statement = one_statement(WRITER, con, query)
    if ending in RASTERS:
        return _write_raster(con, statement, path, crs or require_one_crs(con, statement))
    with whole(path) as partial:
        try:
            rows = _bound(con, statement)
            query = rows.sql_query()
            if ending == PARQUET and geometry_columns(rows):
                crs = crs or require_one_crs(con, statement)
                return copy_geoparquet(con, query, partial, geometry_columns(rows, crs))
            target = f"{literal(str(partial))} (FORMAT {FORMATS[ending]})"
            ((written,),) = con.execute(f"COPY ({query}\n) TO {target}").fetchall()
        except duckdb.IOException as error:
            if partial.name not in str(error):  # it is about a file that the query reads
                raise
            reason = f"cannot be written: {_said(error).replace(str(partial), str(path))}"
            raise FileError.of(WRITER, path, reason) from error
    return int(written)


def _bound(con: "duckdb.DuckDBPyConnection", statement: str) -> "duckdb.DuckDBPyRelation":
    """Make a relation of a statement, of which COPY takes all: a PIVOT is several to DuckDB."""
    return con.sql(statement).project("*")  # renames columns of equal name: a, a_1


def _said(error: Exception) -> str:
    """Give DuckDB's sentence, which is in JSON where a thread that writes meets the error."""
    text = str(error)
    start = text.find('{"exception_type"')
    if start < 0:
        return text
    said: str = json.JSONDecoder().raw_decode(text, start)[0]["exception_message"]
    return said


def require_table(path: Path) -> None:
    """Reject a path that no table can be written to, before work is done for it.

    Raises
    ------
    FileError
        If it cannot be written.
    ValueError
        If the ending is not that of a table.
    """
    _require(path, FORMATS)


def require_output(path: Path) -> None:
    """Reject a path that `write_table` cannot write to, before work is done for it.

    Raises
    ------
    FileError
        If it cannot be written.
    ValueError
        If the ending is unknown.
    """
    _require(path, (*FORMATS, *RASTERS, *MODELS))


def _require(path: Path, endings: Collection[str]) -> None:
    if path.suffix.lower() not in endings:
        message = f"{WRITER}: '{path}' must end in one of {', '.join(endings)}"
        raise ValueError(message)
    require_writable(path)


def _write_raster(con: "duckdb.DuckDBPyConnection", query: str, path: Path, crs: str | None) -> int:
    relation = con.sql(f"SELECT * FROM ({query}\n)")
    if sorted(relation.columns) != ["x", "y", "z"]:
        message = (
            f"{WRITER}: a query for '{path.name}' must give the columns x, y, z of a grid, got "
            f"{', '.join(relation.columns)}"
        )
        raise ValueError(message)
    cells = relation.select("x::DOUBLE AS x, y::DOUBLE AS y, z::DOUBLE AS z").fetchnumpy()
    RASTERS[path.suffix.lower()](path, from_cells(cells["x"], cells["y"], cells["z"], crs))
    return int(cells["x"].size)
