"""What changed between two states of a model, as a query."""

import os
from typing import TYPE_CHECKING

from spatialq.data.units import metres
from spatialq.errors import QueryError
from spatialq.functions.sql_text import literal
from spatialq.io.access import for_connection
from spatialq.io.files import require_file
from spatialq.io.storage import as_path
from spatialq.query.query import of_step
from spatialq.query.relational import Query
from spatialq.query.sentences import said_by
from spatialq.query.steps import Step, sql

if TYPE_CHECKING:
    import duckdb


@for_connection
def model_changes(
    con: "duckdb.DuckDBPyConnection",
    old: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    unchanged: bool = False,
    tolerance: float | str = 0.001,
) -> Query:
    """Begin a query with what changed from one IFC file to another, a row for each object.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    old, new : path
        Files (.ifc, .ifczip); they are opened when the rows are read.
    unchanged : bool
        Whether objects that did not change are listed as well.
    tolerance : float or str
        Metres >= 0, or a length such as "5mm": what moved less did not move.

    Returns
    -------
    Query
        With the columns of `model_changes` in SQL.

    Raises
    ------
    FileError, QueryError
        If there is no such file, or an argument is wrong.
    """
    for name, path in (("old", old), ("new", new)):
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            message = f"model_changes: {name} must be a file, got {path!r}"
            raise QueryError(message)
        require_file("model_changes", as_path(path))
    if isinstance(tolerance, str):
        with said_by("model_changes"):
            tolerance = metres("model_changes", "tolerance", tolerance)
    files = ", ".join(literal(os.fspath(path)) for path in (old, new))
    options = f"unchanged := {literal(unchanged)}, tolerance := {literal(tolerance)}"
    step = Step("changes", sql(f"model_changes({files}, {options})"))
    return of_step(con, step, caller="model_changes")
