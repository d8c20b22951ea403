"""Revisions side by side: each has the tables that `load` makes in a schema of its own.

So every function takes the tables of a revision as `"2024-05".elements`, and `USE "2024-05"` makes
a revision the one that names without a schema mean.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spatialq.database import instances
from spatialq.database.transaction import transaction
from spatialq.functions.sql_text import identifier, literal

if TYPE_CHECKING:
    import duckdb

FUNCTION = "revisions"
SOURCES = "spatialq_sources"
"""The view by which the schema of a revision is known: `load` has made it there."""
RESERVED = ("information_schema", "main", "pg_catalog", "system", "temp")
"""Schemas and databases that DuckDB has."""
COLUMNS = f"""
SELECT c.schema_name, c.table_name, list(lower(c.column_name))
FROM duckdb_columns() AS c
WHERE c.database_name = $1 AND c.schema_name <> 'main' AND c.schema_name IN (
    SELECT schema_name FROM duckdb_views() WHERE database_name = $1 AND view_name = '{SOURCES}'
)
GROUP BY ALL ORDER BY ALL
"""
"""The tables and views of all revisions of a database, with their columns."""
LISTED = {
    "table_name": "VARCHAR",
    "path": "VARCHAR",
    "kind": "VARCHAR",
    "row_count": "BIGINT",
    "loaded_at": "TIMESTAMP",
}
"""What is said of each file in a revision."""


def check_name(con: "duckdb.DuckDBPyConnection", caller: str, revision: str) -> None:
    """Reject what cannot be the name of a revision.

    Raises
    ------
    ValueError
        If it is empty, has control characters, or is a schema of DuckDB's or a database.
    """
    databases = {
        name for (name,) in con.execute("SELECT database_name FROM duckdb_databases()").fetchall()
    }
    reason = None
    if not isinstance(revision, str) or not revision.strip() or not revision.isprintable():
        reason = "must be a name without line breaks and other control characters"
    elif revision.lower() in {*RESERVED, *map(str.lower, databases)}:
        reason = "must be another name than those of schemas of DuckDB and of databases"
    if reason:
        message = f"{caller}: revision {reason}, got {revision!r}"
        raise ValueError(message)


@contextmanager
def transaction_in(con: "duckdb.DuckDBPyConnection", revision: str | None) -> Iterator[None]:
    """Keep what a block does in the schema of a revision, or nothing of it when it fails.

    The schema is made if it is not there; None is the current one.
    """
    if revision is None:
        with transaction(con):
            yield
        return
    ((before, database),) = con.execute(
        "SELECT current_setting('search_path'), current_database()"
    ).fetchall()
    schema = f"{identifier(database)}.{identifier(revision)}"
    try:
        with transaction(con):
            con.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            con.execute(f"USE {schema}")
            yield
    finally:  # the path is not a part of the transaction, and none can be set in an aborted one
        con.execute("SET search_path = ?", [before])


def require(
    con: "duckdb.DuckDBPyConnection", caller: str, revision: str, *, is_dropped: bool
) -> None:
    """Reject the name of a revision that is not there, or is in use and is dropped.

    Raises
    ------
    ValueError
        With the names of those that are.
    """
    ((database, path),) = con.execute(
        "SELECT current_database(), current_schemas(false)"
    ).fetchall()
    known = dict.fromkeys(schema for schema, *_ in con.execute(COLUMNS, [database]).fetchall())
    if revision.lower() not in map(str.lower, known):
        there = (
            f"one of {', '.join(map(repr, known))}" if known else "one that is loaded, and none is"
        )
        message = f"{caller}: revision must be {there}, got {revision!r}"
        raise ValueError(message)
    if is_dropped and revision.lower() in map(str.lower, path):
        message = f"{caller}: revision {revision!r} is the current schema; USE another one before"
        raise ValueError(message)


def revisions_sql(database: str, table: str | None) -> str:
    """Write the query for the rows of a table of all revisions of a database, one after another.

    Without a table, for the files that are in them.

    Raises
    ------
    ValueError
        If no revision has the table.
    """
    cursor = instances.current().cursor()
    tables: list[tuple[str, str, list[str]]] = []
    if cursor is not None:
        with cursor:
            tables = cursor.execute(COLUMNS, [database]).fetchall()
    wanted = SOURCES if table is None else table.lower()
    queries = []
    for schema, name, columns in tables:
        if name.lower() == wanted:
            file = next((each for each in ("file_name", "path") if each in columns), None)
            model = "NULL::VARCHAR" if file is None else f"parse_filename({file}::VARCHAR)"
            path = ".".join(map(identifier, (database, schema, name)))
            chosen = "*" if table is not None else ", ".join(LISTED)
            said = f"{literal(schema)} AS revision, {model} AS model"
            queries.append(f"FROM (SELECT {said}, {chosen} FROM {path})")
    if table is None:
        empty = ", ".join(f"NULL::{kind} AS {name}" for name, kind in LISTED.items())
        queries.append(
            f"SELECT NULL::VARCHAR AS revision, NULL::VARCHAR AS model, {empty} WHERE false"
        )
    elif not queries:
        there = ", ".join(dict.fromkeys(name for _, name, _ in tables)) or "there is none"
        message = f"{FUNCTION}: table_name must be a table of revisions ({there}), got {table!r}"
        raise ValueError(message)
    return " UNION ALL BY NAME ".join(queries)
