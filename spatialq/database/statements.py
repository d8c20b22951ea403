"""The text of a query: one statement that others can be made of, or several to run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from spatialq.database import exchange, frames
from spatialq.database.sources import require_one_crs

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")
U = TypeVar("U")
IMPORTED = "FROM (SHOW ALL TABLES) SELECT database, schema, name, column_names"
"""What is shown of an IMPORT DATABASE."""


def run(
    con: "duckdb.DuckDBPyConnection",
    function: str,
    query: str,
    last: "Callable[[duckdb.Statement], T]",
    before: "Callable[[duckdb.Statement], object] | None" = None,
) -> T:
    """Run the statements of a query one after the other; `last` gets the last one, and runs it.

    Those before it are run by `before`, or without looking at their rows.

    A table that is made of a query states the CRS of its x, y and z.

    Nothing runs if the query cannot be parsed. The coordinate systems of a statement's tables are
    compared when those before it have run, since they may make the tables. Of several, an error
    has a note which statement it is about.

    Raises
    ------
    ValueError
        If the query is empty.
    CrsError
        If a statement names tables of different CRS.
    """
    statements = con.extract_statements(query)
    if not statements:
        message = f"{function}: the query is empty"
        raise ValueError(message)

    def complete(statement: "duckdb.Statement") -> None:
        con.execute(statement).complete()

    def each(statement: "duckdb.Statement", show: "Callable[[duckdb.Statement], U]") -> U:
        _require_one_crs(con, statement)
        if exchange.imported(con, statement.query):
            (statement,) = con.extract_statements(IMPORTED)
        result = show(statement)
        frames.note_created(con, statement.query)
        exchange.finish_export(con, statement.query)
        return result

    *others, end = statements
    for number, statement in enumerate(others, 1):
        with _numbered(number, len(statements)):
            each(statement, before or complete)
    with _numbered(len(statements), len(statements)):
        return each(end, last)


@contextmanager
def _numbered(number: int, count: int) -> Iterator[None]:
    """Note on an error in which of several statements it is."""
    try:
        yield
    except Exception as error:
        if count > 1:
            error.add_note(f"statement {number} of {count}")
        raise


def _require_one_crs(con: "duckdb.DuckDBPyConnection", statement: "duckdb.Statement") -> None:
    """Check a statement that may read tables; of others DuckDB has no plan to look at."""
    import duckdb

    kinds = duckdb.StatementType
    reading = (kinds.SELECT, kinds.INSERT, kinds.CREATE, kinds.COPY, kinds.UPDATE, kinds.DELETE,
               kinds.MERGE_INTO, kinds.MULTI)  # fmt: skip
    if statement.type in reading:
        require_one_crs(con, statement.query)


def one_statement(function: str, con: "duckdb.DuckDBPyConnection", query: str) -> str:
    """Give the one statement of a query, without a semicolon.

    Raises
    ------
    ValueError
        If the query is empty or has several.
    """
    statements = con.extract_statements(query)
    if len(statements) != 1:
        message = f"{function}: the query must be one statement, got {len(statements)}"
        raise ValueError(message)
    return without_semicolon(query)


def without_semicolon(query: str) -> str:
    """Cut one statement where it ends; a comment may follow."""
    import duckdb

    text = query.encode()
    for offset, kind in duckdb.tokenize(query):  # offsets are bytes
        if kind == duckdb.token_type.operator and text[offset : offset + 1] == b";":
            return text[:offset].decode()
    return query
