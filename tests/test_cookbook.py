"""The questions of docs/cookbook.md: one answer in three ways, and one plan."""

import ast
import re
from collections import Counter
from typing import NamedTuple

import pytest

import spatialq

from .pages import ROOT, blocks, compare

pytestmark = pytest.mark.slow


class Question(NamedTuple):
    """A question, asked in three ways, and its answer."""

    title: str
    sql: str
    python: str
    ql4bim: str
    answer: str


def read_questions():
    """Read the page; each section that begins with a number is a question."""
    for section in (ROOT / "docs/cookbook.md").read_text().split("\n### ")[1:]:
        title, text = section.split("\n", 1)
        found = {language: block for language, block, *_ in blocks(text)}
        assert list(found) == ["sql", "python", "ql4bim", "text"], title
        yield Question(title, *found.values())


QUESTIONS = list(read_questions())
EACH = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.title)


@pytest.fixture
def con(world, monkeypatch):
    """A connection in the folder of the demo's files."""
    monkeypatch.chdir(world.las.parent)
    with spatialq.connect() as con:
        yield con


def query_of(con, text):
    """Run Python as the page shows it and give the query that its last line makes."""
    names = {"con": con, "spatialq": spatialq}
    exec(text, names)
    (target,) = ast.parse(text).body[-1].targets
    return names[target.id]


def rows(names, found):
    """Rows as what stands in which column, in whatever order."""
    return Counter(repr(sorted(zip(names, row, strict=True))) for row in found)


def test_there_are_twenty():
    assert [question.title.split(".")[0] for question in QUESTIONS] == [str(k) for k in range(1, 21)]


@EACH
def test_three_ways_give_the_same_rows(con, question):
    relation = con.sql(question.sql)
    by_hand = rows(relation.columns, relation.fetchall())
    query = query_of(con, question.python)
    assert rows(query.columns, query.fetchall()) == by_hand
    script = spatialq.run_script(con, question.ql4bim)
    assert rows(script.result.columns, script.result.fetchall()) == by_hand
    assert by_hand
    compare(con, script.result, question.answer)
