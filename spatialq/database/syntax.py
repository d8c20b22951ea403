"""The text of queries as DuckDB parses it, and what the parts of it mean."""

import json
import re
from functools import cache
from typing import Any

import duckdb

from spatialq.runtime import forks

STARTS = (
    "(",
    "WITH",
    "FROM",
    "SELECT",
    "PIVOT",
    "UNPIVOT",
    "VALUES",
    "TABLE",
    "DESCRIBE",
    "SUMMARIZE",
)
"""What a query may begin with."""

Node = dict[str, Any]
"""A part of a query, as DuckDB's `json_serialize_sql` writes it."""


_lock = forks.lock()


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def parse(text: str) -> list[Node]:
    """Parse the queries in a statement, also that of CREATE TABLE ... AS; it may have none."""
    found = _parsed(text)
    if found is not None:
        return found
    encoded = text.encode()
    offsets = [offset for offset, _ in duckdb.tokenize(text)]  # in bytes
    for offset in offsets:
        rest = encoded[offset:].decode()
        begins = re.match(r"\w+|\(", rest)
        if begins is None or begins[0].upper() not in STARTS:
            continue
        for end in (len(rest), *([_closing(rest)] if begins[0] == "(" else [])):
            found = _parsed(rest[:end])
            if found is not None:
                return found
    return []


def _closing(text: str) -> int:
    """Find the end of what the bracket at the beginning of a text encloses."""
    depth, encoded = 0, text.encode()
    for offset, _ in duckdb.tokenize(text):
        sign = encoded[offset : offset + 1]
        depth += (sign == b"(") - (sign == b")")
        if depth == 0:
            return len(encoded[: offset + 1].decode())
    return len(text)


def _parsed(text: str) -> list[Node] | None:
    with _lock:
        written = "SELECT json_serialize_sql(?, skip_null := true, skip_empty := true)"
        (answer,) = _parser().execute(written, [text]).fetchall()[0]
    known = json.loads(answer)
    return None if known["error"] else [each["node"] for each in known["statements"]]


def called(function: Node) -> str:
    """Name the function of a call, in lower case."""
    return str(function["function_name"]).casefold()


def arguments(function: Node) -> list[Node]:
    """Give the expressions that a function is called with."""
    return [each["expression"] for each in function.get("arguments", ())]


def name_of(argument: Node) -> str | None:
    """Give the name that an argument is: a text, or a name without quotes."""
    if argument["class"] == "CONSTANT":
        known = argument["literal"]
        return known["text"] if known["kind"] == "STRING" else None
    if argument["class"] == "COLUMN_REF":
        return ".".join(argument["column_names"])
    return None


def names_of(argument: Node) -> list[str]:
    """Give the name that an argument is, or those of a list of texts."""
    if argument["class"] == "FUNCTION" and called(argument) == "list_value":
        return [name for each in arguments(argument) if (name := name_of(each)) is not None]
    name = name_of(argument)
    return [] if name is None else [name]


def is_null(argument: Node) -> bool:
    """Whether an argument is NULL, as it stands."""
    return bool(argument["class"] == "CONSTANT" and argument["literal"]["kind"] == "NULL")


def result_name(expression: Node) -> str:
    """Name the column that an expression of a SELECT makes, in lower case; empty if it has none."""
    if expression.get("alias"):
        return str(expression["alias"]).casefold()
    if expression["class"] == "CAST":
        return result_name(expression["child"])
    return str(expression.get("column_names", [""])[-1]).casefold()


def last(name: Any) -> str:
    """Give the column of a name before which a table may stand, in lower case."""
    return str(name["column"] if isinstance(name, dict) else name).casefold()


def operands(expression: Node) -> list[Node]:
    """List the expressions that an expression is made of."""
    found: list[Node] = []
    rest: list[Any] = list(expression.values())
    while rest:
        value = rest.pop()
        if isinstance(value, dict) and "class" in value:
            found.append(value)
        elif isinstance(value, dict):
            rest += value.values()
        elif isinstance(value, list):
            rest += value
    return found
