"""The questions of docs/cookbook.md: one answer in three ways, and one plan."""

import ast
import json
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

    @property
    def number(self):
        return int(self.title.split(".")[0])


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
    assert [question.number for question in QUESTIONS] == [*range(1, 21)]


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


@EACH
@pytest.mark.parametrize("way", ["python", "ql4bim"])
def test_one_plan(con, question, way):
    """The SQL is the handwritten one but for names, or else DuckDB makes the same plan of both."""
    if way == "python":
        written = query_of(con, question.python).sql()
    else:
        written = spatialq.run_script(con, question.ql4bim).sql()
    if words(written) != words(question.sql):
        differs = operators(con, written) != operators(con, question.sql)
        assert differs == ((question.number, way) in OTHER_PLANS), written


OTHER_PLANS = {}
"""Where the plan is another one, and why."""


def words(text):
    """The words of a statement; steps that are tables of their own are numbered in their order."""
    text = re.sub(r"\s+", " ", text).strip(" ;")
    names = re.findall(r"(?:^WITH|\),) (\w+) AS \(", text)
    found = re.findall(r"'(?:[^']|'')*'|\w+|[^\w\s]+", text)
    numbers = {name: f"step {k}" for k, name in enumerate(names)}
    return [numbers.get(word.strip("'"), word) for word in found]


def operators(con, text):
    """The operators of DuckDB's plan, but for those that only name columns."""
    ((_, plan),) = con.execute(f"EXPLAIN (FORMAT json) {text}").fetchall()
    found, waiting = Counter(), json.loads(plan)
    while waiting:
        node = waiting.pop()
        waiting.extend(node["children"])
        found[node["name"], node["extra_info"].get("Join Type")] += node["name"] != "PROJECTION"
    return found
