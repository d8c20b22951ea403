"""Where the coordinates of a table come from: its CRS, as comments, files and queries tell it.

A table says its CRS in its comment, which stays with it when it is renamed and goes with it when it
is dropped. For views, and for names that a query gives itself, the text of the query tells from
which columns of which tables x, y and z are made.
"""

import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import duckdb

from spatialq.data.frame import Frame
from spatialq.database import instances
from spatialq.database.lineage import Entry, Lineage, Scope, files_of, read_crs, stated_layout
from spatialq.database.model_tables import beside_elements
from spatialq.database.pins import Lookup
from spatialq.database.syntax import parse
from spatialq.errors import CrsWarning, SpatialqError
from spatialq.execution.units import units_of
from spatialq.functions.declaration import CoordinateParameters
from spatialq.functions.sql_text import literal, parts_of
from spatialq.io import crs as crs_text
from spatialq.io.access import for_connection
from spatialq.io.source import READER, Layout

TABLE_NAMES = "SELECT table_name FROM duckdb_tables()"
VIEW_NAMES = "SELECT view_name FROM duckdb_views()"


def lookup(table: str, *, is_given: bool) -> Lookup:
    """Write what finds out the frame of a table: a column `frame`, JSON.

    It is asked in the transaction of the query, which sees what others do not. Where the CRS `is
    given`, names of the query are not looked into.
    """
    name = '"spatialq frame"'
    return Lookup(name, f"{name} AS MATERIALIZED ({frame_sql(table, is_given)})")


def frame_sql(name: str | None, is_given: bool) -> str:  # noqa: FBT001
    """Write the query for the frame of a table."""
    # Only the text of the query tells what a name of its own is. DuckDB's function for it is
    # volatile, and runs what depends on it for each outer row of a correlated subquery: it is left
    # out where the database has a table or view of the name, or the CRS is given.
    is_needed = not (is_given or (name and is_there(name)))
    text = "current_query()" if is_needed else "NULL"
    return f"""
        SELECT spatialq_frame(
            {literal(name)}, {text}, [current_database(), current_schema()], tables, views
        ) AS frame
        FROM (
            SELECT list([database_name, schema_name, table_name, comment]) AS tables
            FROM duckdb_tables() WHERE comment IS NOT NULL
        ), (
            SELECT list([database_name, schema_name, view_name, comment, sql]) AS views
            FROM duckdb_views() WHERE NOT internal
        )"""


def is_there(name: str) -> bool:
    """Whether a database of the instance has a table or view of a name, in whatever schema."""
    cursor = instances.current().cursor()
    if cursor is None:
        return False
    wanted = parts_of(name)[-1].lower()
    with cursor:  # compared here: a condition takes DuckDB as long to plan as all the rest
        return any(
            wanted == there.lower()
            for names in (TABLE_NAMES, VIEW_NAMES)
            for (there,) in cursor.execute(names).fetchall()
        )


def beside(place: str, elements: str, table: str) -> str:
    """Name a table of the model whose elements are in a table, as `model_tables.beside_elements`.

    `place` is the function and its argument, such as 'elements_where: elements'.

    Raises
    ------
    ValueError
        If the database has a table or view `elements`, but not the one beside it.
    """
    name = beside_elements(elements, table)
    if is_there(elements) and not is_there(name):
        message = (
            f"{place} must be a table that load has made of models, with its {table} "
            f"beside it, got {elements!r} without a table {name!r}"
        )
        raise ValueError(message)
    return name


def frame_json(
    name: str,
    query: str | None,
    place: list[str],
    tables: list[list[str]] | None,
    views: list[list[str]] | None,
) -> str:
    """Give the frame of a table, as `lookup` asks for it."""
    entries = [_entry(row) for row in (*(tables or ()), *(views or ()))]
    known = Lineage(tuple(place), {each.path: each for each in entries})
    frame = known.frame(name, query)
    if name and query is None and _may_have_lost_crs(known.entry(parts_of(name)), frame):
        frame = replace(frame, doubt=_doubt_of(frame.subject))
    return json.dumps(asdict(frame))


def _may_have_lost_crs(entry: Entry | None, frame: Frame) -> bool:
    """Whether rows may come from a file whose CRS DuckDB dropped: a table, or a view of Parquet."""
    if entry is None:
        return True
    is_known = frame.crs is not None or frame.doubt or frame.conflict
    return not is_known and "parquet" in (entry.sql or "").casefold()


def _doubt_of(subject: str) -> str:
    """Say why a table without a comment may not be in metres: a file that was read here is not.

    A table that DuckDB makes of a file, by CREATE TABLE AS, does not have its CRS.
    """
    for file, crs in instances.current().systems.items():
        if crs is not None and crs_text.metres_per_unit(crs) != (1.0, 1.0):
            return (
                f"{subject} does not state its CRS, which may be that of {file}, "
                f"{crs_text.name(crs)} (a comment on the table, "
                '{"crs": "EPSG:..."}, states it for good)'
            )
    return ""


