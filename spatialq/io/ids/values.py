"""What an IDS says a value may be: a simple value, or a restriction of XML Schema."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.io.ids.patterns import is_match

EPSILON = Decimal("1e-6")
"""Of the equality of numbers, relative and absolute."""
CLEAR = 1e-9
"""A float that is off by more than this part of the tolerance needs no exact comparison."""

BASES = {
    "xs:anyURI": re.compile(r"\S+"),
    "xs:boolean": re.compile(r"true|false|0|1"),
    "xs:date": re.compile(r"\d{4}-\d{2}-\d{2}(Z|[+-]\d{2}:\d{2})?"),
    "xs:dateTime": re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?"),
    "xs:double": re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|NaN|\+?INF|-INF"),
    "xs:duration": re.compile(
        r"[-+]?P(?=.)(\d+Y)?(\d+M)?(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?"
    ),
    "xs:integer": re.compile(r"[+-]?\d+"),
    "xs:string": re.compile(r"(?s).*"),
    "xs:time": re.compile(r"\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?"),
}
"""How a value of each type of XML is written, by the table of base types of IDS 1.0."""
SAME_BASE = {"xs:float": "xs:double", "xs:decimal": "xs:double", "xs:anyUri": "xs:anyURI"}
BOUNDS = ("minInclusive", "minExclusive", "maxInclusive", "maxExclusive")
LENGTHS = ("length", "minLength", "maxLength")
ORDERED = {"xs:date", "xs:dateTime", "xs:double", "xs:duration", "xs:integer", "xs:time"}
"""Types that have bounds."""
COUNTED = {"xs:string", "xs:anyURI"}
"""Types that have lengths."""
MOST_SAID = 20
"""Values of an enumeration, and patterns, that a sentence names; a file may have thousands."""
LONGEST = 200
"""Characters of a text that a sentence quotes."""
TRUTH = {"true": True, "1": True, "false": False, "0": False}
SECONDS = {"Y": 31_556_952, "M": 2_629_746, "W": 604_800, "D": 86_400}
OF_TIME = {"H": 3600, "M": 60, "S": 1}

Known = str | bool | int | float
"""A value of a model; numbers in SI units."""


@dataclass(frozen=True)
class Value:
    """What a value may be.

    Parameters
    ----------
    line : int
        Of the file.
    simple : str, optional
        The one value; None for a restriction.
    base : str, optional
        The type of the restriction, such as ``xs:string``.
    enumeration : tuple of str
        Values of which it must be one, if there are any.
    patterns : tuple of (str, str)
        Patterns of which it must match one, and what RE2 makes of them.
    bounds : dict from str to str
        By `BOUNDS`.
    lengths : dict from str to int
        By `LENGTHS`.
    """

    line: int
    simple: str | None = None
    base: str | None = None
    enumeration: tuple[str, ...] = ()
    patterns: tuple[tuple[str, str], ...] = ()
    bounds: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)

    @property
    def given(self) -> tuple[str, ...]:
        """The values that it names."""
        return self.enumeration if self.simple is None else (self.simple,)

    @property
    def is_range(self) -> bool:
        """Whether it has bounds."""
        return bool(self.bounds)

    def of_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Tell which texts it allows."""
        if self.simple is not None:
            return np.fromiter((text == self.simple for text in texts), bool, len(texts))
        allowed = np.ones(len(texts), bool)
        if self.enumeration:
            known = set(self.enumeration)
            allowed &= np.fromiter((text in known for text in texts), bool, len(texts))
        if self.patterns:
            array = pa.array(texts, pa.string())
            matched = [is_match(array, pattern) for _, pattern in self.patterns]
            allowed &= np.logical_or.reduce(matched)
        if self.lengths:
            sizes = np.fromiter(map(len, texts), np.int64, len(texts))
            allowed &= sizes == self.lengths.get("length", sizes)
            allowed &= sizes >= self.lengths.get("minLength", 0)
            allowed &= sizes <= self.lengths.get("maxLength", np.iinfo(np.int64).max)
        if self.bounds:
            allowed &= np.fromiter((self._is_between(text) for text in texts), bool, len(texts))
        return allowed

    def of_values(self, values: Sequence[Known]) -> np.ndarray:
        """Tell which values of a model it allows: numbers with the tolerance of the standard.

        Patterns and lengths are of texts: no number has them.
        """
        allowed = np.zeros(len(values), bool)
        at = [i for i, value in enumerate(values) if isinstance(value, str)]
        if at:
            allowed[at] = self.of_texts([str(values[i]) for i in at])
        for i, value in enumerate(values):
            if not isinstance(value, str):
                allowed[i] = self._is_allowed(value)
        return allowed

    def _is_allowed(self, value: Known) -> bool:
        if self.simple is not None:
            return is_same(value, self.simple)
        if self.enumeration and not any(is_same(value, each) for each in self.enumeration):
            return False
        if self.patterns and (
            not isinstance(value, bool) or not self.of_texts([str(value).lower()]).any()
        ):
            return False
        return not self.lengths and self._is_between(value)

    def _is_between(self, value: Known) -> bool:
        """Tell whether a value is within the bounds; on a bound is what equals it."""
        for name, bound in self.bounds.items():
            found = compared(value, bound, self.base)
            if found is None:
                return False
            wanted = -1 if name.startswith("max") else 1
            if found != wanted and not (found == 0 and name.endswith("Inclusive")):
                return False
        return True

    def within(self, lower: Known | None, upper: Known | None) -> bool:
        """Tell whether all values between two are within the bounds; None is without end."""
        ends = (("min", lower), ("max", upper))
        if any(end is None and name.startswith(side) for side, end in ends for name in self.bounds):
            return False
        there = [end for _, end in ends if end is not None]
        return bool(there) and all(self._is_allowed(end) for end in there)

    def is_between(self, lower: Known | None, upper: Known | None) -> bool:
        """Tell whether one of the numbers that it names is between two; None is without end."""
        return any(
            float_of(text) is not None
            and (lower is None or compared(lower, text, None) in (-1, 0))
            and (upper is None or compared(upper, text, None) in (0, 1))
            for text in self.given
        )

    def __str__(self) -> str:
        """Say it as the end of a sentence: 'Foo', one of 'Foo', 'Bar', >= 1 and < 2."""
        if self.simple is not None:
            return quoted(self.simple)
        said = []
        if self.enumeration:
            names = _listed(self.enumeration, ", ")
            said.append(f"one of {names}" if len(self.enumeration) > 1 else names)
        if self.patterns:
            said.append("matching " + _listed([source for source, _ in self.patterns], " or "))
        signs = dict(zip(BOUNDS, (">=", ">", "<=", "<"), strict=True))
        said += [f"{signs[name]} {bound}" for name, bound in self.bounds.items()]
        words = {"length": "of", "minLength": "of at least", "maxLength": "of at most"}
        said += [f"{words[name]} {size} characters" for name, size in self.lengths.items()]
        return " and ".join(said) or "anything"


