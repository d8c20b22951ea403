"""The rows of a statement or a query: printed, or written to a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from spatialq.cli.rendering import json_column, note_limit, show, text_column
from spatialq.functions.sql_text import identifier

if TYPE_CHECKING:
    import duckdb

NUMBER = "spatialq_row"
"""A column that results do not have."""
COUNTED = 10_000
"""Rows that are counted where not all are shown: most results have fewer, and a person would not
wait for more."""


def show_statement(
    con: "duckdb.DuckDBPyConnection", statement: "duckdb.Statement", *, limit: int, as_json: bool
) -> None:
    """Run a statement and print its rows; one that gives none, such as SET, prints nothing."""
    import duckdb

    from spatialq.database.statements import without_semicolon

    relation = con.sql(without_semicolon(statement.query))
    may_give_none = duckdb.ExpectedResultType.NOTHING in statement.expected_result_type
    if may_give_none and not as_json and not relation.limit(1).fetchall():
        return
    show_rows(relation, limit=limit, as_json=as_json)


def show_rows(
    relation: "duckdb.DuckDBPyRelation", *, limit: int, as_json: bool, title: str | None = None
) -> None:
    """Print the first rows of a relation, and how many there are.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
    limit : int
    as_json : bool
    title : str, optional
        The line before the table, with `{}` for the number of rows; by default a note follows the
        table where there are more than those that are shown.
    """
    relation = relation.project("*")  # renames columns of equal name: a, a_1
    most = limit if as_json else max(limit, COUNTED)
    numbered = relation.limit(most + 1).project(f"*, row_number() OVER () AS {NUMBER}")
    column = json_column if as_json else text_column
    cells = (
        # rows that are counted only need no texts, which takes long for meshes
        f"CASE WHEN {NUMBER} <= {limit} THEN {column(name, kind)} END AS {identifier(name)}"
        for name, kind in zip(relation.columns, relation.types, strict=True)
    )
    rows = numbered.project(", ".join([NUMBER, *cells])).fetchall()
    shown = [
        dict(zip(relation.columns, row, strict=True)) for number, *row in rows if number <= limit
    ]
    count = f"{len(rows)}" if len(rows) <= most else f"more than {most}"
    if title is not None:
        cut = f", the first {limit}:" if len(rows) > limit else ""
        typer.echo(f"{title.format(count)}{cut}")
        if not rows:
            return
    show(shown, as_json=as_json)
    if title is None and len(rows) > limit:
        note_limit(limit, "rows" if as_json else f"of {count} rows")


def write_statement(
    con: "duckdb.DuckDBPyConnection",
    statement: "duckdb.Statement",
    *,
    output: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Run a statement that is a query, write its rows to a file and print how many there are.

    The options are those of `write_table`.

    Raises
    ------
    ValueError
        If the statement is no query.
    """
    import duckdb

    from spatialq.database.table_files import write_table

    if statement.type not in (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI):
        kind = statement.type.name.replace("_", " ")
        message = f"output: the last statement must be a query for '{output}', got {kind}"
        raise ValueError(message)
    written = write_table(con, statement.query, output, **options)
    show([{"output": str(output), "rows": written}], as_json=as_json)
