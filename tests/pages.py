"""Pages of the documentation: their blocks, and what running these prints.

A block ```sql, ```python, ```sh or ```ql4bim runs. A block ```text right below is what it prints, a
block ```error the sentence that it raises. A script prints the rows of its last variable: the
columns that the text names, objects by their names, numbers to three decimals, in any order.
"""

import contextlib
import io
import re
import shlex
from collections import Counter
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest

import spatialq
from spatialq.cli import main as cli
from spatialq.cli.errors import plain

ROOT = Path(__file__).parents[1]
LANGUAGES = ("sql", "sh", "python", "ql4bim")
WIDTH = 100
"""Characters of a table in the documents."""
NOT_RUN = ("spatialq demo", "spatialq devices")
"""The first is what writes the files of the others (tests/demo/), the second differs everywhere."""


def blocks(text):
    """Language and text of each fenced block, and the block that is right below it."""
    found = list(re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    for block, below in zip_longest(found, found[1:]):
        close = below is not None and not text[block.end() : below.start()].strip()
        expected = below.groups() if below is not None and close else ("", "")
        yield block[1], block[2], *(expected if expected[0] in ("text", "error") else ("", ""))


def commands(text):
    """The commands of a block that are ours."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("spatialq ") and line not in NOT_RUN]


def cells(text):
    """What a table says, whatever its frame."""
    rows = [line for line in text.splitlines() if not re.fullmatch(r"[\W_]*", line) or "·" in line]
    return [[cell.strip() for cell in re.split("[│┃]", row)] for row in rows]


class Reader:
    """Runs the blocks of one page, one after the other."""

    def __init__(self, con):
        self.con = con
        self.names = {"con": con, "np": np, "spatialq": spatialq, "Path": Path}

    def sql(self, text):
        for statement in self.con.extract_statements(text):
            relation = self.con.sql(statement.query)
        if relation is not None:
            relation.show(max_width=WIDTH, max_rows=20)

    def sh(self, text):
        for command in commands(text):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("sys.argv", shlex.split(command))
                cli.main()

    def python(self, text):
        exec(text, self.names)

    def ql4bim(self, text):
        for query in spatialq.run_script(self.con, text).values():
            query.count()

    def check(self, language, text, kind, expected):
        """Run a block and compare what it says with the block below it."""
        if kind == "error":
            said = self.error(language, text)
            if language == "ql4bim":  # the lines and the caret count
                assert said == expected.rstrip(), text
            assert said.split() == expected.split(), text
        elif kind == "text" and language == "ql4bim":
            compare(self.con, spatialq.run_script(self.con, text).result, expected)
        else:
            printed = self.run(language, text)
            if kind == "text":
                assert cells(printed) == cells(expected), f"{text}\n{printed}"

    def run(self, language, text):
        """What it prints."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            getattr(self, language)(text)
        return printed.getvalue()

    def error(self, language, text):
        """The sentence that it raises."""
        if language == "sh":
            said = io.StringIO()
            with pytest.raises(SystemExit) as stop, contextlib.redirect_stderr(said):
                self.sh(text)
            assert stop.value.code in (1, 2)
            return said.getvalue().splitlines()[-1].removeprefix("error: ")
        with pytest.raises(Exception) as caught:  # noqa: PT011
            self.run(language, text)
        return plain(caught.value).removeprefix("Invalid Input Error: ")  # of error() in SQL


def compare(con, query, expected):
    """See whether a query gives the rows of a table in the documents, which names some columns."""
    header, *shown = (row[1:-1] for row in cells(expected) if len(row) > 1)
    places = [query.columns.index(name) for name in header]
    objects = con.execute("SELECT global_id, name FROM read_ifc_objects('house.ifc')")
    names = dict(objects.fetchall())
    rows = [[in_words(row[place], names) for place in places] for row in query.fetchall()]
    assert Counter(map(tuple, rows)) == Counter(map(tuple, shown[1:])), rows


def in_words(value, names):
    """Write a value as the documents do."""
    if value is None:
        return "NULL"
    return str(round(value, 3) if isinstance(value, float) else names.get(value, value))
