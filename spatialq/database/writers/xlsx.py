"""Sheets of Excel."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spatialq.database.flat_columns import NUMBERS, flat
from spatialq.database.statements import one_statement
from spatialq.database.writers import Result, Writer
from spatialq.export.atomic import WRITER as CALLER
from spatialq.export.xlsx import write_sheets
from spatialq.functions.sql_text import identifier

ROWS = 10_000
"""That are fetched at once."""
WHOLE = ("UBIGINT", "HUGEINT", "UHUGEINT")
LIST = re.compile(rf"({'|'.join((*NUMBERS, 'VARCHAR'))})\[\d*\]")


def write(result: Result, path: Path) -> int:
    """Write rows, and on sheets of their own those of other queries, with pictures if given."""
    others = result.options.get("sheets") or {}
    if not isinstance(others, Mapping):
        message = f"{CALLER}: sheets must be queries by the names of their sheets, got {others!r}"
        raise ValueError(message)
    pictures = result.options.get("pictures") or {}
    if not isinstance(pictures, Mapping):
        message = f"{CALLER}: pictures must be PNGs by the names of their sheets, got {pictures!r}"
        raise ValueError(message)
    sheets = {"rows": result}
    for name, query in others.items():
        sheets[name] = Result(result.con, one_statement(CALLER, result.con, query))
    tables = {name: (list(each.columns), _fetched(each)) for name, each in sheets.items()}
    return write_sheets(path, tables, pictures)


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


def _fetched(result: Result) -> Iterator[tuple[Any, ...]]:
    columns = ", ".join(
        f"{_cells(name, kind)} AS {identifier(name)}" for name, kind in result.columns.items()
    )
    rows = result.con.execute(f"SELECT {columns} FROM ({result.query}\n)")
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
    options=("sheets", "pictures"),
)
