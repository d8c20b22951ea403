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
MAX_WIDTH = 40
"""Width of a column that need not be shown on one line."""
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
    console = Console(emoji=False)  # what looks like one is the text of a user
    if not console.is_terminal:  # a pipe has no width, so that nothing is cut off
        console.width = UNLIMITED_WIDTH
    table = Table(show_header=not upright)
    if upright:
        for name, value in rows[0].items():
            table.add_row(name, _cell(value))
        console.print(table)
        return
    names = list(rows[0])
    kept, widest = fitting([_width(name, rows) for name in names], console.width)
    for k in kept:
        name = "…" if k is None else names[k]
        is_number = k is not None and isinstance(value := rows[0][name], int | float)
        is_number = is_number and not isinstance(value, bool)
        # folded, not cut: a GlobalId that lost its end is of no use
        justify: Any = "right" if is_number else "left"
        table.add_column(_cell(name), justify=justify, overflow="fold", max_width=widest)
    for row in rows:
        table.add_row(*("…" if k is None else _cell(row[names[k]]) for k in kept))
    console.print(table)
    if None in kept:
        note(f"only {len(kept) - 1} of {len(names)} columns are shown")


def fitting(widths: list[int], width: int) -> tuple[list[int | None], int | None]:
    """Choose the columns of a table that is not wider than a terminal.

    Columns in the middle are left out where all of them would be too wide, as DuckDB does.

    Parameters
    ----------
    widths : list of int
        How wide the columns are.
    width : int
        That of the terminal.

    Returns
    -------
    list of int or None
        The numbers of the columns; None stands for those that are left out.
    int or None
        How wide a column may be, if some must be folded.
    """
    everything: list[int | None] = [*range(len(widths))]
    if _table_width(widths) <= width:
        return everything, None
    folded = [min(each, MAX_WIDTH) for each in widths]
    if _table_width(folded) <= width:
        return everything, MAX_WIDTH
    left, right = [0], list[int]()
    for k in range(1, len(widths)):
        side = left if len(left) <= len(right) else right
        column = len(left) if side is left else len(widths) - 1 - len(right)
        chosen = [folded[each] for each in (*left, *right, column)]
        if k == len(widths) - 1 or _table_width([*chosen, 1]) > width:
            break
        side.append(column)
    return [*left, None, *reversed(right)], MAX_WIDTH


def _table_width(widths: list[int]) -> int:
    return 1 + sum(each + 3 for each in widths)


def _width(name: str, rows: list[dict[str, Any]]) -> int:
    from rich.cells import cell_len

    texts = [name, *(_text(row[name]) for row in rows)]
    return max(cell_len(line) for text in texts for line in text.split("\n"))


def show_json(value: object) -> None:
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


_warned: set[str] = set()


def note_warning(text: str) -> None:
    """Print a warning on standard error, once: DuckDB may bind a query several times."""
    if text not in _warned:
        _warned.add(text)
        note(f"warning: {text}")


def forget_warnings() -> None:
    """Let the next statement print its warnings whatever was printed before."""
    _warned.clear()


def note_limit(limit: int, things: str, more: str = "") -> None:
    """Say that a table was cut off at `--limit`."""
    shown = f"first of the {things} is" if limit == 1 else f"first {limit} {things} are"
    note(f"only the {shown} shown (--limit){more}")


def rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Round the numbers of a row for reading: lengths in metres to a tenth of a millimetre."""
    return {name: round(v, 4) if isinstance(v, float) else v for name, v in row.items()}


def json_column(name: str, kind: Any) -> str:
    """Write a column in SQL as JSON has it: geometries, which come as WKB, as text."""
    return f"{identifier(name)}::VARCHAR" if kind.id == "geometry" else identifier(name)


def text_column(name: str, kind: Any) -> str:
    """Write a column in SQL as a table shows it: of nested values, which may be long, the start.

    DuckDB converts only the elements that are shown into text, and none into Python objects.
    """
    if kind.id not in NESTED_TYPES:
        return json_column(name, kind)
    column = identifier(name)
    if kind.id not in ("list", "array"):
        return _start(f"{column}::VARCHAR")
    shown = _start(f"{column}[:{MAX_ELEMENTS}]::VARCHAR")
    all_shown = f"coalesce(len({column}), 0) <= {MAX_ELEMENTS}"
    more = f"""{shown} || ' (' || len({column}) || ' in all)'"""
    return f"CASE WHEN {all_shown} THEN {shown} ELSE {more} END"


def _start(text: str) -> str:
    """Write the start of a text in SQL."""
    cut = f"left({text}, {MAX_CHARACTERS - 1}) || '…'"
    return f"CASE WHEN length({text}) > {MAX_CHARACTERS} THEN {cut} ELSE {text} END"


def _for_json(value: object) -> Any:
    """Replace what JSON does not have: NaN and infinity by null, keys of MAPs by text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _for_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(each) for each in value]
    return value


def _cell(value: object) -> str:
    from rich.markup import escape

    return escape(_text(value))


def _text(value: object) -> str:
    return "" if value is None else str(value)
