"""What a script consists of, as it is written: nothing is known yet of what names mean.

Names are tokens, which know where in the text they stand.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lark import Token


@dataclass(frozen=True)
class Constant:
    """A text, a number with its unit if it has one, true, false, or unknown, which is None."""

    value: str | int | float | bool | None
    unit: str | None
    token: Token


@dataclass(frozen=True)
class Reference:
    """A variable, a column of one, or what belongs to it: `s`, `s.Name`, `r[a].Set.Property`.

    Without a variable it is a column of the relation that stands before it: `[a]`, or `[1]`.
    """

    variable: Token | None
    column: Token | None
    path: tuple[Token, ...]

    @property
    def token(self) -> Token:
        """Where it begins."""
        return self.variable if self.variable is not None else self.column  # type: ignore[return-value]


@dataclass(frozen=True)
class Call:
    """An operator or a function with its arguments."""

    operator: Token
    arguments: tuple["Expression", ...]

    @property
    def token(self) -> Token:
        """Where it begins."""
        return self.operator


@dataclass(frozen=True)
class Comparison:
    """Two operands and a sign between them."""

    left: "Expression"
    sign: Token
    right: "Expression"

    @property
    def token(self) -> Token:
        """Where it begins."""
        return self.left.token


@dataclass(frozen=True)
class IsA:
    """Whether objects are of a class or of one of its subtypes."""

    left: "Expression"
    ifc_class: Token

    @property
    def token(self) -> Token:
        """Where it begins."""
        return self.left.token


@dataclass(frozen=True)
class Junction:
    """Conditions of which all hold, or any: the word between them is `and` or `or`."""

    word: str
    parts: tuple["Expression", ...]

    @property
    def token(self) -> Token:
        """Where it begins."""
        return self.parts[0].token


@dataclass(frozen=True)
class Negation:
    """A condition that does not hold."""

    part: "Expression"
    token: Token


Expression: TypeAlias = Constant | Reference | Call | Comparison | IsA | Junction | Negation
CONDITIONS = (Comparison, IsA, Junction, Negation)


@dataclass(frozen=True)
class Formal:
    """What a function or a statement calls a variable; the columns of a relation in brackets."""

    name: Token
    columns: tuple[Token, ...] | None


@dataclass(frozen=True)
class Statement:
    """The result of a call gets a name."""

    target: Formal
    call: Call


@dataclass(frozen=True)
class Function:
    """Statements over variables that the caller gives; the last one is the result."""

    name: Token
    formals: tuple[Formal, ...]
    statements: tuple[Statement, ...]


def references(expression: Expression) -> Iterator[Reference]:
    """Give the references in a condition, but not those in the arguments of calls."""
    match expression:
        case Reference():
            yield expression
        case Comparison(left, _, right):
            yield from references(left)
            yield from references(right)
        case IsA(left, _) | Negation(left, _):
            yield from references(left)
        case Junction(_, parts):
            for part in parts:
                yield from references(part)
