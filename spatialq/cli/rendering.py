"""What commands print: tables for people, JSON for programs, notes on standard error."""

import json
import math
from typing import Any

import typer

from spatialq.functions.sql_text import identifier

NESTED_TYPES = ("list", "array", "struct", "map", "union")
MAX_ELEMENTS = 8
"""Elements of a nested value that a table shows."""
MAX_CHARACTERS = 40
"""Characters of a nested value that a table shows."""
UNLIMITED_WIDTH = 1 << 20


def show(rows: list[dict[str, Any]], *, as_json: bool, upright: bool = False) -> None:
    """Print rows as JSON or as a table; an upright table has the columns of one row as its rows."""
    if as_json:
        show_json(rows)
        return
    from rich.console import Console
    from rich.table import Table

    if not rows:
        typer.echo("(no rows)")
        return
    table = Table(show_header=not upright)
    if upright:
        for name, value in rows[0].items():
            table.add_row(name, _cell(value))
    else:
        for name, value in rows[0].items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            # folded, not cut: a GlobalId that lost its end is of no use
            table.add_column(name, justify="right" if is_number else "left", overflow="fold")
        for row in rows:
            table.add_row(*map(_cell, row.values()))
    console = Console()
    if not console.is_terminal:  # a pipe has no width, so that nothing is cut off
        console.width = UNLIMITED_WIDTH
    console.print(table)


def show_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(_for_json(value), default=str, allow_nan=False))


def show_written(row: dict[str, Any], *, as_json: bool) -> None:
    """Print what a workflow returned that wrote `outputs`."""
    if not as_json:
        row = {**row, "outputs": ", ".join(row["outputs"])}
    show([row], as_json=as_json, upright=True)


def note(text: str) -> None:
    """Print a line on standard error."""
    typer.echo(text, err=True)


def note_limit(limit: int, things: str, more: str = "") -> None:
    """Say that a table was cut off at `--limit`."""
    note(f"only the first {limit} {things} are shown (--limit){more}")


def rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Round the numbers of a row for reading: lengths in metres to a tenth of a millimetre."""
    return {name: round(v, 4) if isinstance(v, float) else v for name, v in row.items()}


def json_column(name: str, kind: Any) -> str:
    """Write a column in SQL as JSON has it: geometries, which come as WKB, as text."""
    column = identifier(name)
    return f"{column}::VARCHAR AS {column}" if kind.id == "geometry" else column


def text_column(name: str, kind: Any) -> str:
    """Write a column in SQL as a table shows it: of nested values, which may be long, the start.

    DuckDB converts only the elements that are shown into text, and none into Python objects.
    """
    if kind.id not in NESTED_TYPES:
        return json_column(name, kind)
    column = identifier(name)
    if kind.id not in ("list", "array"):
        return f"{_start(f'{column}::VARCHAR')} AS {column}"
    shown = _start(f"{column}[:{MAX_ELEMENTS}]::VARCHAR")
    all_shown = f"coalesce(len({column}), 0) <= {MAX_ELEMENTS}"
    more = f"""{shown} || ' (' || len({column}) || ' in all)'"""
    return f"CASE WHEN {all_shown} THEN {shown} ELSE {more} END AS {column}"


def _start(text: str) -> str:
    """Write the start of a text in SQL."""
    cut = f"left({text}, {MAX_CHARACTERS - 1}) || '…'"
    return f"CASE WHEN length({text}) > {MAX_CHARACTERS} THEN {cut} ELSE {text} END"


def _for_json(value: Any) -> Any:
    """Replace what JSON does not have: NaN and infinity by null, keys of MAPs by text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _for_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(each) for each in value]
    return value


def _cell(value: Any) -> str:
    from rich.markup import escape

    return "" if value is None else escape(str(value))
