"""The rows of a statement or a query: printed, or written to a file."""

from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.cli.rendering import json_column, note_limit, show, text_column

if TYPE_CHECKING:
    import duckdb


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


def show_rows(relation: "duckdb.DuckDBPyRelation", *, limit: int, as_json: bool) -> None:
    """Print the first rows of a relation, and a note where there are more."""
    relation = relation.project("*")  # renames columns of equal name: a, a_1
    column = json_column if as_json else text_column
    cells = [column(*each) for each in zip(relation.columns, relation.types, strict=True)]
    result = relation.limit(limit + 1).project(", ".join(cells))
    fetched = [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]
    show(fetched[:limit], as_json=as_json)
    if len(fetched) > limit:
        note_limit(limit, "rows")


def write_statement(
    con: "duckdb.DuckDBPyConnection",
    statement: "duckdb.Statement",
    *,
    output: Path,
    as_json: bool,
) -> None:
    """Run a statement that is a query, write its rows to a file and print how many there are.

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
    written = write_table(con, statement.query, output)
    show([{"output": str(output), "rows": written}], as_json=as_json)
