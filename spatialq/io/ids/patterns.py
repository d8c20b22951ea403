"""Regular expressions of XML Schema, as those of RE2, which takes linear time on any text.

The syntax is that of XML Schema Part 2, appendix F: a pattern matches the whole value, ``^`` and
``$`` are characters, and a class may have another one subtracted.
"""

import re
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

NOT_WORD = r"\p{P}\p{Z}\p{C}"
CLASSES = {
    "d": r"\p{Nd}",
    "s": r" \t\n\r",
    "i": r"_:\p{L}\p{Nl}",
    "c": r"\-._:\x{B7}\p{L}\p{N}\p{Mn}\p{Mc}",
}
"""What the escapes of several characters stand for, inside of brackets; \\w is all but NOT_WORD."""
BLOCKS = {
    "BasicLatin": (0x0000, 0x007F),
    "Latin-1Supplement": (0x0080, 0x00FF),
    "LatinExtended-A": (0x0100, 0x017F),
    "LatinExtended-B": (0x0180, 0x024F),
    "IPAExtensions": (0x0250, 0x02AF),
    "Greek": (0x0370, 0x03FF),
    "Cyrillic": (0x0400, 0x04FF),
    "Armenian": (0x0530, 0x058F),
    "Hebrew": (0x0590, 0x05FF),
    "Arabic": (0x0600, 0x06FF),
    "Thai": (0x0E00, 0x0E7F),
    "LatinExtendedAdditional": (0x1E00, 0x1EFF),
    "GeneralPunctuation": (0x2000, 0x206F),
    "CurrencySymbols": (0x20A0, 0x20CF),
    "Hiragana": (0x3040, 0x309F),
    "Katakana": (0x30A0, 0x30FF),
    "CJKUnifiedIdeographs": (0x4E00, 0x9FFF),
    "HangulSyllables": (0xAC00, 0xD7A3),
}
"""Blocks of Unicode that \\p{Is...} may name here."""
QUANTIFIER = re.compile(r"\{(\d+)(,(\d+)?)?\}")
MAX_REPEATS = 1000
"""Of RE2."""
PUNCTUATION = set("\\|.-^?*+{}()[]$/#&~'\"!%,:;<=>@_` ")
"""Characters that may stand after a backslash for themselves."""


class PatternError(ValueError):
    """A pattern is none of XML Schema: the message says why."""


