"""Parts of a building model: the objects whose GlobalIds a query gives, as an IFC file again."""

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.database.model_tables import beside_elements
from spatialq.database.sources import models, tables_read, words
from spatialq.database.statements import one_statement
from spatialq.errors import FileWarning
from spatialq.export.ifc import EXPORTER, SECONDS, write_part
from spatialq.functions.sql_text import identifier, literal
from spatialq.io.access import for_connection
from spatialq.io.ifc.columns import TABLES
from spatialq.io.storage import as_path

if TYPE_CHECKING:
    import duckdb

PAIR = ("a", "b")
"""What spatial relations call the GlobalIds of two elements."""


@for_connection
def export_ifc(
    con: "duckdb.DuckDBPyConnection",
    query: "str | duckdb.DuckDBPyRelation",
    path: str | os.PathLike[str],
    *,
    seconds: float = SECONDS,
) -> int:
    """Write the objects that a query names as an IFC file, with all that belongs to them.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    query : str or relation of `con`
        Its GlobalIds are in the columns `global_id`, also as a part of the name such as
        `wall_global_id`, or, if there is none, in `a` and `b`, as pairs of elements have them.
        NULL is ignored. The file that they are from is in `file_name`, or else in that column of
        the tables that the query reads.
    path : path
        An `.ifc` or `.ifczip` file, which appears when it is complete.
    seconds : float, > 0, <= 1,000,000
        How long the process that writes it may take.

    Returns
    -------
    int
        How many objects have the GlobalIds; what belongs to them is written, too.

    Raises
    ------
    FileError
        If the model cannot be read, a GlobalId is not of an object in it, or the file cannot be
        written.
    ValueError
        If the query is not one statement, has no column of GlobalIds, or does not say the one
        file that they are from.

    Warns
    -----
    FileWarning
        If a GlobalId names several objects, which are all written, if the model is damaged, or if
        its file has changed since it was loaded.

    Examples
    --------
    >>> walls = "SELECT global_id FROM elements WHERE ifc_class = 'IfcWall'"
    >>> spatialq.export_ifc(con, walls, "walls.ifc")  # doctest: +SKIP
    19
    """
    if isinstance(query, str):
        relation = con.sql(f"SELECT * FROM ({one_statement(EXPORTER, con, query)}\n)")
    else:
        relation = query
    columns = id_columns(relation)
    has_file = "file_name" in (name.lower() for name in relation.columns)
    chosen = ", ".join(map(identifier, columns))
    file_name = "file_name" if has_file else "NULL"
    rows = (
        relation.project(f"unnest([{chosen}]) AS global_id, {file_name} AS file_name")
        .filter("global_id IS NOT NULL")
        .distinct()
        .fetchall()
    )
    text = query if isinstance(query, str) else query.sql_query()
    return write_objects(con, rows, text, path, seconds=seconds)


def write_objects(
    con: "duckdb.DuckDBPyConnection",
    rows: Iterable[tuple[str, str | None]],
    query: str,
    path: str | os.PathLike[str],
    *,
    seconds: float = SECONDS,
) -> int:
    """Write objects that a query gave, each a GlobalId and a file or None: see `export_ifc`.

    The query says which tables they are from.
    """
    rows = list(rows)
    global_ids = sorted({global_id for global_id, _ in rows})
    files = {file for _, file in rows if file is not None}
    tables = tables_read(con, query)
    if not files:
        files = files_of(con, query, tables, global_ids)
    source = one_file(con, files, global_ids, tables)
    return write_part(source, global_ids, Path(path), seconds=seconds)


def id_columns(relation: "duckdb.DuckDBPyRelation") -> list[str]:
    """Name the columns of GlobalIds.

    Raises
    ------
    ValueError
        If there is none, or one is not text.
    """
    names = relation.columns
    found = [name for name in names if "globalid" in name.lower().replace("_", "")]
    found = found or [name for name in names if name.lower() in PAIR]
    types = dict(zip(names, map(str, relation.types), strict=True))
    wrong = [f"{name} {types[name]}" for name in found if types[name] != "VARCHAR"]
    if wrong or not found:
        got = ", ".join(wrong or names)
        message = f"{EXPORTER}: the query must give a column global_id of text, got {got}"
        raise ValueError(message)
    return found


def files_of(
    con: "duckdb.DuckDBPyConnection", query: str, read: set[str], global_ids: Iterable[str]
) -> set[str]:
    """Find the files that GlobalIds are from, in the column `file_name` of tables.

    These are the tables that the query has `read`; if none of them has the column, the views and
    temporary tables that it names, or else the tables that models were loaded into, unless the
    query reads a model itself. If none of them has the GlobalIds, as those of storeys are not in a
    table of elements, all files in them come into question.
    """
    tables = {name for name in read if has_column(con, name, "file_name")}
    if not tables:
        named = words(query)
        if any(word.lower().startswith("read_ifc") for word in named):
            return set()
        tables = {name for name in named if has_column(con, name, "file_name")}
        tables = tables or {model.table for model in models(con)}
    ids = literal(sorted(global_ids))
    rows = f"global_id IN (SELECT unnest({ids}::VARCHAR[]))"
    with_ids = {name for name in tables if has_column(con, name, "global_id")}
    return files_in(con, with_ids, rows) or files_in(con, tables, "true")


def files_in(con: "duckdb.DuckDBPyConnection", tables: Iterable[str], condition: str) -> set[str]:
    """Give the files that rows of tables are from."""
    return {
        file
        for table in tables
        for (file,) in con.execute(
            f"SELECT DISTINCT file_name FROM {identifier(table)} "
            f"WHERE file_name IS NOT NULL AND {condition}"
        ).fetchall()
    }


def has_column(con: "duckdb.DuckDBPyConnection", table: str, name: str) -> bool:
    """Whether a table or view of the current schema, or a temporary one, has a column."""
    found = con.execute(
        "SELECT lower(column_name) FROM duckdb_columns() WHERE lower(table_name) = lower(?) "
        "AND (database_name = 'temp' OR "
        "database_name = current_database() AND schema_name = current_schema())",
        [table],
    ).fetchall()
    return (name,) in found


def one_file(
    con: "duckdb.DuckDBPyConnection",
    files: set[str],
    global_ids: Sequence[str],
    tables: set[str],
) -> Path:
    """Give the file if it is one.

    A relative name means the model in the tables that the query reads, else a file in this
    folder, else a model that was loaded by that name.

    Raises
    ------
    ValueError
        If there is none, or several.

    Warns
    -----
    FileWarning
        If the file has changed since it was loaded.
    """
    if len(files) != 1:
        got = ", ".join(f"'{name}'" for name in sorted(files)) or "none"
        if not global_ids:
            got = "no rows"
        message = (
            f"{EXPORTER}: the query must say in a column file_name which one file its GlobalIds "
            f"are from, got {got}"
        )
        raise ValueError(message)
    path = as_path(*files)
    named = [
        model for model in models(con) if Path(model.path).parts[-len(path.parts) :] == path.parts
    ]
    read = [
        model
        for model in named
        if any(beside_elements(model.table, each).lower() in tables for each in TABLES)
    ]
    if not read and path.exists():
        return path
    found = {as_path(model.path) for model in read or named}
    if len(found) != 1 or not next(iter(found)).exists():
        return path
    (source,) = found
    if source.stat().st_mtime > min(model.loaded_at.timestamp() for model in read or named):
        message = (
            f"{EXPORTER}: '{source}' has changed since it was loaded: the part is of the file as "
            "it is now"
        )
        warnings.warn(message, FileWarning, stacklevel=5)
    return path if path.exists() and path.resolve() == source else source
