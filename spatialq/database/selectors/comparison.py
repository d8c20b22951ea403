"""Comparisons in SQL that give what `ifcopenshell.util.selector` gives: true or false, never NULL.

A text is equal to the whole value, or part of it with ``*=``; larger and smaller are for numbers
only and mean ``=`` for texts. A number compares with what Python's int and float read. A list
compares if one of its items does, and not if none does.
"""

from collections.abc import Callable

from spatialq.database.selectors.grammar import Comparison, Regex
from spatialq.functions.sql_text import literal

LARGEST = 2**64
"""No whole number of a table is beyond it, so that a literal there need not be."""


def pattern(regex: Regex) -> str:
    """Write a regular expression that matches from the start of a text as RE2 reads it."""
    return f"^(?-s:{regex.pattern})"


def matches(text: str, regex: Regex) -> str:
    """Write whether a text matches from its start."""
    return f"regexp_matches({text}, {literal(pattern(regex))})"


def text_compares(text: str, comparison: Comparison) -> str:
    """Write whether a text, or NULL, compares."""
    value = comparison.value
    match value:
        case None:
            sql = f"{text} IS NULL"
        case bool():
            sql = "false"
        case Regex():
            sql = f"coalesce({matches(text, value)}, false)"
        case str() if comparison.operator == "*=":
            sql = f"coalesce(contains({text}, {literal(value)}), false)"
        case _:
            sql = f"coalesce({text} = {literal(value)}, false)"
    return _signed(sql, comparison)


def none_compares(comparison: Comparison) -> bool:
    """Say whether a value that is not there compares."""
    return (comparison.value is None) != comparison.negated


def json_compares(value: str, comparison: Comparison) -> str:
    """Write whether a JSON value, or NULL, compares; of an array, one of its items."""
    of_items = f"len(list_filter(json_extract({value}, '$[*]'), lambda item: {{}})) > 0"
    sql = (
        f"CASE WHEN json_type({value}) = 'ARRAY' THEN "
        + of_items.format(_single("item", comparison))
        + f" ELSE {_single(value, comparison)} END"
    )
    return _signed(sql, comparison)


def _signed(sql: str, comparison: Comparison) -> str:
    return f"(NOT ({sql}))" if comparison.negated else f"({sql})"


def _single(json: str, comparison: Comparison) -> str:
    """Write whether one JSON value that is no array compares, leaving out the negation."""
    value = comparison.value
    text = f"json_extract_string({json}, '$')"
    match value:
        case None:
            return f"coalesce(json_type({json}), 'NULL') = 'NULL'"
        case bool():
            said = literal(literal(value))
            return f"coalesce(json_type({json}) = 'BOOLEAN' AND {text} = {said}, false)"
        case Regex():
            return f"coalesce(json_type({json}) = 'VARCHAR' AND {matches(text, value)}, false)"
    positive = Comparison(comparison.operator, value)
    whole = _number(f"{text}::HUGEINT", comparison.operator, value, int)
    flag = _number(f"({text} = 'true')::INTEGER", comparison.operator, value, int)
    real = _number(f"{text}::DOUBLE", comparison.operator, value, float)
    return (
        f"CASE json_type({json}) WHEN 'VARCHAR' THEN {text_compares(text, positive)} "
        f"WHEN 'DOUBLE' THEN {real} WHEN 'BIGINT' THEN {whole} WHEN 'UBIGINT' THEN {whole} "
        f"WHEN 'BOOLEAN' THEN {flag} ELSE false END"
    )


def _number(sql: str, operator: str, value: str, read: Callable[[str], float]) -> str:
    try:
        number = read(value)
    except ValueError:
        return "false"
    if number != number:  # NaN, which DuckDB orders
        return "false"
    if isinstance(number, int):
        number = max(-LARGEST, min(number, LARGEST))
    return f"{sql} {'=' if operator == '*=' else operator} {literal(number)}"
