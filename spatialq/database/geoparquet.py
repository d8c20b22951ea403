"""Results with geometries as GeoParquet 1.1: WKB, with the CRS as PROJJSON or null if unknown.

DuckDB's own GeoParquet leaves out a CRS that it does not know, which readers take for longitude and
latitude, and the geometry columns of a result without rows.
"""

import json
import math
import re
from collections.abc import Mapping
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.functions.sql_text import identifier, literal
from spatialq.io import crs as crs_text

if TYPE_CHECKING:
    import duckdb

VERSION = "1.1.0"
GEOMETRY = re.compile(r"GEOMETRY(?:\('(.*)'\))?", re.DOTALL)


def geometry_columns(
    rows: "duckdb.DuckDBPyRelation", crs: str | None = None
) -> dict[str, str | None]:
    """Name the columns of geometries, each with its CRS.

    Parameters
    ----------
    rows : duckdb.DuckDBPyRelation
    crs : str, optional
        PROJJSON of the columns whose type states none.

    Returns
    -------
    dict
        PROJJSON by column, or None where the CRS is not known.

    Raises
    ------
    CrsError
        If PROJ cannot read the CRS of a type.
    """
    found: dict[str, str | None] = {}
    for name, kind in zip(rows.columns, map(str, rows.types), strict=True):
        if match := GEOMETRY.fullmatch(kind):
            stated = match[1]
            found[name] = crs if stated is None else crs_text.from_text(stated.replace("''", "'"))
    return found


def copy_geoparquet(
    con: "duckdb.DuckDBPyConnection", query: str, path: Path, columns: Mapping[str, str | None]
) -> int:
    """Write the rows of a query whose columns have names of their own.

    They go through a file beside `path`, since types and box of all geometries, which DuckDB finds
    while it writes, must be known when a file is begun whose metadata is ours.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    query : str
    path : Path
    columns : mapping
        What `geometry_columns` gives: one or more, the first one being the primary geometry.

    Returns
    -------
    int
        Rows written.
    """
    import pyarrow.parquet as pq

    staged = path.with_name(f"{path.name}.staged")
    try:
        con.execute(f"COPY ({query}\n) TO {literal(str(staged))} (FORMAT PARQUET)")
        metadata = pq.read_metadata(staged).metadata or {}
        found = json.loads(metadata.get(b"geo", b'{"columns": {}}'))["columns"]
        geo = json.dumps(
            {
                "version": VERSION,
                "primary_column": next(iter(columns)),
                "columns": {
                    name: _described(found.get(name, {}), crs) for name, crs in columns.items()
                },
            }
        )
        # DuckDB reads WKB where its own metadata does not name a column
        quoted = map(identifier, columns)
        binary = (f"ST_AsWKB({each}::GEOMETRY) AS {each}" for each in quoted)
        ((rows,),) = con.execute(
            f"COPY (SELECT * REPLACE ({', '.join(binary)}) "
            f"FROM read_parquet({literal(escape(str(staged)))}, hive_partitioning = false)) "
            f"TO {literal(str(path))} (FORMAT PARQUET, KV_METADATA {{geo: {literal(geo)}}})"
        ).fetchall()
    finally:
        staged.unlink(missing_ok=True)
    return int(rows)


def _described(found: Mapping[str, Any], crs: str | None) -> dict[str, Any]:
    """Describe a column as GeoParquet does, by what DuckDB has found of its geometries."""
    box = found.get("bbox", ())
    return {
        "encoding": "WKB",
        "geometry_types": found.get("geometry_types", []),  # none: not known
        "crs": None if crs is None else json.loads(crs),
        **({"bbox": box} if box and all(map(math.isfinite, box)) else {}),
    }
