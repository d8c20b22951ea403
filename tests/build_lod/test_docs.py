"""Every query and command that the pages and macros of levels of detail show runs."""

import re
import shlex
from pathlib import Path

import laspy
import numpy as np
import pytest
from spatialq.udfs.build_lod import SAMPLE, UDF, Options

import spatialq
from spatialq.cli import main as cli
from spatialq.database.connection import macros
from spatialq.export.camera import Camera

ROOT = Path(__file__).parents[2]
PAGES = ("build_lod", "lod_select")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """scan.laz and tile.laz: 60,000 points of a hill; tiles/ with two halves of it."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "tiles").mkdir()
    rng = np.random.default_rng(4)
    x, y = rng.uniform(0, 100, (2, 60_000))
    rgb = rng.integers(0, 65536, (3, x.size))
    for name, mine in (
        ("scan.laz", x >= 0),
        ("tile.laz", x >= 0),
        ("forest.laz", x >= 0),
        ("tiles/a.laz", x < 50),
        ("tiles/b.laz", x >= 50),
    ):
        cloud = laspy.LasData(laspy.LasHeader(point_format=7, version="1.4"))
        cloud.x, cloud.y, cloud.z = x[mine], y[mine], 20 * np.sin(x[mine] / 20)
        cloud.red, cloud.green, cloud.blue = rgb[:, mine]
        cloud.write(folder / name)
    return folder


@pytest.fixture
def con(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with spatialq.connect() as con:
        con.execute("CREATE TABLE points AS FROM read_las('scan.laz')")
        con.execute("CREATE TABLE lod AS FROM build_lod('points', max_points := 5000)")
        yield con


def code(page, language):
    text = (ROOT / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_queries_of_a_page(con, page):
    for statement in con.extract_statements("".join(code(f"docs/{page}.md", "sql"))):
        assert con.execute(statement.query).fetchall(), statement.query


def test_the_queries_of_the_readme(con):
    queries = [text for text in code("README.md", "sql") if "lod" in text]
    assert len(queries) == 3
    for query in queries:
        assert con.execute(query).fetchall(), query


@pytest.mark.parametrize("page", ["docs/build_lod.md", "docs/cli.md", "README.md"])
def test_the_commands(folder, monkeypatch, page):
    monkeypatch.chdir(folder)
    lines = [line for line in "".join(code(page, "sh")).splitlines() if "spatialq lod " in line]
    assert lines
    for line in lines:
        monkeypatch.setattr("sys.argv", shlex.split(line))
        cli.main()


def test_a_viewer_draws_the_samples_of_its_octants(con):
    (query,) = (each for each in code("docs/lod_select.md", "sql") if "WITH needed" in each)
    query = query.replace("[50, 50, 0]})", "[50, 50, 0]}, pixels := 8)")
    drawn = sorted(con.execute(query).fetchall())
    (needed,) = re.findall(r"WITH needed AS \((FROM .*)\)\n", query)
    expected = []
    for row in con.sql(needed).to_arrow_table().to_pylist():
        middle = {axis: row[f"{axis}min"] + row["size"] / 2 for axis in "xyz"}
        for sample in row["samples"]:
            x, y, z = (sample[axis] >= middle[axis] for axis in "xyz")
            if row["octants"] >> (4 * x + 2 * y + z) & 1:
                expected.append(tuple(sample[n] for n in (*"xyz", "red", "green", "blue")))
    assert 0 < len(drawn) < con.sql(f'SELECT sum("count") FROM ({needed})').fetchall()[0][0]
    assert drawn == sorted(expected)


def test_every_argument_field_and_column_is_on_its_page():
    text = (ROOT / "docs/build_lod.md").read_text()
    for name in (*Options.__dataclass_fields__, "device"):
        assert f"| `{name}` |" in text, name
    for name in (*UDF.returns, *SAMPLE):
        assert re.search(rf"`[^`]*\b{name}\b[^`]*`", text), name
    text = (ROOT / "docs/lod_select.md").read_text()
    for name in (*Camera.__dataclass_fields__, "pixels", "max_samples", "octants"):
        assert f"`{name}`" in text, name


@pytest.mark.parametrize("name", ["build_lod", "build_lod_list"])
def test_a_macro_has_the_arguments_of_the_options(name):
    (macro,) = (macro for macro in macros() if macro.name == name)
    named = re.findall(r"(\w+) := ", macro.statement.split(") AS ")[0])
    assert named[-6:] == [*Options.__dataclass_fields__, "device"]


@pytest.mark.parametrize("name", ["build_lod", "build_lod_list", "lod_select"])
def test_the_examples_of_the_macros(con, name):
    con.execute("CREATE TABLE tiles AS SELECT *, x > 50 AS tile FROM points")
    examples = [
        example.replace("FROM points GROUP", "FROM tiles GROUP")
        for macro in macros()
        if macro.name == name
        for example in re.findall("example: (.*)", macro.comment)
    ]
    assert examples
    for example in examples:
        assert con.execute(example).fetchall(), example
