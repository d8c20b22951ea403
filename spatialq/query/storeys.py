"""Whether a model has the storeys that conditions name: else the rows would silently be none."""

import re
from typing import TYPE_CHECKING

from spatialq.errors import QueryError
from spatialq.query.binding import bind
from spatialq.query.plans import beginning
from spatialq.query.sentences import near
from spatialq.query.steps import Step, Table, in_order

if TYPE_CHECKING:
    import duckdb

READ = re.compile(r"read_ifc(?:_objects)?\(('(?:[^']|'')*')")


def require_of_table(con: "duckdb.DuckDBPyConnection", step: Step | Table, name: str) -> bool:
    """Check a storey of the table whose rows a step has; tell whether they are of a table.

    Raises
    ------
    QueryError
        If no row is of that storey; the sentence names the near ones.
    """
    begins = beginning(step)
    steps = [each for each in in_order(step) if isinstance(each, Step)]
    if not isinstance(begins, Table) or any(each.columns is not None for each in steps):
        return False
    _require(con, f"SELECT DISTINCT storey FROM {begins.name}", name)
    return True


def require_of_files(con: "duckdb.DuckDBPyConnection", last: Step | Table) -> None:
    """Read the storeys of files, and check those that the steps to be run name.

    Raises
    ------
    QueryError
        If the models have no such storey; the sentence names the near ones.
    """
    for step in in_order(last):
        if not isinstance(step, Step) or not step.storeys:
            continue
        texts = (piece for piece in step.source.pieces if isinstance(piece, str))
        if read := READ.match("".join(texts)):
            names = (
                f"SELECT DISTINCT name FROM read_ifc_objects({read[1]}) "
                "WHERE is_a(ifc_class, 'IfcBuildingStorey')"
            )
            for name in step.storeys:
                _require(con, names, name)


def _require(con: "duckdb.DuckDBPyConnection", storeys: str, name: str) -> None:
    known = sorted(each for (each,) in bind(con, storeys).fetchall() if each is not None)
    if name not in known:
        message = f"storey: no storey {name!r}; {near(name, known)}"
        raise QueryError(message)
