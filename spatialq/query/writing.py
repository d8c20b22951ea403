"""`spatialq.write`: rows of DuckDB or of the builder as a file of any format."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.database.table_files import write_table
from spatialq.query.outputs import Outputs

if TYPE_CHECKING:
    import duckdb


def write(
    rows: "Outputs | duckdb.DuckDBPyRelation",
    path: str | os.PathLike[str],
    *,
    con: "duckdb.DuckDBPyConnection | None" = None,
    **options: Any,
) -> int:
    """Write rows to a file; its ending tells the format.

    Parameters
    ----------
    rows : Query or duckdb.DuckDBPyRelation
    path : path
        What each ending takes, keeps and loses is listed by `spatialq formats`. Where a format has
        a CRS, it is that of the loaded tables and the files that the rows come from, if it is
        known.
    con : duckdb.DuckDBPyConnection, optional
        The one that a relation was made by; by default it is asked.
    **options
        What some formats take besides: `sort=True` for a .parquet in whose order of rows neighbours
        are near each other; `sheets={name: query}` for an .xlsx with more sheets,
        and `pictures={name: PNGs}` with pictures of the first rows of a sheet, as bytes.

    Returns
    -------
    int
        Rows written; of a model, objects.

    Raises
    ------
    FileError
        If the file cannot be written.
    ValueError
        If the ending is unknown, or the rows are none for the format.
    CrsError
        If coordinates come from tables of different CRS.

    Examples
    --------
    >>> con = spatialq.connect("site.duckdb")
    >>> spatialq.write(con.sql("FROM detect_planes('points')"), "planes.gpkg")
    """
    if isinstance(rows, Outputs):
        return rows.write(path, **options)
    con = con or getattr(rows, "_con", None)  # where DuckDB keeps it since 2.0
    if con is None or not hasattr(rows, "sql_query"):
        message = (
            "write: rows must be a query, or a relation of DuckDB together with its connection as "
            f"con, got {type(rows).__name__}"
        )
        raise ValueError(message)
    return write_table(con, rows.sql_query(), Path(path), **options)
