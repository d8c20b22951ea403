"""Results as GeoParquet 1.1: WKB, boxes, and the CRS as PROJJSON or null if unknown.

DuckDB's own GeoParquet leaves out a CRS that it does not know, which readers take for longitude and
latitude, and the geometry columns of a result without rows.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.database.frames import crs_of_rows
from spatialq.database.staged import Staged, source_of, staged
from spatialq.database.writers import Result
from spatialq.export import wkb
from spatialq.export.spatial_order import cells_of, hilbert
from spatialq.functions.sql_text import identifier, literal, unused
from spatialq.io import crs as crs_text
from spatialq.io.parquet_crs import KEY
from spatialq.runtime.arrays import Floats

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

VERSION = "1.1.0"
GEOMETRY = re.compile(r"GEOMETRY(?:\('(.*)'\))?", re.DOTALL)
BOX, PLACE = "spatialq_box", "spatialq_place"
"""The box of a geometry; where a row is on the curve by which rows are sorted."""
ROWS = 100_000
"""Whose boxes are found at once."""


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
    result: Result, path: Path, columns: Mapping[str, str | None], *, sort: bool = False
) -> int:
    """Write rows with geometries, and those of any rows that are to be sorted by their places.

    They go through a file beside `path`, since types and box of all geometries must be known when a
    file is begun whose metadata is ours.

    Parameters
    ----------
    result : Result
    path : Path
    columns : mapping
        What `geometry_columns` gives, the first one being the primary geometry; none for points
        x, y that are to be sorted.
    sort : bool
        Whether rows are written in the order in which a Hilbert curve passes the centres of the
        boxes of their geometries, or x, y.

    Returns
    -------
    int
        Rows written.
    """
    primary = next(iter(columns), None)
    with staged(result, path) as rows, _boxes(result, rows, primary, sort=sort) as boxes:
        selected = list(map(identifier, result.columns))
        for k, (name, quoted) in enumerate(zip(result.columns, selected, strict=True)):
            if name in columns:  # DuckDB reads WKB where its own metadata does not name a column
                selected[k] = f"ST_AsWKB({quoted}::GEOMETRY) AS {quoted}"
        geo = known_crs(result)
        if primary is not None:
            name = unused("bbox", result.columns)
            selected.append(f"{BOX} AS {identifier(name)}")
            geo = f", KV_METADATA {{geo: {literal(metadata(rows.geometries, columns, name))}}}"
        query = f"SELECT {', '.join(selected)} FROM {rows.source} POSITIONAL JOIN {boxes}"
        query += f" ORDER BY {PLACE}" if sort else ""
        target = f"{literal(str(path))} (FORMAT PARQUET{geo})"
        ((written,),) = result.con.execute(f"COPY ({query}) TO {target}").fetchall()
    return int(written)


def known_crs(result: Result) -> str:
    """Write the option of COPY that notes the CRS of x, y and z in the metadata of a file.

    Empty where it is not known. `spatialq.io.parquet_crs` reads it.
    """
    if not {"x", "y"} <= {name.lower() for name in result.columns}:
        return ""
    crs = result.given_crs or crs_of_rows(result.con, result.statement)
    if crs is None:
        return ""
    return f", KV_METADATA {{{KEY}: {literal(crs_text.from_text(crs))}}}"


@contextmanager
def _boxes(result: Result, rows: Staged, primary: str | None, *, sort: bool) -> Iterator[str]:
    """Give the box and the place of each row, in a file that is there while the block runs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = ["x", "y"] if primary is None else [primary]
    whole = rows.box(primary) if primary is not None else _extent(result, rows)
    box = pa.struct([(name, pa.float64()) for name in wkb.BOX])
    schema = pa.schema([(BOX, box), (PLACE, pa.int64())])
    file = rows.file.with_suffix(".boxes")
    try:
        with pq.ParquetFile(rows.file) as found, pq.ParquetWriter(file, schema) as writer:
            for batch in found.iter_batches(ROWS, columns=columns):
                ends = _ends(batch)
                centres = (ends[:, :2] + ends[:, 2:]) / 2
                place = hilbert(*cells_of(centres[:, 0], centres[:, 1], whole or wkb.NOTHING))
                made = [wkb.struct_of_boxes(ends), pa.array(place if sort else place * 0)]
                writer.write_batch(pa.record_batch(made, schema=schema))
        yield source_of(file)
    finally:
        file.unlink(missing_ok=True)


def _ends(batch: "pa.RecordBatch") -> Floats:
    """Give the boxes of geometries or of points x, y: float64[n, 4]."""
    if batch.num_columns == 1:
        return wkb.boxes(batch.column(0))
    x, y = (each.cast("float64").to_numpy(zero_copy_only=False) for each in batch.columns)
    return np.column_stack([x, y, x, y])


def _extent(result: Result, rows: Staged) -> list[float] | None:
    """Find the box of points x, y."""
    ends = "min(x), min(y), max(x), max(y)"
    query = f"SELECT {ends} FROM {rows.source} WHERE isfinite(x::DOUBLE) AND isfinite(y::DOUBLE)"
    found = result.con.sql(query).fetchall()[0]
    return None if found[0] is None else list(map(float, found))


def metadata(geometries: Mapping[str, Any], columns: Mapping[str, str | None], box: str) -> str:
    """Write the metadata of GeoParquet; the boxes are those of the first column.

    Parameters
    ----------
    geometries : mapping
        By column, what is known of its geometries: `geometry_types` and `bbox`.
    columns : mapping
        The columns with geometries, each with the PROJJSON of its CRS, or None.
    box : str
        The column of boxes.
    """
    primary = next(iter(columns))
    described = {name: _described(geometries.get(name, {}), columns[name]) for name in columns}
    described[primary]["covering"] = {"bbox": {name: [box, name] for name in wkb.BOX}}
    return json.dumps({"version": VERSION, "primary_column": primary, "columns": described})


def _described(found: Mapping[str, Any], crs: str | None) -> dict[str, Any]:
    """Describe a column as GeoParquet does, by what is known of its geometries."""
    box = found.get("bbox", ())
    return {
        "encoding": "WKB",
        "geometry_types": found.get("geometry_types", []),  # none: not known
        "crs": None if crs is None else json.loads(crs),
        **({"bbox": box} if box and all(map(math.isfinite, box)) else {}),
    }