class _Reader:
    """Translates a pattern from its beginning to its end."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        if self.at >= len(self.pattern):
            message = "it ends too early"
            raise PatternError(message)
        self.at += 1
        return self.pattern[self.at - 1]

    def read(self) -> str:
        """Translate all of it."""
        out: list[str] = []
        depth = 0
        has_atom = False  # whether a quantifier may follow
        while self.at < len(self.pattern):
            char = self.take()
            if char in "*+?{":
                if not has_atom:
                    message = f"'{char}' at character {self.at} follows nothing that it can repeat"
                    raise PatternError(message)
                out.append(self.quantifier() if char == "{" else char)
                has_atom = False
                continue
            has_atom = char not in "(|"
            if char == "(":
                depth += 1
                out.append("(?:")
            elif char == ")":
                depth -= 1
                if depth < 0:
                    message = f"')' at character {self.at} closes nothing"
                    raise PatternError(message)
                out.append(")")
            elif char == "|":
                out.append("|")
            elif char == ".":
                out.append(r"[^\n\r]")
            elif char == "[":
                out.append(self.bracket())
            elif char == "\\":
                out.append(f"[{self.escape()}]")
            elif char in "]}":
                message = f"'{char}' at character {self.at} closes nothing"
                raise PatternError(message)
            else:
                out.append(literal(char))
        if depth:
            message = "a '(' is not closed"
            raise PatternError(message)
        return "".join(out)

    def quantifier(self) -> str:
        found = QUANTIFIER.match(self.pattern, self.at - 1)
        if found is None:
            message = f"'{{' at character {self.at} begins no number of repeats, such as {{2,3}}"
            raise PatternError(message)
        numbers = [int(each) for each in (found[1], found[3]) if each]
        if max(numbers) > MAX_REPEATS or numbers != sorted(numbers):
            message = f"'{found[0]}': repeats must rise and be at most {MAX_REPEATS}"
            raise PatternError(message)
        self.at = found.end()
        return found[0]

    def escape(self) -> str:
        """Translate what follows a backslash, as it is inside of brackets."""
        char = self.take()
        if char in "ntr":
            return f"\\{char}"
        if char in "pP":
            return self.category(char)
        if char == "w":
            return ranges_of(f"[^{NOT_WORD}]")
        if char == "W":
            return NOT_WORD
        if char in CLASSES:
            return CLASSES[char]
        if char.lower() in CLASSES:
            return ranges_of(f"[^{CLASSES[char.lower()]}]")
        if char in PUNCTUATION:
            return literal(char)
        message = f"'\\{char}' is no escape of XML Schema"
        raise PatternError(message)

    def category(self, sign: str) -> str:
        found = re.compile(r"\{(\^?[A-Za-z0-9-]+)\}").match(self.pattern, self.at)
        if found is None:
            message = f"'\\{sign}' must name a category, such as \\p{{L}}"
            raise PatternError(message)
        self.at = found.end()
        name = found[1]
        if name.startswith("Is"):
            if name[2:] not in BLOCKS:
                message = f"the block of characters '{name}' is not known here"
                raise PatternError(message)
            first, last = BLOCKS[name[2:]]
            inside = f"\\x{{{first:X}}}-\\x{{{last:X}}}"
            return inside if sign == "p" else ranges_of(f"[^{inside}]")
        if not re.fullmatch(
            r"L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|Z[slp]?|S[mcko]?|C[cfon]?", name
        ):
            message = f"'{name}' is no category of characters"
            raise PatternError(message)
        return f"\\{sign}{{{name}}}"

    def bracket(self) -> str:
        """Translate a class, whose '[' is taken."""
        is_negated = self.peek() == "^"
        if is_negated:
            self.take()
        parts: list[str] = []
        less = ""
        is_first = True
        while (char := self.take()) != "]" or is_first:
            if char == "]":
                message = "a class '[]' is empty"
                raise PatternError(message)
            is_first = False
            if char == "[":
                message = f"'[' at character {self.at} must be written as '\\[' in a class"
                raise PatternError(message)
            if char == "-" and self.peek() == "[":
                self.take()
                less = self.bracket()
                if self.take() != "]":
                    message = "nothing may follow what is subtracted from a class"
                    raise PatternError(message)
                break
            parts.append(self.item(char))
        found = f"[{'^' * is_negated}{''.join(parts)}]"
        return f"[{ranges_of(found, less)}]" if less else found

    def item(self, char: str) -> str:
        """Translate a character of a class, or a range."""
        is_several = char == "\\" and self.peek() in "pPwWdDsSiIcC"
        first = self.escape() if char == "\\" else literal(char)
        if (
            is_several
            or self.peek() != "-"
            or self.pattern[self.at + 1 : self.at + 2] in ("]", "[")
        ):
            return first
        self.take()
        char = self.take()
        last = self.escape() if char == "\\" else literal(char)
        return f"{first}-{last}"


def literal(char: str) -> str:
    """Write a character so that RE2 takes it for itself, in brackets and outside."""
    return char if char.isalnum() and char.isascii() else f"\\x{{{ord(char):X}}}"


@cache
def _characters() -> pa.Array:
    """Give all characters, without surrogates."""
    codes = (*range(0xD800), *range(0xE000, 0x110000))
    return pa.array(map(chr, codes), pa.string())


@cache
def ranges_of(klass: str, less: str = "") -> str:
    """List the ranges of characters of a class of RE2, without those of another one."""
    there = is_match(_characters(), klass)
    if less:
        there &= ~is_match(_characters(), less)
    codes = np.flatnonzero(there)
    codes = np.where(codes < 0xD800, codes, codes + 0x800)
    if not codes.size:
        message = "a class has no character left"
        raise PatternError(message)
    breaks = np.flatnonzero(np.diff(codes) != 1)
    firsts = codes[np.concatenate(([0], breaks + 1))]
    lasts = codes[np.concatenate((breaks, [codes.size - 1]))]
    return "".join(
        f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in zip(firsts, lasts, strict=True)
    )


def is_match(texts: pa.Array, pattern: str) -> np.ndarray:
    """Tell which texts a pattern of RE2 matches as a whole."""
    found = pc.match_substring_regex(texts, pattern=rf"\A(?:{pattern})\z")
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


def translated(pattern: str) -> str:
    """Write a pattern of XML Schema as one of RE2.

    Raises
    ------
    PatternError
        If it is none, or needs more memory than RE2 takes.
    """
    found = _Reader(pattern).read()
    try:
        is_match(pa.array([""], pa.string()), found)
    except pa.ArrowInvalid as error:
        raise PatternError(str(error).split("\n", 1)[0]) from error
    return found
