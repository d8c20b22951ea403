"""What tasks on pairs of elements do: models to tables, elements to cells, cells to pairs."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.cluster.methods.box_cells import BoxCell, box_cells
from spatialq.cluster.models import connected, read_model
from spatialq.cluster.stage_files import STAGE_FILES
from spatialq.database.duckdb_copy import said_of
from spatialq.database.element_sets import NO_PAIRS, pairs_sql
from spatialq.database.selection import KIND
from spatialq.database.table_files import write_table
from spatialq.errors import FileWarning
from spatialq.export.spatial_order import cells_of, hilbert
from spatialq.functions.sql_text import literal
from spatialq.io.ifc.columns import BOX, TABLES
from spatialq.io.storage import as_path
from spatialq.runtime import budget
from spatialq.runtime.arrays import Array
from spatialq.workflows import clash, clash_models

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

ROWS = 1 << 15
"""Of a group of rows of the file of cells, and of a model."""
SLACK = 4
"""Rounding errors of coordinates by which a box is made larger."""
COMPARED = 20
"""Bytes of memory for a byte of meshes where models are compared: measured were 15."""
CLASHES = "intersects_with"
LOW, HIGH = BOX[:3], BOX[3:]

ASKED = """
SELECT row, file, place, {box}, of_a, of_b, storey_unified FROM (
    SELECT *, row IN (SELECT global_id::BIGINT FROM spatial_elements('clash_a')) AS of_a,
        {is_of_b} AS of_b
    FROM elements
) JOIN unified USING (row) WHERE of_a OR of_b ORDER BY row
"""
OF_B = "row IN (SELECT global_id::BIGINT FROM spatial_elements('clash_b'))"
PAIRS_OF_CELL = """
SELECT p.* FROM ({pairs}) AS p
JOIN elements AS a ON a.row = p.a::BIGINT
JOIN elements AS b ON b.row = p.b::BIGINT
JOIN cell AS c ON {owned}
"""
DISTANCES = """
SELECT a.global_id AS a, b.global_id AS b, p.* EXCLUDE (a, b)
FROM ({pairs}) AS p
JOIN elements AS a ON a.row = p.a::BIGINT
JOIN elements AS b ON b.row = p.b::BIGINT
ANTI JOIN related AS r
ON r.a = a.global_id AND r.b = b.global_id AND a.file_name = b.file_name
ORDER BY p.distance, a.row, b.row
"""
RELATED_BY_CELL = """
COPY (
    WITH places AS (
        SELECT c.cell, e.global_id FROM cells AS c JOIN elements AS e USING (row)
    )
    SELECT DISTINCT x.cell, r.a, r.b, r.rule
    FROM ({related}) AS r
    JOIN places AS x ON x.global_id = r.a
    JOIN places AS y ON y.global_id = r.b AND y.cell = x.cell
    ORDER BY x.cell
) TO {path} (FORMAT parquet, ROW_GROUP_SIZE {rows})
"""


OWNED = " AND ".join(
    f"greatest(a.{low}, b.{low}) >= c.{low} AND greatest(a.{low}, b.{low}) < c.{high}"
    for low, high in zip(LOW, HIGH, strict=True)
)


def file_of(k: int) -> str:
    """Name the file of a model's tables, by its number."""
    return f"{k:07}.duckdb"


