"""The text of a script, and errors that show the place in it."""

import os
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from spatialq.errors import FileError, ScriptError
from spatialq.io import access

COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*|\*/', re.DOTALL)
"""What begins or ends a comment, and texts, in which these mean nothing."""
INNER = re.compile(r"/\*|\*/")
UNSHOWN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that a terminal does not show, or takes for commands."""
RUNNER = "run_script"
SUFFIX = ".ql4bim"
FILE = re.compile(r"[^=\n\"()]*[\w/\\]\.\w+")
"""A text that is the name of a file, and no script."""
SHOWN = 100
"""Characters of a line that an error shows; the place is among them."""


class Place(Protocol):
    """Where something stands: what tokens of the parser know."""

    @property
    def start_pos(self) -> int | None:
        """Where it begins."""

    @property
    def end_pos(self) -> int | None:
        """Where the next thing begins."""


@dataclass(frozen=True)
class Span:
    """A place that is no token."""

    start_pos: int
    end_pos: int


def read_script(script: str | os.PathLike[str]) -> tuple[str, str]:
    """Give the text of a script, and what errors call it.

    Raises
    ------
    FileError
        If it is a file that cannot be read, or must not be.
    """
    if isinstance(script, str) and not ("\n" not in script and script.endswith(SUFFIX)):
        if FILE.fullmatch(script):
            reason = f"this is no script; the name of one's file ends in {SUFFIX}, or is a Path"
            raise FileError.of(RUNNER, Path(script), reason)
        return script, "<script>"
    path = Path(script)
    access.require(RUNNER, path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise FileError.of(RUNNER, path, reason) from None
    if text.startswith("ISO-10303-21;"):
        reason = "this is a building model, no script; a script names it: ImportModel(...)"
        raise FileError.of(RUNNER, path, reason)
    return text, str(path)


@dataclass(frozen=True)
class Text:
    """A script and what errors call it."""

    text: str
    name: str

    def without_comments(self) -> str:
        """Give the text with blanks for comments, so that all else stays where it is.

        Raises
        ------
        ScriptError
            If a comment does not end.
        """
        kept, done = [], 0
        while found := COMMENT.search(self.text, done):
            if found[0][0] == '"' or found[0] == "*/":
                end = found.end()
                kept.append(self.text[done:end])
            else:
                end = found.end() if found[0] != "/*" else self._end_of_comment(found.start())
                kept.append(self.text[done : found.start()])
                kept.append(re.sub(r"[^\n]", " ", self.text[found.start() : end]))
            done = end
        return "".join([*kept, self.text[done:]])

    def _end_of_comment(self, start: int) -> int:
        depth, at = 1, start + 2
        while depth:
            found = INNER.search(self.text, at)
            if found is None:
                place = Span(start, start + 2)
                raise self.error(place, "the comment that begins here does not end with */")
            depth += 1 if found[0] == "/*" else -1
            at = found.end()
        return at

    def error(self, place: Place, reason: str) -> ScriptError:
        """Make an error that shows its place with carets under it."""
        start = place.start_pos or 0
        before = self.text[:start]
        line, line_start = before.count("\n") + 1, before.rfind("\n") + 1
        whole = self.text[line_start:].partition("\n")[0].rstrip("\r")
        column = start - line_start + 1
        skipped = max(0, column - SHOWN // 2) if len(whole) > SHOWN else 0
        shown = UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", whole[skipped : skipped + SHOWN])
        ahead = shown[: column - 1 - skipped]
        marked = shown[len(ahead) : max(place.end_pos or 0, start + 1) - line_start - skipped]
        blanks = "".join(each if each == "\t" else " " * width(each) for each in ahead)
        carets = "^" * max(sum(map(width, marked)), 1)
        head = f"{self.name}:{line}:{column}: {reason}"
        return ScriptError(f"{head}\n    {shown}\n    {blanks}{carets}", line, column, reason)


def width(sign: str) -> int:
    """Say how many columns of a terminal a character takes."""
    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1
