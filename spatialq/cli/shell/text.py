"""What was typed so far: its language, whether it is complete, what the cursor is in."""

import re
from collections.abc import Iterator
from typing import Literal

Language = Literal["nothing", "command", "sql", "script"]

BLANK = re.compile(r"(?:\s+|--[^\n]*|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
SCRIPT = re.compile(r"(?:func\s+[A-Z]|[^\W\dA-Z]\w*\s*(?:\[[^\]]*\]?)?\s*=(?!=))")
"""How a statement of a script begins; no statement of SQL begins so."""
WORDS = r"(?P<word>\w+)|(?P<sign>\S)"
PARTS = {
    "sql": re.compile(
        r"""(?P<comment>--[^\n]*|/\*.*?\*/)
        |(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\$.*?\$\$)
        |(?P<open>(?:/\*|'|"|\$\$).*)|"""
        + WORDS,
        re.DOTALL | re.VERBOSE,
    ),
    "script": re.compile(
        r"""(?P<comment>//[^\n]*|/\*.*?\*/)
        |(?P<quoted>"(?:[^"\\]|\\.)*")
        |(?P<open>(?:/\*|").*)|"""
        + WORDS,
        re.DOTALL | re.VERBOSE,
    ),
}
"""The parts of a text; a string or a comment that does not end is open."""


def language(text: str) -> Language:
    """Tell comments, a command of the shell, SQL and a script apart by their first words."""
    if text.lstrip().startswith("."):
        return "command"
    start = BLANK.match(text)
    assert start is not None  # it may be empty
    if start.end() == len(text):
        return "nothing"
    return "script" if SCRIPT.match(text, start.end()) else "sql"


def is_complete(text: str) -> bool:
    """Whether a text can be run: SQL ends with a semicolon, a script where its brackets close."""
    kind = language(text)
    if kind in ("nothing", "command"):
        return True
    parts = [(name, part) for name, part in _parts(text, kind) if name != "comment"]
    if parts[-1][0] == "open":
        return False
    words = [part for _, part in parts]
    return words[-1] == ";" if kind == "sql" else _is_complete_script(words)


def open_quote(text: str) -> str | None:
    """Give what is in the string that is still open at the end; None where none is."""
    *_, (name, last) = [("", ""), *_parts(text, language(text))]
    return last[1:] if name == "open" and not last.startswith("/*") else None


def _parts(text: str, kind: Language) -> Iterator[tuple[str, str]]:
    """Give the kind and the text of each part: comments, strings, words and signs."""
    pattern = PARTS["script" if kind == "script" else "sql"]
    return ((match.lastgroup or "", match[0]) for match in pattern.finditer(text))


def _is_complete_script(parts: list[str]) -> bool:
    """Whether every assignment has its call, and every function its body."""
    depth = wanted = calls = 0
    for part in parts:
        if part in ("(", "["):
            depth += 1
        elif part in (")", "]"):
            depth -= 1
            calls += part == ")" and depth == 0
        elif depth == 0:
            wanted += {"=": 1, "func": 2}.get(part, 0)
    return depth < 0 or (depth == 0 and calls >= wanted)
