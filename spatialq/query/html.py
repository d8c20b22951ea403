"""The first rows of a query in a notebook."""

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

ROWS = 10
"""Rows that are shown."""
LENGTH = 80
"""Signs of a value that are shown."""


def table(kind: str, columns: dict[str, str], rows: "duckdb.DuckDBPyRelation") -> str:
    """Write the first rows as a table of HTML."""
    first = rows.limit(ROWS + 1).fetchall()
    head = "".join(
        f"<th>{escape(name)}<br><small>{escape(type_)}</small></th>"
        for name, type_ in columns.items()
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in first[:ROWS])
    shown = f"the first {ROWS} rows" if len(first) > ROWS else f"{len(first)} rows"
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<p><small>{escape(kind)}: {shown}, {len(columns)} columns</small></p>"
    )


def _cell(value: object) -> str:
    text = "NULL" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    text = text if len(text) <= LENGTH else text[:LENGTH] + "…"
    return f"<td>{escape(text)}</td>"
