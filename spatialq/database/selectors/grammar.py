"""Reads a selector with the grammar of IfcOpenShell: its facets, or where the text is wrong."""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spatialq.database.selectors.messages import unreadable
from spatialq.functions.sql_text import literal
from spatialq.runtime.extras import missing

OPERATORS = {
    "equals": "=",
    "morethanequalto": ">=",
    "lessthanequalto": "<=",
    "morethan": ">",
    "lessthan": "<",
    "contains": "*=",
}
SPECIAL = {"null": None, "true": True, "false": False}
ORDERS = ("<", "<=", ">", ">=")


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
    if reason := missing("ifc"):
        message = f"{caller}: {reason}"
        raise ValueError(message)
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
        message = f"{caller}: {unreadable(grammar, text, error)}"
    except LarkError as error:
        message = f"{caller}: the selector {text!r} cannot be read: {error}"
    raise ValueError(message) from None


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
    read = _value(caller, value)
    if sign in ORDERS and not (isinstance(read, str) and is_number(read)):
        match read:
            case str():
                shown = repr(read)
            case Regex():
                shown = f"/{read.pattern}/"
            case _:
                shown = literal(read).upper()
        message = (
            f"{caller}: {sign} compares with a number, which is in the unit of the file and is "
            f"written without a unit, got {shown}"
        )
        raise ValueError(message)
    return Comparison(sign, read, negated=len(operator.children) == 2)


def is_number(text: str) -> bool:
    """Say whether Python's float reads a text, and not as NaN."""
    try:
        number = float(text)
    except ValueError:
        return False
    return number == number


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