def write_model(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Read a model and write its tables, with the elements near each other near in the file.

    Returns
    -------
    dict
        Those of `read_model`; the number of `elements`; `extent`, see `clash_models.Extent`, or
        None; `mesh_bytes` of the elements.

    Raises
    ------
    FileError
        If the model cannot be read.
    """
    model, facts = read_model(data)
    elements = model.tables["elements"]
    with connected() as con, said_of(partial, partial):
        clash_models.make_tables(con, [model.tables])
        con.register("places", _places_of(elements))
        con.execute(f"ATTACH {literal(str(partial))} AS model (ROW_GROUP_SIZE {ROWS})")
        rows = "elements JOIN places USING (row) ORDER BY place"
        con.execute(f"CREATE TABLE model.elements AS FROM {rows}")
        for name in TABLES:
            if name != "elements":
                con.execute(f"CREATE TABLE model.{name} AS FROM {name}")
        con.execute("DETACH model")
    extent = clash_models.extent_of(as_path(data["path"]), elements)
    size = elements["mesh"].nbytes
    return facts | {"elements": elements.num_rows, "extent": extent, "mesh_bytes": size}


def _places_of(elements: "pa.Table") -> "pa.Table":
    """Give near numbers to elements near each other: `row` in the model, `place` in the file."""
    import pyarrow as pa

    box = {name: elements[name].to_numpy() for name in BOX}
    x, y = ((box[f"{axis}min"] + box[f"{axis}max"]) / 2 for axis in "xy")
    n = elements.num_rows
    order = np.arange(n)
    if n:
        around = float(x.min()), float(y.min()), float(x.max()), float(y.max())
        order = np.argsort(hilbert(*cells_of(x, y, around)), kind="stable")
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    return pa.table({"row": np.arange(n), "place": place})


def _attach(con: "duckdb.DuckDBPyConnection", folder: str, files: Iterable[int]) -> None:
    """Attach models, as m0, m1 and so on."""
    for k in files:
        file = STAGE_FILES.here(f"{folder}{file_of(k)}")
        con.execute(f"ATTACH {literal(file)} AS m{k} (READ_ONLY)")


def _attach_all(con: "duckdb.DuckDBPyConnection", data: Mapping[str, Any]) -> None:
    """Make views of the tables of all models, whose elements also have `file` and `place`."""
    *first, _ = data["first"]
    _attach(con, data["models"], range(len(first)))
    for name in TABLES:
        rows = [f"SELECT * FROM m{k}.{name}" for k in range(len(first))]
        if name == "elements":
            rows = [
                f"SELECT * REPLACE (row + {start} AS row), {k} AS file FROM m{k}.elements"
                for k, start in enumerate(first)
            ]
        con.execute(f"CREATE VIEW {name} AS {_union(rows)}")


def _union(queries: Sequence[str]) -> str:
    """Write the rows of all queries, nested no deeper than need be."""
    if len(queries) == 1:
        return queries[0]
    half = len(queries) // 2
    return f"({_union(queries[:half])}) UNION ALL ({_union(queries[half:])})"


def write_cells(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Find the elements that are asked for, and write which of them touch which cell.

    Returns
    -------
    dict
        `elements`: how many are asked for; `cells`: how many there are.

    Warns
    -----
    FileWarning
        Of clashes, if a model is misplaced, or the meshes are too large to find that out. If a
        selector names a property that no model has.
    """
    found = _elements_asked_for(data)
    columns = {name: found[name].to_numpy() for name in found.column_names}
    schema = found.select([name for name in columns if name not in BOX]).schema
    low, high = (np.column_stack([columns.pop(name) for name in names]) for names in (LOW, HIGH))
    # by no less than what the sums of kernels may be off
    high = high + data["margin"] + SLACK * np.spacing(np.abs(high) + data["margin"])
    n = _write_cells(partial, schema, columns, box_cells(low, high, data["cell_elements"]))
    return {"elements": found.num_rows, "cells": n}


def _elements_asked_for(data: Mapping[str, Any]) -> "pa.Table":
    """List the elements of `a` and `b`, with their boxes and where they are stored."""
    import duckdb

    is_of_b = "false" if data["b"] is None else OF_B
    with connected() as con:
        _attach_all(con, data)
        clash_models.unify_storeys(con)
        if data["function"] == CLASHES and len(data["first"]) > 2:
            _warn_if_misplaced(con, data["mesh_bytes"])
        try:
            clash.select(con, data["a"], data["b"], stacklevel=2)
            return con.sql(ASKED.format(box=", ".join(BOX), is_of_b=is_of_b)).to_arrow_table()
        except duckdb.InvalidInputException as error:  # of a function of ours
            raise ValueError(KIND.sub("", " ".join(str(error).split()))) from None


def _warn_if_misplaced(con: "duckdb.DuckDBPyConnection", size: int) -> None:
    if COMPARED * size <= budget.current():
        clash_models.warn_if_misplaced(con, stacklevel=2)
        return
    message = (
        f"{clash_models.COMMAND}: whether a model is misplaced was not looked at, since that takes "
        f"{COMPARED * size / 1e9:.1f} GB for these models, and a worker has "
        f"{budget.current() / 1e9:.1f} GB"
    )
    warnings.warn(message, FileWarning, stacklevel=2)


def _write_cells(
    path: Path, own: "pa.Schema", columns: Mapping[str, Array], cells: Iterable[BoxCell]
) -> int:
    """Write the rows of all cells, with the number and the corners of theirs; count the cells."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    corners = [(name, pa.float64()) for name in BOX]
    schema = pa.schema([("cell", pa.int64()), *((each.name, each.type) for each in own), *corners])
    n = waiting = 0
    tables: list[Any] = []
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for n, cell in enumerate(cells, 1):
            of_cell = {"cell": n - 1} | dict(zip(BOX, (*cell.low, *cell.high), strict=True))
            rows = {name: values[cell.rows] for name, values in columns.items()}
            rows |= {name: np.repeat(value, cell.rows.size) for name, value in of_cell.items()}
            tables.append(pa.table({name: rows[name] for name in schema.names}, schema))
            waiting += cell.rows.size
            if waiting >= ROWS:
                writer.write_table(pa.concat_tables(tables), ROWS)
                tables, waiting = [], 0
        if tables:
            writer.write_table(pa.concat_tables(tables), ROWS)
    return n


def write_related(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Write the pairs that rules exclude, of the elements of each cell."""
    with connected() as con, said_of(partial, partial):
        _attach_all(con, data)
        con.execute(f"CREATE VIEW cells AS FROM read_parquet({literal(data['cells'])})")
        con.execute(
            RELATED_BY_CELL.format(
                related=pairs_sql(tuple(data["rules"]), "relations"),
                path=literal(str(partial)),
                rows=ROWS,
            )
        )
    return {}


def write_pairs(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Relate the elements of a cell and write the pairs that are its own.

    Returns
    -------
    dict
        `rows` written; `elements` that touch the cell; of clashes the pairs `left_out` by rule.
    """
    with connected() as con:
        elements = _read_cell(con, data)
        for side in "ab":
            asked = f"(FROM elements WHERE of_{side})"
            con.execute(clash.SIDE.format(side=side, elements=asked))
        own = PAIRS_OF_CELL.format(pairs=data["pairs"], owned=OWNED)
        if data["function"] != CLASHES:
            rows = write_table(con, DISTANCES.format(pairs=own), partial)
            return {"rows": rows, "elements": elements}
        found = clash.clashes_sql(own, tuple(data["rules"]), related="FROM related")
        con.execute(f"CREATE TABLE found AS {found}")
        con.execute(clash.SPLIT)
        rows = write_table(con, "FROM clashes", partial)
        return {"rows": rows, "elements": elements, "left_out": clash.left_out(con)}


def _read_cell(con: "duckdb.DuckDBPyConnection", data: Mapping[str, Any]) -> int:
    """Make the tables `elements`, `related` and `cell` of a cell; count the elements."""
    of_cell = f"WHERE cell = {data['cell']}"
    con.execute(f"CREATE TABLE touching AS FROM read_parquet({literal(data['cells'])}) {of_cell}")
    con.execute(f"CREATE TABLE cell AS SELECT {', '.join(BOX)} FROM touching LIMIT 1")
    found = con.execute("SELECT DISTINCT file FROM touching ORDER BY file").fetchall()
    files = [file for (file,) in found] or [0]  # of any, the columns
    _attach(con, data["models"], files)
    rows = [
        f"SELECT e.* EXCLUDE (place) REPLACE (t.row AS row), t.of_a, t.of_b FROM m{k}.elements "
        f"AS e JOIN touching AS t ON t.place = e.place AND t.file = {k}"
        for k in files
    ]
    con.execute(f"CREATE TABLE elements AS FROM ({_union(rows)}) ORDER BY row")
    related = NO_PAIRS
    if data["related"] is not None:
        related = f"SELECT a, b, rule FROM read_parquet({literal(data['related'])}) {of_cell}"
    con.execute(f"CREATE TABLE related AS {related}")
    con.execute("CREATE VIEW unified AS SELECT row, storey_unified FROM touching")
    return sum(con.execute("SELECT count(*) FROM elements").fetchone() or ())
