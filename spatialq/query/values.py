"""Values of Python in the text of a query."""

from typing import Any

from spatialq.errors import QueryError
from spatialq.functions.sql_text import literal


def require_text(function: str, argument: str, given: object) -> str:
    """Give a text as it is.

    Raises
    ------
    QueryError
        If it is none, or empty.
    """
    if not isinstance(given, str) or not given.strip():
        message = f"{function}: {argument} must be a text, got {given!r}"
        raise QueryError(message)
    return _encodable(function, argument, given)


def value(function: str, argument: str, given: Any) -> str:
    """Write a value in SQL.

    Raises
    ------
    QueryError
        If SQL has no such value.
    """
    given = given.tolist() if hasattr(given, "tolist") else given  # NumPy's
    is_list = isinstance(given, list | tuple)
    for each in given if is_list else [given]:
        if not isinstance(each, str | bool | int | float | None):
            message = (
                f"{function}: {argument} must be a number, a text, a truth value, a list of them "
                f"or None, got {type(given).__name__}"
            )
            raise QueryError(message)
        if isinstance(each, str):
            _encodable(function, argument, each)
    return literal(given)


def _encodable(function: str, argument: str, text: str) -> str:
    """Refuse what no UTF-8 is: half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        message = f"{function}: {argument} must be Unicode, got {text!r}"
        raise QueryError(message) from None
    return text
