"""Says what is wrong with a selector that the grammar of IfcOpenShell does not read."""

import re
from collections.abc import Iterable
from typing import Any

from spatialq.io.ifc import schemas

EXPECTED = {
    r"[0-3][a-zA-Z0-9_$]{21}": "a GlobalId",
    r"Ifc\w+": "a class",
    r"[A-Z]\w+": "an attribute",
    r"[^,.=><*!\s]+": "a name or a value",
    r"[^\/]+": "a regular expression",
}
"""What the grammar's patterns stand for; its other terminals are signs and words of their own."""
NAMED = {"ESCAPED_STRING": "a text in quotes", "SIGNED_DECIMAL": "a number", "DOT": "a point"}
COMPARISONS = {"!", "=", "!=", ">", ">=", "<", "<=", "*="}
SHOWN = 20
"""Characters of a text that an error shows."""

FILTERS = ("type", "material", "classification", "location", "group", "parent")
PLACES = ("storey", "building", "site", "space", "container")
"""What a query leads to by this name, and what a location may be."""
WORD = re.compile(r"(?:^|[,+])\s*([^,.=><*!\s+\"/]+)\s*$")
"""The word that a facet begins with, where nothing else of it was read."""


def unreadable(grammar: Any, text: str, error: Any) -> str:
    """Say where a text goes wrong and what would be right there.

    Parameters
    ----------
    grammar : lark.Lark
    text : str
    error : lark.exceptions.UnexpectedInput
        What the grammar raised for the text.
    """
    before = text  # unless the error says where
    if error.line > 0 and error.column > 0:
        lines = text.split("\n")[: error.line]
        before = "\n".join([*lines[:-1], lines[-1][: error.column - 1]])
    rest = text[len(before) :].partition("\n")[0]
    names = getattr(error, "allowed", None) or getattr(error, "expected", None) or ()
    patterns = {terminal.name: terminal.pattern.value for terminal in grammar.terminals}
    signs = {patterns[name] for name in names}

    if "." in signs and (found := WORD.search(before)):
        word = found[1]
        is_class = word.lower() in schemas.class_names()
        if signs == {"."} or (is_class and not word.startswith("Ifc")):
            at = _at(before[: found.start(1)])
            return f"{at} {word!r} is no class, attribute or filter; {_hint(word)}"
        if is_class:  # it might be the name of an attribute or a set as well, which nobody means
            names = [name for name in names if patterns[name] in ("+", ",")]
    ends = f"it goes on with {rest[:SHOWN]!r}" if rest else "it ends"
    if before[-1:].isdigit() and rest[:1].isalpha():
        ends += "; a number is in the unit of the file and is written without a unit"
    return f"{_at(before)} {_expected(patterns, names)} must follow, but {ends}"


def _at(before: str) -> str:
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
    return f"at line {line}, column {column} of the selector"


def _expected(patterns: dict[str, str], names: Iterable[str]) -> str:
    """Say what terminals of a grammar are, those in words first."""
    known = {name: NAMED.get(name) or EXPECTED.get(patterns[name]) for name in names}
    words = {word for word in known.values() if word}
    signs = {patterns[name] for name in names if not known[name]}
    if "=" in signs:
        words.add("a comparison such as =")
        signs -= COMPARISONS
    return " or ".join([*sorted(words), *sorted(signs)]) or "nothing"


def _hint(word: str) -> str:
    """Say what someone may have meant who began a facet with a word that is none of its names."""
    if not re.fullmatch(r"\w+", word):
        return "facets are separated by , and lists of facets by +"
    if word.lower() in PLACES:
        return f'write location=X, or query:"{word.lower()}.Name"=X'
    if word.lower() in schemas.class_names():
        return f"the class is written {schemas.class_names()[word.lower()]}"
    written = {name.lower(): name for name in (*schemas.object_attributes(), *FILTERS)}
    written = {**schemas.class_names(), **written}
    if near := [written[name] for name in schemas.near_names(word.lower(), written)]:
        return f"near names are {', '.join(near)}"
    return f"filters are {', '.join(FILTERS)}, and a property is written Set.Property"
