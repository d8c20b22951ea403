"""How a query will run: its SQL, where each kernel goes and why, and DuckDB's plan."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.database.native import loading
from spatialq.errors import SpatialqError
from spatialq.functions.declaration import TRIANGLES_PER_ELEMENT, Size
from spatialq.functions.sql_text import literal
from spatialq.io.access import for_connection
from spatialq.io.clouds import open_cloud
from spatialq.io.formats import files_of
from spatialq.io.grid.source import GridSource
from spatialq.planner.plan import plan_call
from spatialq.planner.rates import Transport
from spatialq.query.binding import bind
from spatialq.query.calls import Call, calls
from spatialq.query.steps import Quoted, Step, Table

if TYPE_CHECKING:
    import duckdb


READ = re.compile(r"(read_las|read_points|read_grid)\('((?:[^']|'')*)'")
ASSUMED = 1000
"""Rows of what cannot be counted without being made: the elements of a file are a few thousand."""


@for_connection
def explain(con: "duckdb.DuckDBPyConnection", step: Step | Table, statement: str) -> str:
    """Describe how a statement runs; nothing of it does."""
    lines = [_line(con, each) for each in calls(step)]
    plan = bind(con, statement).explain()
    return "\n\n".join(part for part in (statement, "\n".join(lines), plan) if part)


def _line(con: "duckdb.DuckDBPyConnection", call: Call) -> str:
    known = rows_of(con, call.rows)
    rows = ASSUMED if known is None else known
    size = Size(rows * TRIANGLES_PER_ELEMENT if call.kind == "Elements" else rows)
    counted = f"about {rows:,} {'elements' if call.kind == 'Elements' else 'rows'}"
    if known is None:
        counted = f"{counted} (assumed, since the number is not known before it runs)"
    try:
        options = call.function.choose({})
        plan = plan_call([call.function], size, options, call.device, transport(con))
    except (SpatialqError, ValueError) as error:
        return f"{call.macro}: {counted}; {error}"
    return f"{call.macro}: {counted}, on the {plan.device}: {plan.reason}"


def transport(con: "duckdb.DuckDBPyConnection") -> Transport:
    """Say how rows get to kernels in a database: by the extension, or as lists."""
    with con.cursor() as cursor:  # keeps a pending result of the connection
        return "native" if loading.is_loaded(cursor) else "lists"


def rows_of(con: "duckdb.DuckDBPyConnection", step: Step | Table) -> int | None:
    """Count the rows of the table or the files that a step begins with.

    Conditions are not counted. None where that is not known without reading.
    """
    begins = beginning(step)
    if begins is None:
        return None
    if isinstance(begins, Table):
        name = literal(begins.own_name)
        if not bind(
            con, f"SELECT 1 FROM duckdb_tables() WHERE lower(table_name) = lower({name})"
        ).fetchall():
            return None  # to count the rows of a view may take long
        ((rows,),) = bind(con, f"SELECT count(*) FROM {begins.name}").fetchall()
        return int(rows)
    reader, files = begins
    opened = (
        GridSource(file) if reader == "read_grid" else open_cloud(reader, file) for file in files
    )
    return sum(source.rows for source in opened)


def beginning(step: Step | Table) -> Table | tuple[str, list[Path]] | None:
    """Give the table, or the reader and the files, that a step begins with; None for another."""
    while isinstance(step, Step):
        if read := read_by(step):
            return read
        named = (each for each in step.source.pieces if not isinstance(each, str))
        first = next(named, None)
        if first is None:
            return None
        step = first.step if isinstance(first, Quoted) else first
    return step


def read_by(step: Step | Table) -> tuple[str, list[Path]] | None:
    """Give the reader and the files of clouds or grids that a step itself reads first."""
    if isinstance(step, Table):
        return None
    read = READ.match(next((each for each in step.source.pieces if isinstance(each, str)), ""))
    if read is None:
        return None
    return read[1], files_of(read[1], read[2].replace("''", "'"), ("points",))
