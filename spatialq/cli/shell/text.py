"""What was typed so far: its language, whether it is complete, what the cursor is in."""

import re
from collections.abc import Collection, Iterator
from typing import Literal

Language = Literal["nothing", "command", "name", "sql", "script"]

BLANK = r"(?:\s+|--[^\n]*|//[^\n]*|/\*.*?\*/)*"
START = re.compile(BLANK, re.DOTALL)
SCRIPT = re.compile(r"(?:func\s+\w|[^\W\d]\w*\s*(?:\[[^\]]*\]?)?\s*=(?!=))")
"""How a statement of a script begins; no statement of SQL begins so."""
NAME = re.compile(rf"([^\W\d]\w*){BLANK};?{BLANK}\Z", re.DOTALL)
"""A word alone."""
WORD = re.compile(r"\w+")
SCRIPT_WORDS = ("and", "false", "func", "is", "not", "or", "true", "unknown")
"""The words of scripts that are no names."""
WORDS = r"(?P<word>\w+)|(?P<sign>\S)"
PARTS = {
    "sql": re.compile(
        r"""(?P<comment>--[^\n]*|/\*.*?\*/)
        |(?P<quoted>'[^']*'|"[^"]*"|\$\$.*?\$\$)
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
"""The parts of a text; a string or a comment that does not end is open.

A quote that is doubled within a string of SQL ends one and begins another, which is all the same.
"""


def language(text: str, variables: Collection[str] = ()) -> Language:
    """Tell what was typed by its first words: a command, a name alone, SQL or a script.

    Parameters
    ----------
    text : str
    variables : collection of str
        Words that are names, although they may be keywords of SQL.
    """
    start = START.match(text)
    assert start is not None  # it may be empty
    if start.end() == len(text):
        return "nothing"
    if text.startswith(".", start.end()):
        return "command"
    if SCRIPT.match(text, start.end()):
        return "script"
    name = NAME.match(text, start.end())
    return "name" if name and (name[1] in variables or not is_keyword(name[1])) else "sql"


def name_in(text: str) -> str:
    """Give the name that a text of the language `name` consists of."""
    start = START.match(text)
    name = start and NAME.match(text, start.end())
    assert name is not None
    return name[1]


def is_keyword(word: str) -> bool:
    """Whether a word is a keyword of SQL; every statement of SQL begins with one."""
    import duckdb

    return duckdb.tokenize(word)[0][1] == duckdb.token_type.keyword


def is_complete(text: str, variables: Collection[str] = ()) -> bool:
    """Whether a text can be run, since it is complete, or wrong whatever may follow."""
    typed = Typed(variables)
    typed.add(text)
    return typed.is_complete


class Typed:
    """What was typed since the last statement; each line is looked at when it comes.

    Parameters
    ----------
    variables : collection of str
        The variables that there are.
    """

    def __init__(self, variables: Collection[str] = ()) -> None:
        self.text = ""
        self._variables = variables
        self._kind: Language = "nothing"
        self._open, self._last, self._depth = "", "", 0

    def add(self, line: str) -> None:
        """Add a line."""
        self.text += line
        self._kind = language(self.text, self._variables)
        parts = [*_parts(self._open + line, self._kind)]
        self._open = ""
        for name, part in parts:
            if name == "open":
                self._open = part
            elif name != "comment":
                self._last = part
                self._depth += (part in ("(", "[")) - (part in (")", "]"))

    @property
    def is_complete(self) -> bool:
        """Whether the text can be run.

        SQL ends with a semicolon, a script where its grammar has all that it wants. What begins
        like nothing that there is can be run too: what follows would not make it right.
        """
        if self._kind == "sql":
            return not self._begins_sql() or (not self._open and self._last == ";")
        if self._kind == "script":
            return not self._open and self._depth <= 0 and _state(self.text) != "begun"
        return True

    def is_ended_by(self, line: str) -> bool:
        """Whether a script is not complete, and the line belongs to the next statement.

        The line begins like a statement, and the script would be wrong with it. A text in quotes
        ends there too: one that was meant to go on is rarer than a quote that was forgotten.
        """
        if self._kind != "script" or not _begins_statement(line):
            return False
        is_body = self._depth == 1 and WORD.search(self.text)[0] == "func"  # type: ignore[index]
        if is_body and language(line) == "script":
            return False
        return self._open.startswith('"') or _state(self.text + line) == "wrong"

    def _begins_sql(self) -> bool:
        start = START.match(self.text)
        assert start is not None
        word = WORD.match(self.text, start.end())
        if word is None:  # such as a bracket, or a comment that is open
            return self.text.startswith(("(", "/*"), start.end())
        return is_keyword(word[0])


def _begins_statement(line: str) -> bool:
    word = WORD.match(line)
    if word is None:
        return line.startswith(".")
    return language(line) == "script" or (word[0] not in SCRIPT_WORDS and is_keyword(word[0]))


def _state(script: str) -> str:
    from spatialq.ql4bim.parser import state

    return state(script.rstrip().removesuffix(";"))


def open_quote(text: str) -> str | None:
    """Give what is in the string that is still open at the end; None where none is."""
    *_, (name, last) = [("", ""), *_parts(text, language(text))]
    return last[1:] if name == "open" and not last.startswith("/*") else None


def _parts(text: str, kind: Language) -> Iterator[tuple[str, str]]:
    """Give the kind and the text of each part: comments, strings, words and signs."""
    pattern = PARTS["script" if kind == "script" else "sql"]
    return ((match.lastgroup or "", match[0]) for match in pattern.finditer(text))
