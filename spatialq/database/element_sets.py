"""What the macros of elements call to name their tables: functions that write SQL."""

from typing import Any

import pyarrow as pa

from spatialq.functions.sql_text import literal

ROW = "{global_id: global_id, identity: identity, mesh: mesh}"
NO_PAIRS = "SELECT NULL::VARCHAR AS a, NULL::VARCHAR AS b WHERE false"


def sets_sql(functions: Any, firsts: Any, seconds: Any) -> pa.Array:
    """Write the query for two sets: one row, `a` and `b` are lists of elements.

    `within` says that there is no second set. The lists are not coalesced, which would copy all
    meshes: NULL is a table without rows.

    Raises
    ------
    ValueError
        If `a` is NULL.
    """
    rows = zip(functions.to_pylist(), firsts.to_pylist(), seconds.to_pylist(), strict=True)
    return pa.array([_sets(*row) for row in rows], pa.string())


def _sets(function: str, a: str | None, b: str | None) -> str:
    if a is None:
        message = f"{function}: a must be the name of a table of elements, got NULL"
        raise ValueError(message)
    second = "NULL" if b is None else _elements(b)
    return f"SELECT {_elements(a)} AS a, {second} AS b, {b is None} AS within"


def _elements(name: str) -> str:
    return f"(SELECT list({ROW}) FROM spatial_elements({literal(name)}))"


def related_sql(excludes: Any, firsts: Any, relations: Any) -> pa.Array:
    """Write the query for the pairs that are left out: none, or those that belong together."""
    rows = zip(excludes.to_pylist(), firsts.to_pylist(), relations.to_pylist(), strict=True)
    return pa.array([_related(*row) for row in rows], pa.string())


def _related(exclude: bool | None, a: str, relations: str | None) -> str:  # noqa: FBT001
    if not exclude:
        return NO_PAIRS
    if relations is None:  # as `load` names them
        schema, dot, name = a.rpartition(".")
        name = "relations" if name.lower() == "elements" else f"{name}_relations"
        relations = f"{schema}{dot}{name}"
    return f"FROM related_elements({literal(relations)})"
