"""The places where the builder calls DuckDB: binding a statement, which runs nothing of it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def bind(con: "duckdb.DuckDBPyConnection", statement: str) -> "duckdb.DuckDBPyRelation":
    """Make a relation of a statement: DuckDB looks up its tables, columns and functions."""
    return con.sql(statement)


def columns_of(con: "duckdb.DuckDBPyConnection", statement: str) -> dict[str, str]:
    """Give the columns of a statement's rows, with their SQL types."""
    rows = bind(con, statement)
    return dict(zip(rows.columns, map(str, rows.types), strict=True))


def names_taken(con: "duckdb.DuckDBPyConnection") -> frozenset[str]:
    """Name the tables and views that are there, which steps must not hide from conditions."""
    rows = con.sql(
        "SELECT table_name FROM duckdb_tables() UNION ALL "
        "SELECT view_name FROM duckdb_views() WHERE NOT internal"
    ).fetchall()
    return frozenset(name.lower() for (name,) in rows)
