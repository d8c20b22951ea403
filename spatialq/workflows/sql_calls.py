"""Calls of workflows in SQL: arguments checked as Python checks them."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from spatialq.errors import FileError
from spatialq.export.atomic import WRITER, new_only
from spatialq.functions.file_macros import OVERWRITE, FileFunction
from spatialq.functions.implementations import call
from spatialq.io import access
from spatialq.runtime import budget

OPTIONAL = {"memory"}


def written(
    function: FileFunction,
    path: str | None,
    outputs: str | list[str] | None,
    options: str,
    overwrite: bool | None,  # noqa: FBT001
) -> list[dict[str, Any]]:
    """Write files: new ones, unless those that are there shall be replaced.

    Parameters
    ----------
    function : FileFunction
        What the user called.
    path : str
        Or a list of them, as JSON.
    outputs : str or list of str
    options : str
        JSON of the parameters, `device` and `memory`.
    overwrite : bool

    Raises
    ------
    FileError
        If a file must not be opened, or is there and must not be replaced.
    ValueError
        If an argument is NULL that must have a value, or is of a wrong type, or the connection is
        read-only.
    """
    access.require_writing(function.name)
    chosen = json.loads(options)
    given = {"path": None if path is None else json.loads(path), function.target: outputs}
    _require_values(function, {**given, **chosen, OVERWRITE.name: overwrite})
    with ExitStack() as within:
        within.enter_context(budget.within(function.name, chosen.pop("memory", None)))
        if not overwrite:
            within.enter_context(new_only())
        within.enter_context(_said_by(function.name))
        done = call(function.name, *given.values(), **chosen)
    return [{column: done.get(column) for column in function.result}]


@contextmanager
def _said_by(caller: str) -> Iterator[None]:
    """Let errors about outputs begin with the function that the user called."""
    try:
        yield
    except FileError as error:
        writer, path, reason = error.parts or ("", "", "")
        if writer != WRITER:
            raise
        raise FileError.of(caller, path, reason) from error


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
