"""Reads a selector with the grammar of IfcOpenShell: its facets, or where the text is wrong."""

import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

OPERATORS = {
    "equals": "=",
    "morethanequalto": ">=",
    "lessthanequalto": "<=",
    "morethan": ">",
    "lessthan": "<",
    "contains": "*=",
}
SPECIAL = {"null": None, "true": True, "false": False}

EXPECTED = {
    r"[0-3][a-zA-Z0-9_$]{21}": "a GlobalId",
    r"Ifc\w+": "a class",
    r"[A-Z]\w+": "an attribute",
    r"[^,.=><*!\s]+": "a name or a value",
    r"[^\/]+": "a regular expression",
}
"""What the grammar's patterns stand for; its other terminals are signs and words of their own."""
SHOWN = 20
"""Characters of a text that an error shows."""
NAMED = {"ESCAPED_STRING": "a text in quotes", "SIGNED_DECIMAL": "a number"}


@dataclass(frozen=True)
class Regex:
    """A regular expression; it must match from the start of a text, not to its end."""

    pattern: str


Name = str | Regex
Value = str | Regex | bool | None


@dataclass(frozen=True)
class Comparison:
    """What a value is compared with, and how: ``!=`` is ``=`` negated."""

    operator: str
    value: Value
    negated: bool = False


@dataclass(frozen=True)
class Instance:
    """An object by its GlobalId, added or taken away."""

    global_id: str
    excluded: bool


@dataclass(frozen=True)
class Entity:
    """All objects of a class, added or taken away."""

    ifc_class: str
    excluded: bool


@dataclass(frozen=True)
class Attribute:
    """Those of which an attribute compares."""

    name: str
    comparison: Comparison


@dataclass(frozen=True)
class Property:
    """Those of which a property compares."""

    pset: Name
    prop: Name
    comparison: Comparison


@dataclass(frozen=True)
class Association:
    """Those whose type, material, classification, location, group or parent compares."""

    kind: str
    comparison: Comparison


@dataclass(frozen=True)
class Query:
    """Those of which what a chain of keys leads to compares."""

    keys: tuple[Name, ...]
    comparison: Comparison


Facet = Instance | Entity | Attribute | Property | Association | Query


def parse(caller: str, selector: str) -> list[list[Facet]]:
    """Read a selector.

    Returns
    -------
    list of list
        The facets of each part; the result is what all parts select, as `+` says.

    Raises
    ------
    ValueError
        If the text is none: one sentence with the position and what was expected there.
    """
    from ifcopenshell.util.selector import filter_elements_grammar

    (group,) = _tree(caller, filter_elements_grammar, selector).children
    return [
        [_facet(caller, facet.children[0]) for facet in part.children] for part in group.children
    ]


def _tree(caller: str, grammar: Any, text: str) -> Any:
    from lark.exceptions import LarkError, UnexpectedInput

    try:
        return grammar.parse(text)
    except UnexpectedInput as error:
        lines = text.split("\n")
        line, column, found = len(lines), len(lines[-1]) + 1, "it ends"
        if error.line > 0 and error.column > 0:  # neither is known of the end
            line, column = error.line, error.column
            found = f"it goes on with {lines[line - 1][column - 1 :][:SHOWN]!r}"
        names = getattr(error, "allowed", None) or getattr(error, "expected", None) or ()
        message = (
            f"{caller}: at line {line}, column {column} of the selector "
            f"{_expected(grammar, names)} must follow, but {found}"
        )
    except LarkError as error:
        message = f"{caller}: the selector {text!r} cannot be read: {error}"
    raise ValueError(message) from None


def _expected(grammar: Any, names: Iterable[str]) -> str:
    """Say what terminals of a grammar are, those in words first."""
    patterns = {terminal.name: terminal.pattern.value for terminal in grammar.terminals}
    known = {name: NAMED.get(name) or EXPECTED.get(patterns[name]) for name in names}
    words = sorted({word for word in known.values() if word})
    signs = sorted({patterns[name] for name in names if not known[name]})
    return " or ".join([*words, *signs]) or "nothing"


def _facet(caller: str, tree: Any) -> Facet:
    kind, parts = tree.data, tree.children
    if kind in ("instance", "entity"):
        token = str(parts[-1].children[0])
        excluded = len(parts) == 2
        return Instance(token, excluded) if kind == "instance" else Entity(token, excluded)
    comparison = _comparison(caller, *parts[-2:])
    if kind == "attribute":
        return Attribute(str(parts[0].children[0]), comparison)
    if kind == "property":
        pset, prop = (_value(caller, part) for part in parts[:2])
        return Property(pset, prop, comparison)
    if kind == "query":
        return Query(tuple(_keys(caller, _value(caller, parts[0]))), comparison)
    return Association(str(kind), comparison)


def _comparison(caller: str, operator: Any, value: Any) -> Comparison:
    sign = OPERATORS[operator.children[-1].data]
    return Comparison(sign, _value(caller, value), negated=len(operator.children) == 2)


def _value(caller: str, tree: Any) -> Any:
    """Read a name or a value; which of both the grammar has seen to."""
    (tree,) = tree.children
    (inner,) = tree.children
    match tree.data:
        case "special":
            return SPECIAL[inner.data]
        case "regex_string":
            return checked(caller, str(inner))
        case "quoted_string":
            return str(inner)[1:-1].replace('\\"', '"')
    return str(inner)


def _keys(caller: str, text: str) -> Iterator[Name]:
    """Read the keys of a query, which have a grammar of their own."""
    from ifcopenshell.util.selector import get_element_grammar

    (keys,) = _tree(caller, get_element_grammar, text).children
    for key in keys.children:
        (tree,) = key.children
        token = str(tree.children[0])
        match tree.data:
            case "regex_string":
                yield checked(caller, token)
            case "quoted_string":
                yield token[1:-1].replace("\\", "")
            case _:
                yield token


@cache
def checked(caller: str, pattern: str) -> Regex:
    """Make sure that a regular expression means the same to Python and DuckDB.

    Raises
    ------
    ValueError
        If it is none, or DuckDB's RE2 cannot do what it asks for.
    """
    reason = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of what a later Python will read in another way
            re.compile(pattern)
        pc.match_substring_regex(pa.array([""]), f"(?:{pattern})")  # by RE2, as DuckDB
    except (re.error, Warning, OverflowError, RecursionError) as error:
        reason = str(error)
    except pa.ArrowInvalid as error:
        reason = f"DuckDB does not support it: {str(error).rpartition(': ')[2]}"
    if reason:
        message = f"{caller}: /{pattern}/ must be a regular expression; {reason}"
        raise ValueError(message)
    return Regex(pattern)
