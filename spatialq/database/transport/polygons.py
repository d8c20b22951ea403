"""A table of polygons beside points: to a kernel, and the names of its rows into the result."""

from base64 import b64decode
from pathlib import Path

import numpy as np
import pyarrow as pa

from spatialq.data.polygons import Polygons
from spatialq.database.pins import Lookup
from spatialq.database.transport.arrow import Columns
from spatialq.database.transport.queries import Source
from spatialq.database.transport.refusal import FIELD, refusal, told
from spatialq.database.transport.request import Request
from spatialq.functions.catalogue import Function
from spatialq.functions.sql_text import literal
from spatialq.io.formats import means_file
from spatialq.io.vector import READER, SIGNATURES

IN_ORDER = '"spatialq polygons"'
"""The common table expression of the rows of the table, with `place`, their number from 0."""
NAME = "polygon_id"
"""The column that names a polygon, in its table and in the result."""
NEEDED = {NAME: "of any type", "geometry": "of type GEOMETRY"}


def beside_points(function: Function, table: str) -> Source:
    """Say how a function gets the polygons of a table, which must have a column of GEOMETRY.

    Raises
    ------
    ValueError
        If it is a file.
    """
    caller, argument = function.name, function.inputs.other
    if Path(table).suffix.lower() in SIGNATURES and means_file(table):
        made = f"CREATE TABLE t AS SELECT fid AS {NAME}, geometry FROM {READER}({literal(table)})"
        message = (
            f"{caller}: {argument} must be the name of a table, got the file {literal(table)}: "
            f"{made} makes a table of it"
        )
        raise ValueError(message)
    rows = _rows(table)
    fields = ", ".join(f"'{FIELD} {k}': {name}" for k, name in enumerate(NEEDED))
    kinds = f"typeof((SELECT {{{fields}}} FROM {rows} LIMIT 0))"
    known = told([
        f"{caller}: {argument} must be a table with a column {name}, {what}, which {table!r} lacks"
        for name, what in NEEDED.items()
    ])  # fmt: skip
    kind = f"typeof((SELECT geometry FROM {rows} LIMIT 0))"
    wrong = refusal(
        f"{caller}: geometry of {argument} must be of type GEOMETRY, which geometry::GEOMETRY "
        f"makes of WKT and ST_GeomFromWKB(geometry) of WKB; in {table!r} it is of type ",
        kind,
    )
    check = (
        f"CASE WHEN NOT spatialq_checked('', {known}, {kinds}, []) THEN 0 "
        f"WHEN {kind} NOT LIKE 'GEOMETRY%' THEN {wrong}::UTINYINT END"
    )
    columns = {
        "place": "place",
        "name": f"{NAME}::VARCHAR",
        # TRY_CAST, so that another type is left to the check
        "shape": "to_base64(ST_AsWKB(TRY_CAST(geometry AS GEOMETRY)))",
    }
    name = '"spatialq system"'
    system = f"{name} AS MATERIALIZED (SELECT to_json({kind})::VARCHAR AS system)"
    return Source(columns, IN_ORDER, 1, check=check, system=Lookup(name, system))


def _rows(table: str) -> str:
    """Write the rows of a table, with NULL in a column that is needed and absent."""
    absent = ", ".join(f"NULL AS {name}" for name in NEEDED)
    return f"(FROM query_table({literal(table)}) UNION ALL BY NAME SELECT {absent} WHERE false)"


def with_names(function: Function, query: str, table: str) -> str:
    """Write the query whose pairs have what names polygons in the table, of its type."""
    columns = ", ".join(
        f"{'polygons' if name == NAME else 'pairs'}.{name}" for name in function.output.columns
    )
    return (
        f"WITH {IN_ORDER} AS MATERIALIZED (SELECT row_number() OVER () - 1 AS place, {NAME}, "
        f"geometry FROM {_rows(table)}) SELECT {columns} FROM ({query}) AS pairs "
        f"JOIN {IN_ORDER} AS polygons ON polygons.place = pairs.{NAME}"
    )


def read(function: Function, request: Request, columns: Columns) -> Polygons:
    """Make the polygons that a kernel gets of the columns of a table.

    Raises
    ------
    CrsError
        If they are in another CRS than the points; one that is not known goes with any.
    """
    system = _system_in(request.source["other"])
    request.require_one_crs(function, f"{function.inputs.other} are", system)
    order = pa.array(np.argsort(columns["place"].to_numpy(zero_copy_only=False)))
    shapes = columns["shape"].take(order).to_pylist()
    names = columns["name"].take(order).fill_null("NULL").to_pylist()
    return Polygons.of([None if each is None else b64decode(each) for each in shapes], names)


def _system_in(kind: str) -> str | None:
    """Give the CRS that a type such as GEOMETRY('EPSG:25832') has."""
    text = kind.removeprefix("GEOMETRY").removeprefix("('").removesuffix("')")
    return text.replace("''", "'") or None
