"""Values and names in the text of a query: macros that write one take no parameters."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, count
from math import isfinite

NAME = r'"(?:[^"]|"")*"|[^".]+'
NAMES = re.compile(rf"(?:{NAME})(?:\.(?:{NAME}))*")


def literal(value: object) -> str:
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


def name_parts(name: str) -> list[str]:
    """Split the name of a table, before which schema and catalog may stand.

    The rule is that of DuckDB's `query_table`, so that macros mean the same tables: a part in
    double quotes is what the quotes hold, another is all that has neither a dot nor a quote.

    Raises
    ------
    ValueError
        If it is no name: `"t"; DROP TABLE t`.
    """
    if not NAMES.fullmatch(name):
        message = f"{name!r} is no name of a table: a part with a dot or quotes stands in quotes"
        raise ValueError(message)
    return parts_of(name)


def is_quoted(name: str) -> bool:
    """Whether a text is the name of a table of which at least one part stands in double quotes."""
    return '"' in name and NAMES.fullmatch(name) is not None


def parts_of(name: str) -> list[str]:
    """Split the name of a table as `name_parts`, whatever stands between its parts."""
    return [unquoted(part) for part in re.findall(NAME, name)]


def unquoted(name: str) -> str:
    """Give the name that an identifier in quotes, or without, stands for."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def identifier(name: str) -> str:
    """Write the name of a table or column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def unused(name: str, taken: Iterable[str]) -> str:
    """Find a name for a column that no other one has: name, name_1."""
    there = {each.casefold() for each in taken}
    names = chain([name], (f"{name}_{k}" for k in count(1)))
    return next(each for each in names if each.casefold() not in there)
