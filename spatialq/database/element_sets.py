"""What the macros of elements call to name their tables: functions that write SQL."""

from typing import Any

import pyarrow as pa

from spatialq.database import pins
from spatialq.functions.sql_text import literal

ROW = "{global_id: global_id, identity: identity, mesh: mesh}"
NO_PAIRS = "SELECT NULL::VARCHAR AS a, NULL::VARCHAR AS b WHERE false"


def sets_sql(functions: Any, firsts: Any, seconds: Any) -> pa.Array:
    """Write the query for two sets: one row, `a` and `b` are lists of elements.

    `within` is a struct: whether there is no second set, and the pins of the two. The lists are
    not coalesced, which would copy all meshes: NULL is a table without rows, or a pinned one.

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
    named = {"a": a, "b": b}
    pinned = {
        argument: f'"spatialq pin {argument}"'
        for argument, name in named.items()
        if name is not None and pins.may_be_pinned(name, pins.ELEMENTS)
    }
    checks = [_check(part, named[argument]) for argument, part in pinned.items()]
    lists = [f"{_elements(named[each], pinned.get(each))} AS {each}" for each in named]
    numbers = [
        f"{each}: {f'(SELECT pin FROM {pinned[each]})' if each in pinned else 'NULL::BIGINT'}"
        for each in named
    ]
    head = f"WITH {', '.join(checks)} " if checks else ""
    # the column is called within, as the macros have it that old databases keep
    return (
        f"{head}SELECT {', '.join(lists)}, "
        f"{{within: {literal(b is None)}, {', '.join(numbers)}}} AS within"
    )


def _elements(name: str | None, pinned: str | None) -> str:
    """Write the list of the elements of a table; NULL if they are pinned."""
    if name is None:
        return "NULL"
    source = f"spatial_elements({literal(name)})"
    if pinned is not None:
        source = pins.unless_pinned(source, pinned)
    return f"(SELECT list({ROW}) FROM {source})"


def _check(part: str, name: str | None) -> str:
    assert name is not None
    source = f"spatial_elements({literal(name)})"
    return pins.check(part, name, pins.ELEMENTS, pins.ELEMENT_COLUMNS, source, on_gpu=False)


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