def quoted(text: str) -> str:
    """Give a text in quotes, of a long one the beginning."""
    return f"'{text}'" if len(text) <= LONGEST else f"'{text[:LONGEST]}…'"


def _listed(texts: Sequence[str], separator: str) -> str:
    """Name the first of some texts, and how many more there are."""
    named = separator.join(map(quoted, texts[:MOST_SAID]))
    more = len(texts) - MOST_SAID
    return f"{named} and {more:,} more" if more > 0 else named


def is_same(value: Known, text: str) -> bool:
    """Tell whether a value of a model is what a text of an IDS says."""
    if isinstance(value, str):
        return value == text
    if isinstance(value, bool):
        return TRUTH.get(text) is value
    return compared(value, text, None) == 0


def compared(value: Known, text: str, base: str | None) -> int | None:
    """Tell whether a value is less than a text says (-1), equal to it (0), or greater (1).

    Floats are equal within 1e-6 of the number plus 1e-6, ends included, and of whole numbers only
    the same are. None where the two cannot be compared.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        one, other = _place(value, base), _place(text, base)
        if one is None or other is None:
            return None
        return int(one > other) - int(one < other)
    number = float_of(text)
    if number is None or math.isnan(value):
        return None
    if isinstance(value, int) and BASES["xs:integer"].fullmatch(text):
        whole = int(text)
        return (value > whole) - (value < whole)
    if _is_near(float(value), number, text):
        return 0
    return 1 if value > number else -1


def _is_near(value: float, number: float, text: str) -> bool:
    """Tell whether two numbers are equal within the tolerance: exactly, where floats may err."""
    if math.isinf(value) or math.isinf(number):
        return value == number
    room = (abs(number) + 1) * float(EPSILON)
    off = abs(value - number)
    if abs(off - room) > CLEAR * (abs(number) + 1):
        return off < room
    exact = Decimal(text)
    return abs(Decimal(repr(value)) - exact) <= abs(exact) * EPSILON + EPSILON


@lru_cache(1024)
def float_of(text: str) -> float | None:
    """Read a number as XML writes it; None if it is none."""
    if not BASES["xs:double"].fullmatch(text):
        return None
    try:
        return float(Decimal(text)) if text[-1] not in "NF" else float(text.replace("INF", "inf"))
    except (InvalidOperation, OverflowError, ValueError):
        return None


def _place(text: str, base: str | None) -> Any:
    """Give a date, time or duration as something to compare; None if it is none."""
    if base == "xs:duration":
        return seconds_of(text)
    try:
        if base == "xs:date":
            return date.fromisoformat(text[:10])
        if base in ("xs:dateTime", "xs:time"):
            found = (datetime if base == "xs:dateTime" else time).fromisoformat(text)
            return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    except ValueError:
        return None
    number = float_of(text)
    return None if number is None or math.isnan(number) else number


def seconds_of(text: str) -> float | None:
    """Give the length of a duration; years and months are mean ones."""
    if not BASES["xs:duration"].fullmatch(text):
        return None
    days, _, hours = text.lstrip("+-").removeprefix("P").partition("T")
    found = sum(float(n) * SECONDS[unit] for n, unit in re.findall(r"([\d.]+)([A-Z])", days))
    found += sum(float(n) * OF_TIME[unit] for n, unit in re.findall(r"([\d.]+)([A-Z])", hours))
    return -found if text.startswith("-") else found
