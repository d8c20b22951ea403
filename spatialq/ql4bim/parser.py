"""Reads a script: from a text to statements and functions."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any, Literal

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.lark import PostLex

from spatialq.errors import ScriptError
from spatialq.io.ifc.schemas import near_names
from spatialq.ql4bim.syntax import (
    Call,
    Comparison,
    Constant,
    Formal,
    Function,
    IsA,
    Junction,
    Negation,
    Reference,
    Statement,
)
from spatialq.ql4bim.text import Span, Text

DEEPEST = 50
"""Brackets within brackets: what follows looks at them recursively."""
UNITS = {"mm": 0.001, "cm": 0.01, "m": 1.0, "km": 1000.0, "in": 0.0254, "ft": 0.3048, "deg": 1.0}
"""Lengths in metres; degrees."""
RESERVED = ("is", "and", "or", "not", "func", "true", "false", "unknown")
UNWRITABLE = re.compile("[\0\ud800-\udfff]")
"""Characters that SQL cannot hold."""
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
NUMBER = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)[ \t]*(\w*)")
EXPECTED = {
    "$END": "the end",
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a text in quotes",
    "SIGN": "a comparison such as =",
    "EQUAL": "=",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "VBAR": "|",
    "COMMA": ",",
    "DOT": ".",
}
"""What error sentences call the terminals, in the order in which they are told."""
MAX_EXPECTED = 4
"""If more would be right, a sentence tells none of them."""


class Nesting(PostLex):
    """Looks at the brackets between lexer and parser, and refuses too many of them."""

    def __init__(self) -> None:
        self.too_deep: Token | None = None

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Hand the tokens on."""
        depth = 0
        for token in stream:
            depth += (token.type == "LPAR") - (token.type == "RPAR")
            if depth > DEEPEST:
                raise NestedTooDeep(token)
            yield token


class NestedTooDeep(Exception):
    """There are more brackets within each other than a person can read."""


class NotAConstant(Exception):
    """A constant has no value that can be understood: the token and the reason."""


def parse(script: Text) -> tuple[list[Statement], list[Function]]:
    """Read a script.

    Raises
    ------
    ScriptError
        If it is none: where, and what would be right there.
    """
    if found := UNWRITABLE.search(script.text):
        at = found.start()
        reason = f"a script cannot hold the character U+{ord(found[0]):04X}"
        raise script.error(Span(at, at + 1), reason)
    try:
        parts = parser().parse(script.without_comments())
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        reason = _of_another_language(script.text[:at], script.text[at])
        raise script.error(Span(at, at + 1), reason or _unreadable(script.text[at:])) from None
    except UnexpectedToken as error:
        token = error.token
        end = len(script.text.rstrip())
        place = Span(end, end) if token.type == "$END" else token
        reason = _of_another_language(script.text[: place.start_pos], str(token.value))
        reason = reason or _unexpected(token, error.accepts or error.expected)
        raise script.error(place, reason) from None
    except NestedTooDeep as error:
        reason = f"brackets are nested more than {DEEPEST} deep"
        raise script.error(error.args[0], reason) from None
    except NotAConstant as error:
        raise script.error(*error.args) from None
    return (
        [part for part in parts if isinstance(part, Statement)],
        [part for part in parts if isinstance(part, Function)],
    )


def state(text: str) -> Literal["whole", "begun", "wrong"]:
    """Say whether a text is a script, would be one if it went on, or is wrong so far."""
    script = Text(text, "")
    try:
        parser().parse(script.without_comments())
    except UnexpectedToken as error:
        return "begun" if error.token.type == "$END" else "wrong"
    except UnexpectedCharacters as error:
        return "begun" if text[error.pos_in_stream or 0] == '"' else "wrong"
    except (NestedTooDeep, NotAConstant, ScriptError):
        return "wrong"
    return "whole"


@cache
def parser() -> Any:
    """Make the parser, which takes longer than to read a script."""
    grammar = files("spatialq.ql4bim").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", transformer=Syntax(), postlex=Nesting())


