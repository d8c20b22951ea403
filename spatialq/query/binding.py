"""The places where the builder calls DuckDB: binding a statement, which runs nothing of it."""

from collections import Counter
from typing import TYPE_CHECKING

from spatialq.query.steps import Step, Table, in_order, write

if TYPE_CHECKING:
    import duckdb


def bind(con: "duckdb.DuckDBPyConnection", statement: str) -> "duckdb.DuckDBPyRelation":
    """Make a relation of a statement: DuckDB looks up its tables, columns and functions."""
    return con.sql(statement)


def columns_of(con: "duckdb.DuckDBPyConnection", statement: str) -> dict[str, str]:
    """Give the columns of a statement's rows, with their SQL types.

    Raises
    ------
    ValueError
        If two have the same name.
    """
    rows = bind(con, statement)
    if twice := [name for name, count in Counter(rows.columns).items() if count > 1]:
        message = f"two columns are called {twice[0]!r}; give one another name with AS"
        raise ValueError(message)
    return dict(zip(rows.columns, map(str, rows.types), strict=True))


def statement_of(con: "duckdb.DuckDBPyConnection", step: Step | Table) -> str:
    """Write the statement of a step, whose parts hide no table or view that is there."""
    parts = sum(isinstance(each, Step) for each in in_order(step))
    return write(step, taken=_names_taken(con) if parts > 1 else ())


def _names_taken(con: "duckdb.DuckDBPyConnection") -> frozenset[str]:
    rows = con.sql(  # not `execute`, which would end a pending result of the user
        "SELECT table_name FROM duckdb_tables() UNION ALL "
        "SELECT view_name FROM duckdb_views() WHERE NOT internal"
    ).fetchall()
    return frozenset(name.lower() for (name,) in rows)
