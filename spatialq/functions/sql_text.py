"""Values and names in the text of a query: macros that write one take no parameters."""

from collections.abc import Sequence
from math import isfinite
from typing import Any


def literal(value: Any) -> str:
    """Write None, text, a number, a truth value, or a sequence of them in SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        text = value.replace("'", "''")
        return f"'{text}'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, float) and not isfinite(value):
        return f"'{value}'::DOUBLE"
    return repr(value)


def identifier(name: str) -> str:
    """Write the name of a table or column in SQL."""
    return '"' + name.replace('"', '""') + '"'