@v_args(inline=True)
class Syntax(Transformer[Token, Any]):
    """Makes the classes of `syntax` from what the parser finds."""

    def start(self, *parts: Any) -> tuple[Any, ...]:
        return parts

    def function(self, name: Token, _alias: Token | None, *parts: Any) -> Function:
        formals = tuple(part for part in parts if isinstance(part, Formal))
        _distinct("variables", [formal.name for formal in formals])
        return Function(name, formals, tuple(p for p in parts if isinstance(p, Statement)))

    def formal(self, name: Token, columns: tuple[Token, ...] | None) -> Formal:
        return Formal(_free(name), columns)

    def statement(self, name: Token, columns: tuple[Token, ...] | None, call: Call) -> Statement:
        return Statement(Formal(_free(name), columns), call)

    def columns(self, *names: Token | None) -> tuple[Token, ...]:
        return _distinct("columns", [_free(name) for name in names if name is not None])

    def call(self, operator: Token, *arguments: Any) -> Call:
        return Call(operator, tuple(each for each in arguments if each is not None))

    def any(self, *parts: Any) -> Junction:
        return Junction("or", parts)

    def all(self, *parts: Any) -> Junction:
        return Junction("and", parts)

    def negation(self, *parts: Any) -> Any:
        *nots, part = parts
        return Negation(part, nots[0]) if len(nots) % 2 else part

    def comparison(self, left: Any, sign: Token, right: Any) -> Comparison:
        return Comparison(left, sign, right)

    def is_a(self, left: Any, ifc_class: Token) -> IsA:
        return IsA(left, ifc_class)

    def of_variable(self, variable: Token, *parts: Any) -> Reference:
        column = parts[0][0] if parts and isinstance(parts[0], list) else None
        return Reference(variable, column, parts[1:] if column is not None else parts)

    def of_relation(self, column: list[Token], *path: Token) -> Reference:
        return Reference(None, column[0], path)

    def index(self, column: Token) -> list[Token]:
        return [column]

    def path(self, name: Token) -> Token:
        return name.update(value=_unescaped(name)) if name.type == "STRING" else name

    def constant(self, token: Token) -> Constant:
        match token.type:
            case "STRING":
                return Constant(_unescaped(token), None, token)
            case "NUMBER":
                return _number(token)
        return Constant({"true": True, "false": False}.get(token.value), None, token)


def _free(name: Token) -> Token:
    """Refuse a word of the language, or an operator's name, as the name of a variable."""
    if name in RESERVED:
        raise NotAConstant(name, f"{str(name)!r} is a word of the language and names no variable")
    if name[0].isupper():
        reason = f"variables and columns begin with a lower-case letter, got {str(name)!r}"
        raise NotAConstant(name, reason)
    return name


def _distinct(what: str, names: list[Token]) -> tuple[Token, ...]:
    """Refuse two names that differ in no more than the case of their letters."""
    for k, name in enumerate(names):
        if name.lower() in [each.lower() for each in names[:k]]:
            raise NotAConstant(name, f"two {what} are called {str(name)!r}")
    return tuple(names)


def _unescaped(token: Token) -> str:
    """Take the quotes off; a backslash is one but before a quote, n and another one."""
    text = str(token.value)[1:-1]
    if "\\" not in text:
        return text
    known = {'"': '"', "\\": "\\", "n": "\n"}
    return ESCAPED.sub(lambda found: known.get(found[1], found[0]), text)


def _number(token: Token) -> Constant:
    found = NUMBER.fullmatch(token.value)
    assert found is not None
    digits, unit = found[1], found[2] or None
    if unit is not None and unit not in UNITS:
        near = near_names(unit, UNITS) or list(UNITS)
        raise NotAConstant(token, f"no unit {unit!r}; there is {', '.join(near)}")
    number = float(digits)
    if not isfinite(number):
        raise NotAConstant(token, "the number is too large")
    is_whole = digits.lstrip("+-").isdecimal() and abs(number) < 2**53
    return Constant(int(digits) if is_whole else number, unit, token)


WORDS = ("AND", "OR", "NOT", "IS")
LAST_WORD = re.compile(r"([^\W\d]\w*)\s*$")
IS_NOT = re.compile(r"\bis\s+not\s*$")


def _of_another_language(before: str, token: str) -> str:
    """Say what to write instead of what SQL, Python and others have; '' if it is none of that."""
    last = LAST_WORD.search(before)
    for word in (token, last[1] if last else ""):
        if word in WORDS:
            return f"write {word.lower()} in lower case"
    if token == "=" and before.endswith("="):
        return "write = for =="
    if IS_NOT.search(before):
        return "write not before all of it: not d is IfcDoor"
    if token == "." and before.rstrip().endswith(")"):
        return "assign the call to a variable, whose attributes can be named then"
    return ""


def _unreadable(rest: str) -> str:
    if rest[0] == "'":
        return 'texts are in double quotes: "text"'
    if rest[0] == '"':
        return 'the text that begins here does not end with "'
    if rest.startswith("*/"):
        return "no comment begins before this */"
    return f"{rest[0]!r} means nothing here"


def _unexpected(token: Token, names: set[str]) -> str:
    got = "the script ends" if token.type == "$END" else f"{str(token.value)[:40]!r} stands here"
    expected = [EXPECTED[name] for name in EXPECTED if name in names]
    if "SIGN" in names and "EQUAL" not in names:
        expected = [each for each in expected if each not in ("the end", ".", "[")]
    if not expected or len(expected) > MAX_EXPECTED:
        return f"{got}, where something else must follow"
    return f"{got}, where {' or '.join(expected)} must follow"
