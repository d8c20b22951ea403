"""Sheets of Excel."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.database.flat_columns import NUMBERS, flat
from spatialq.database.writers import Result, Writer
from spatialq.export.atomic import WRITER as CALLER
from spatialq.export.xlsx import write_sheet
from spatialq.functions.sql_text import identifier

if TYPE_CHECKING:
    import duckdb

ROWS = 10_000
"""That are fetched at once."""
WHOLE = ("UBIGINT", "HUGEINT", "UHUGEINT")
LIST = re.compile(rf"({'|'.join((*NUMBERS, 'VARCHAR'))})\[\d*\]")


def write(result: Result, path: Path) -> int:
    """Write rows."""
    columns = ", ".join(
        f"{_cells(name, kind)} AS {identifier(name)}" for name, kind in result.columns.items()
    )
    rows = result.con.execute(f"SELECT {columns} FROM ({result.query}\n)")
    return write_sheet(path, list(result.columns), _fetched(rows))


def _cells(name: str, kind: str) -> str:
    """Write the expression of values that a cell can hold."""
    quoted = identifier(name)
    if kind in WHOLE:
        return quoted  # of any size: large ones become texts
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"timezone('UTC', {quoted})"
    if kind == "BLOB":
        return f"hex({quoted})"
    if LIST.fullmatch(kind):
        return f"array_to_string({quoted}, ', ')"
    return flat({name: kind}, CALLER)[name]


def _fetched(rows: "duckdb.DuckDBPyConnection") -> Iterator[tuple[Any, ...]]:
    while some := rows.fetchmany(ROWS):
        yield from some


WRITER = Writer(
    name="Excel",
    suffixes=(".xlsx",),
    takes="rows",
    write=write,
    keeps="1,048,575 rows; numbers, texts, dates, times; lists as text",
    loses="types, CRS, microseconds; structs (JSON), geometries (WKT)",
    extra="xlsx",
)
