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


def newest_call(con):
    """When the last kernel was called; the log keeps a thousand calls, so that none are counted."""
    query = """SELECT coalesce(max("at"), '-infinity'::TIMESTAMP) FROM spatialq_log()"""
    ((at,),) = con.execute(query).fetchall()
    return at


def kernel_calls(con, since):
    """Which kernels ran after a call, on how many rows, and how often."""
    query = 'SELECT function, row_count FROM spatialq_log() WHERE "at" > ?'
    return Counter(con.execute(query, [since]).fetchall())


@EACH
def test_three_ways_give_the_same_rows(con, question):
    script = spatialq.run_script(con, question.ql4bim).result
    ways = con.sql(question.sql), query_of(con, question.python), script
    results, kernels = [], []
    for way in ways:
        before = newest_call(con)
        results.append(rows(way.columns, way.fetchall()))
        kernels.append(kernel_calls(con, before))
    assert results[0] == results[1] == results[2]
    assert kernels[0] == kernels[1] == kernels[2]
    assert results[0]
    compare(con, script, question.answer)


@EACH
@pytest.mark.parametrize("way", ["python", "ql4bim"])
def test_one_plan(con, question, way):
    """The SQL is the handwritten one but for names, or else DuckDB makes the same plan of both."""
    if way == "python":
        written = query_of(con, question.python).sql()
    else:
        written = spatialq.run_script(con, question.ql4bim).sql()
    written = without_mere_names(written.replace(OBJECTS_AND_MESHES, "read_ifc('house.ifc')"))
    if words(written) != words(question.sql):
        same = operators(con, written) == operators(con, question.sql)
        assert same or (question.number, way) in OTHER_PLANS, written


OBJECTS_AND_MESHES = (
    "read_ifc_objects('house.ifc') LEFT JOIN "
    "(SELECT file_name, step_id, mesh FROM read_ifc('house.ifc')) USING (file_name, step_id)"
)
"""The model of a script, all of whose objects have their attributes and a mesh if there is one."""
JSON = "the SQL reads the properties of an object as JSON, a script the table of all properties"
COUNTS = "a script counts what an inverse attribute leads to"
GREATEST = "the SQL ranks all values, a script compares each with the greatest"
DOMAINS = "a script looks up the objects in a column of a relation, in the set that they are from"
TIMES = "TimeResolver knows the tasks and times of IFC2x3, too"
FILES = "the builder hands a file to a function by its name, the SQL a query that reads its rows"
OTHER_PLANS = {
    (1, "ql4bim"): JSON,
    (3, "ql4bim"): GREATEST,
    (6, "ql4bim"): COUNTS,
    (7, "ql4bim"): DOMAINS,
    (9, "ql4bim"): TIMES,
    (16, "python"): FILES,
    (17, "ql4bim"): DOMAINS,
    (18, "python"): FILES,
    (19, "python"): FILES,
}
"""Where the plan may be another one, and why; the kernels have as much to do in all ways."""


def without_mere_names(text):
    """Leave out steps that only give a file a name."""
    for step in re.finditer(r"(\w+) AS \(\s*FROM (read_\w+\('[^']*'\))\s*\)(?:, |\s)", text):
        name, file = step.groups()
        if f"'{name}'" not in text and f"{name}." not in text:
            text = re.sub(rf"\bFROM {name}\b", f"FROM {file}", text.replace(step[0], ""))
    return re.sub(r"^WITH (?=FROM|SELECT)", "", text)


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
