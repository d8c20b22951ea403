"""Calls of workflows in SQL: rows of arguments, checked as Python checks them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from spatialq.data.arrow import arrow_fields
from spatialq.functions.declaration import Parameter
from spatialq.runtime import budget

OPTIONAL = {"memory"}


def written(
    name: str,
    write: Callable[..., Mapping[str, Any]],
    parameters: Sequence[Parameter],
    result: Mapping[str, str],
    columns: Iterable[Any],
    *,
    targets: str = "outputs",
) -> pa.Array:
    """Write the files of each row.

    Parameters
    ----------
    name : str
        The function that the user called, for errors.
    write : callable
        Called with the path, the outputs and the parameters by name.
    parameters : sequence of Parameter
    result : mapping
        SQL types of what it gives that is shown; NULL where it gives none.
    columns : three Arrow arrays
        Paths, outputs or lists of them, JSON of the parameters, `device` and `memory`.
    targets : str
        Name of the argument that the outputs are.

    Raises
    ------
    ValueError
        If an argument is NULL that must have a value, or is of a wrong type.
    """
    may_be_null = OPTIONAL | {each.name for each in parameters if each.is_optional}
    rows = []
    for path, outputs, text in zip(*(each.to_pylist() for each in columns), strict=True):
        chosen = json.loads(text)
        for argument, value in {"path": path, targets: outputs, **chosen}.items():
            is_null = value is None and argument not in may_be_null
            if is_null or (argument == targets and isinstance(value, list) and None in value):
                message = f"{name}: {argument} must not be NULL"
                raise ValueError(message)
        for each in parameters:
            try:
                each.convert(chosen[each.name])
            except TypeError as error:
                message = f"{name}: {each.name} must be {error}, got {chosen[each.name]!r}"
                raise ValueError(message) from None
        with budget.within(name, chosen.pop("memory")):
            done = write(path, outputs, **chosen)
        rows.append([{column: done.get(column) for column in result}])
    return pa.array(rows, pa.list_(pa.struct(arrow_fields(result))))
