"""EXPORT DATABASE and IMPORT DATABASE: folders that any DuckDB can read, and that keep the CRS.

DuckDB exports the macros of spatialq, which no other connection can take: in one they are there
already, in another the functions that they call are not. And it leaves out all comments, by
which the CRS of a table is known.
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.database import sources
from spatialq.database.macros import macros
from spatialq.database.transaction import is_open, transaction
from spatialq.errors import FileError
from spatialq.export.atomic import whole
from spatialq.functions.sql_text import literal, unquoted
from spatialq.io.access import for_connection, require

if TYPE_CHECKING:
    import duckdb

IMPORTER = "import_database"
SCHEMA, DATA = "schema.sql", "load.sql"
STATEMENT = re.compile(
    r"\s*(?P<verb>EXPORT|IMPORT)\s+DATABASE\s+(?:(?P<database>\"(?:[^\"]|\"\")+\"|\w+)\s+TO\s+)?"
    r"'(?P<folder>(?:[^']|'')*)'",
    re.IGNORECASE,
)
OURS = re.compile(r'\s*(?:CREATE MACRO "?(\w+)"? ?\(|(?:CREATE TABLE|COPY) spatialq_calls\b)')
"""A macro, if it is one of ours by its name; the log of calls."""
FILE = re.compile(r"(.* FROM ')(?:[^']|'')*[/\\](.*)", re.DOTALL)
"""A COPY statement: what is before the folder, and the name of the file with what follows."""
COMMENTS = """
WITH named AS (
    SELECT 'TABLE' AS kind, database_name, schema_name, [schema_name, table_name] AS name, comment
    FROM duckdb_tables() WHERE NOT internal
    UNION ALL
    SELECT 'VIEW', database_name, schema_name, [schema_name, view_name], comment
    FROM duckdb_views() WHERE NOT internal
    UNION ALL
    SELECT 'COLUMN', database_name, schema_name, [schema_name, table_name, column_name], comment
    FROM duckdb_columns() WHERE NOT internal
)
SELECT 'COMMENT ON ' || kind || ' '
    || array_to_string([('"' || replace(part, '"', '""') || '"') FOR part IN name], '.')
    || ' IS ''' || replace(comment, '''', '''''') || ''';'
FROM named WHERE database_name = coalesce($1, current_database()) AND comment IS NOT NULL
"""


@for_connection
def export_database(con: "duckdb.DuckDBPyConnection", folder: str | os.PathLike[str]) -> None:
    """Export the current database as Parquet files and the SQL that makes its tables.

    The folder can be imported by `import_database`, and by IMPORT DATABASE of any DuckDB if none
    of its views calls a function of spatialq. `spatialq sql "EXPORT DATABASE 'folder'"` does the
    same in DuckDB's formats.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    folder : path-like
        Made if it is not there.

    Raises
    ------
    duckdb.IOException
        If it cannot be written.

    Examples
    --------
    >>> spatialq.export_database(con, "exported")  # doctest: +SKIP
    """
    con.execute(f"EXPORT DATABASE {literal(os.fspath(folder))} (FORMAT parquet)").fetchall()
    _complete(con, Path(folder), None)


@for_connection
def import_database(con: "duckdb.DuckDBPyConnection", folder: str | os.PathLike[str]) -> None:
    """Import what EXPORT DATABASE or `export_database` wrote, all of it or nothing.

    Where EXPORT DATABASE of DuckDB wrote it, which leaves comments out, the files and the CRS of
    a table are found again if it has the name under which `load` filled it and as many rows.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        With no transaction open.
    folder : path-like

    Raises
    ------
    FileError
        If it is no folder of an exported database, or must not be opened.
    ValueError
        If a transaction is open.
    duckdb.CatalogException
        If a table is there already.

    Examples
    --------
    >>> spatialq.import_database(con, "exported")  # doctest: +SKIP
    """
    path = Path(folder)
    require(IMPORTER, path)
    try:
        schema, data = ((path / name).read_text(encoding="utf-8") for name in (SCHEMA, DATA))
    except (OSError, UnicodeDecodeError) as error:
        reason = f"is no folder that EXPORT DATABASE wrote: {error}"
        raise FileError.of(IMPORTER, path, reason) from error
    if is_open(con):
        message = f"{IMPORTER}: the connection has a transaction open; COMMIT or ROLLBACK it first"
        raise ValueError(message)
    with transaction(con):
        for statement in con.extract_statements(_without_ours(con, schema)):
            con.execute(statement).fetchall()
        for statement in con.extract_statements(_without_ours(con, data)):
            before, file = FILE.fullmatch(statement.query).groups()  # type: ignore[union-attr]
            here = f"{path.resolve()}{os.sep}".replace("'", "''")
            con.execute(f"{before}{here}{file}").fetchall()
        sources.restore(con)


@for_connection
def finish_export(con: "duckdb.DuckDBPyConnection", statement: str) -> None:
    """Complete what an EXPORT DATABASE wrote, as `export_database` does."""
    match = STATEMENT.match(statement)
    if match and match["verb"].upper() == "EXPORT":
        database = match["database"] and unquoted(match["database"])
        _complete(con, Path(match["folder"].replace("''", "'")), database)


def imported(con: "duckdb.DuckDBPyConnection", statement: str) -> bool:
    """Run a statement if it is an IMPORT DATABASE, as `import_database` does."""
    match = STATEMENT.match(statement)
    if not match or match["verb"].upper() != "IMPORT":
        return False
    import_database(con, match["folder"].replace("''", "'"))
    return True


def _complete(con: "duckdb.DuckDBPyConnection", folder: Path, database: str | None) -> None:
    """Take the macros out of the schema of an exported database, and add the comments."""
    file = folder / SCHEMA
    schema = _without_ours(con, file.read_text(encoding="utf-8"))
    load = folder / DATA
    with whole(load) as partial:
        partial.write_text(_without_ours(con, load.read_text(encoding="utf-8")), encoding="utf-8")
    comments = [comment for (comment,) in con.execute(COMMENTS, [database]).fetchall()]
    with whole(file) as partial:
        partial.write_text("\n".join([schema, *comments, ""]), encoding="utf-8")


def _without_ours(con: "duckdb.DuckDBPyConnection", schema: str) -> str:
    """Leave out what every database with spatialq has of its own: the macros, and the log."""
    ours = {None, *(macro.name for macro in macros("lists"))}
    statements = [statement.query for statement in con.extract_statements(schema)]
    return "\n".join(
        f"{text.strip().removesuffix(';')};"
        for text in statements
        if not ((match := OURS.match(text)) and match[1] in ours)
    )