def _entry(row: Sequence[Any]) -> Entry:
    database, schema, name, comment, *sql = row
    path = database.casefold(), schema.casefold(), name.casefold()
    return Entry(path, comment, sql[0] if sql else None)


def metres(caller: str, frame: str, unit: float | None, crs: str | None) -> list[float]:
    """Give the metres in a unit of x and y, and in one of z, of a call that is a macro alone.

    Raises
    ------
    CrsError
        As `spatialq.execution.units.units_of`.
    ValueError
        If a unit is not > 0.
    """
    given = CoordinateParameters(unit=unit, crs=crs, caller=caller)
    known = Frame(**json.loads(frame))
    units = units_of(caller, given, known, needs_metres=True, allows_degrees=False)
    if units.note:
        warnings.warn(units.note, CrsWarning, stacklevel=2)
    return [units.across, units.up]


@for_connection
def systems(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[str, str]]:
    """List the tables and files with coordinates that a query reads, and their CRS as PROJJSON.

    Those of which it is not known are left out.
    """
    found = _lineage(con).systems(query)
    return [(subject, read_crs(subject, crs)) for subject, crs in found]


CREATES = re.compile(
    r"""\s* CREATE \s+ (?:OR \s+ REPLACE \s+)? (?:(?:TEMP|TEMPORARY) \s+)? TABLE \s+
    (?P<name>(?:"(?:[^"]|"")*"|[^\s"(;])+) \s+ AS \b""",
    re.IGNORECASE | re.VERBOSE,
)
"""A statement that makes a table of a query; with IF NOT EXISTS it may find one."""


def note_created(con: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Write the CRS into the comment of the table that a statement has made of a query, if any."""
    if match := CREATES.match(statement):
        for noting in crs_statements(con, match["name"], statement):
            con.execute(noting)


@for_connection
def crs_statements(con: duckdb.DuckDBPyConnection, table: str, query: str) -> list[str]:
    """Write what notes the CRS of the x, y and z of a query in the comment of a table made of it.

    There is nothing to note where the CRS is not known, or their unit cannot be told.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    table : str
        As it is written in SQL.
    query : str
        Or the statement that made the table of it.

    Raises
    ------
    CrsError
        If PROJ cannot read the CRS.
    """
    crs = crs_of_rows(con, query)
    if crs is None:
        return []
    comment = json.dumps({"crs": crs_text.compact(read_crs(table, crs))}, ensure_ascii=False)
    return [f"COMMENT ON TABLE {table} IS {literal(comment)}"]


@for_connection
def crs_of_rows(con: duckdb.DuckDBPyConnection, query: str) -> str | None:
    """Give the CRS of the x, y and z of a query, as a table or file states it.

    None where it is not known, or their unit cannot be told.

    Warns
    -----
    CrsWarning
        If the rows are in several CRS.
    """
    frame = _lineage(con).frame_of_rows(query)
    if frame.conflict:
        warnings.warn(f"query: no CRS is noted, as {frame.conflict}", CrsWarning, stacklevel=2)
    return None if frame.doubt or frame.conflict else frame.crs


@for_connection
def layout(con: duckdb.DuckDBPyConnection, query: str) -> Layout | None:
    """Give scale and offset of the LAS files that a query reads, itself or in loaded tables.

    None where it reads none, or they have different ones.
    """
    known, found = _lineage(con), set()
    for node in parse(query):
        for source, _ in known.sources(node, Scope(), frozenset()):
            if source["type"] == "TABLE_FUNCTION":
                for read in files_of(source["function"]):
                    found |= _of_file(*read)
                continue
            path = source["qualified_name"]["path"]
            entry = known.entry(path)
            if entry is None and len(path) == 1:
                found |= _of_file(*path)
            elif entry is not None and (layout := stated_layout(entry.comment)):
                found.add(layout)
    return found.pop() if len(found) == 1 else None


def _of_file(path: str = "", reader: str = READER, to_crs: str | None = None) -> set[Layout]:
    from spatialq.io.clouds import find_clouds

    if to_crs is not None:
        return set()  # coordinates that were reprojected fit none
    try:
        layouts = {cloud.layout for cloud in find_clouds(reader, path)} if path else set()
    except (SpatialqError, ValueError):  # it is no cloud, or the reader itself will say so
        return set()
    return {layout for layout in layouts if layout is not None}


def _lineage(con: duckdb.DuckDBPyConnection) -> Lineage:
    entries = con.sql(  # not `execute`, which would end a pending result of the user
        "SELECT database_name, schema_name, table_name, comment, NULL AS sql FROM duckdb_tables() "
        "WHERE comment IS NOT NULL UNION ALL SELECT database_name, schema_name, view_name, "
        "comment, sql FROM duckdb_views() WHERE NOT internal"
    ).fetchall()
    place = con.sql("SELECT current_database(), current_schema()").fetchall()[0]
    return Lineage(place, {each.path: each for each in map(_entry, entries)})
