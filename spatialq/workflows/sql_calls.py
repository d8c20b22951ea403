"""Calls of workflows in SQL: rows of arguments, checked as Python checks them."""

import json
from importlib import import_module
from typing import Any

import pyarrow as pa

from spatialq.data.arrow import arrow_fields
from spatialq.functions.file_macros import FileFunction
from spatialq.runtime import budget

OPTIONAL = {"memory"}


def written(function: FileFunction, paths: Any, outputs: Any, options: Any) -> pa.Array:
    """Write the files of each row.

    Parameters
    ----------
    function : FileFunction
        What the user called.
    paths, outputs, options : Arrow array
        Paths and lists of them as JSON, outputs or lists of them, JSON of the parameters, `device`
        and `memory`.

    Raises
    ------
    ValueError
        If an argument is NULL that must have a value, or is of a wrong type.
    """
    module, _, attribute = function.workflow.partition(":")
    write = getattr(import_module(module), attribute)
    columns = (each.to_pylist() for each in (paths, outputs, options))
    rows = []
    for path, targets, text in zip(*columns, strict=True):
        chosen = json.loads(text)
        given = {"path": None if path is None else json.loads(path), function.target: targets}
        _require_values(function, {**given, **chosen})
        with budget.within(function.name, chosen.pop("memory")):
            done = write(*given.values(), **chosen)
        rows.append([{column: done.get(column) for column in function.result}])
    return pa.array(rows, pa.list_(pa.struct(arrow_fields(function.result))))


def _require_values(function: FileFunction, given: dict[str, Any]) -> None:
    """Reject NULL where a value must be, and values of wrong types."""
    may_be_null = OPTIONAL | {each.name for each in function.parameters if each.is_optional}
    for argument, value in given.items():
        files = argument in ("path", function.target)
        lacks_one = files and isinstance(value, list) and None in value
        if lacks_one or (value is None and argument not in may_be_null):
            message = f"{function.name}: {argument} must not be NULL"
            raise ValueError(message)
    for each in function.parameters:
        try:
            each.convert(given[each.name])
        except TypeError as error:
            message = f"{function.name}: {each.name} must be {error}, got {given[each.name]!r}"
            raise ValueError(message) from None
