"""Tables between DuckDB, Arrow and Python, as workflows and commands need them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


def dicts(result: "duckdb.DuckDBPyConnection | duckdb.DuckDBPyRelation") -> list[dict[str, Any]]:
    """Fetch all rows of a result, one dict per row."""
    names = [column[0] for column in result.description or []]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def write_arrow(
    table: "pa.Table",
    target: Path,
    query: str = "FROM result",
    *,
    crs: str | None = None,
    sheets: "Mapping[str, pa.Table] | None" = None,
) -> None:
    """Write an Arrow table, which the query knows as `result`, to a Parquet, CSV or JSON file.

    The CRS (PROJJSON) is that of its geometries; `sheets` are other tables of a workbook.
    """
    from spatialq.database.connection import connect_quietly
    from spatialq.database.table_files import write_table

    with connect_quietly() as con:
        con.register("result", table)
        others = sheets or {}
        for name, other in others.items():
            con.register(name, other)
        options = {"sheets": {name: f"FROM {name}" for name in others}} if others else {}
        write_table(con, query, target, crs=crs, **options)
