"""The text of a query: one statement that others can be made of, or several to run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from spatialq.database.sources import require_one_crs

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")


def run(
    con: "duckdb.DuckDBPyConnection",
    function: str,
    query: str,
    last: "Callable[[duckdb.Statement], T]",
    before: "Callable[[duckdb.Statement], object] | None" = None,
) -> T:
    """Run the statements of a query one after the other; `last` gets the last one, and runs it.

    Those before it are run by `before`, or without looking at their rows.

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

    *others, end = statements
    for number, statement in enumerate(others, 1):
        with _numbered(number, len(statements)):
            _require_one_crs(con, statement)
            (before or complete)(statement)
    with _numbered(len(statements), len(statements)):
        _require_one_crs(con, end)
        return last(end)


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
