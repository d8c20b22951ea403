"""Checks of building models by an IDS, as queries."""

import os
from typing import TYPE_CHECKING

from spatialq.errors import QueryError
from spatialq.functions.sql_text import literal
from spatialq.io.access import for_connection
from spatialq.io.files import find_files, require_file
from spatialq.io.storage import as_path
from spatialq.query.query import of_step
from spatialq.query.relational import Query
from spatialq.query.steps import Step, sql

if TYPE_CHECKING:
    import duckdb


@for_connection
def check_ids(
    con: "duckdb.DuckDBPyConnection",
    model: str | os.PathLike[str],
    rules: str | os.PathLike[str],
) -> Query:
    """Begin a query with what came of checking models by an IDS file.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    model : path
        A file (.ifc, .ifczip) or a glob pattern.
    rules : path
        An IDS file (.ids, .xml; version 1.0).

    Returns
    -------
    Query
        With the columns of `check_ids` in SQL: a row for each specification, requirement and object
        that the specification applies to.

    Raises
    ------
    FileError, QueryError
        If there is no such file, or an argument is no path. Files are read with the rows.
    """
    files = _path("check_ids", "model", model), _path("check_ids", "rules", rules)
    find_files("check_ids", files[0])
    require_file("check_ids", as_path(files[1]))
    call = f"check_ids_files({literal(files[0])}, {literal(files[1])})"
    return of_step(con, Step("checks", sql(call)), caller="check_ids")


@for_connection
def ids_specifications(con: "duckdb.DuckDBPyConnection", path: str | os.PathLike[str]) -> Query:
    """Begin a query with the specifications of an IDS file, a row for each.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    path : path

    Returns
    -------
    Query
        With the columns of `ids_specifications` in SQL.

    Raises
    ------
    FileError, QueryError
        If there is no such file, or `path` is no path.
    """
    file = _path("ids_specifications", "path", path)
    require_file("ids_specifications", as_path(file))
    step = Step("specifications", sql(f"ids_specifications({literal(file)})"))
    return of_step(con, step, caller="ids_specifications")


def _path(caller: str, name: str, path: object) -> str:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        message = f"{caller}: {name} must be a file, got {path!r}"
        raise QueryError(message)
    return os.fspath(path)
