"""Every query that the pages and macros of planes show runs on a room under a roof."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from spatialq.udfs.detect_planes import Options

import spatialq
from spatialq.database.connection import macros

from .plane_points.cases import ROOF, ROOM, surfaces

ROOT = Path(__file__).parents[1]
PAGES = ("detect_planes", "plane_points")


@pytest.fixture(scope="module")
def con():
    points = [*surfaces(1, *ROOM), *surfaces(2, *ROOF)]
    columns = dict(zip("xyz", (np.array([p[k] for p in points]) for k in (1, 2, 3)), strict=True))
    classes = np.repeat([0, 6], [len(points) - 3000, 3000])
    rows = pa.table({"point_id": np.arange(len(points)), **columns, "classification": classes})
    with spatialq.connect() as con:
        con.register("cloud", rows)
        con.execute("CREATE TABLE points AS SELECT *, x > 3 AS tile FROM cloud")
        yield con


@pytest.mark.parametrize("page", PAGES)
def test_the_queries_of_a_page(con, page):
    blocks = re.findall(r"```sql\n(.*?)```", (ROOT / f"docs/{page}.md").read_text(), re.DOTALL)
    for statement in con.extract_statements("".join(blocks)):
        assert con.execute(statement.query).fetchall(), statement.query


def test_every_argument_is_on_the_page():
    text = (ROOT / "docs/detect_planes.md").read_text()
    for name in (*Options.__dataclass_fields__, "device"):
        assert f"`{name}`" in text, name


@pytest.mark.parametrize("name", [*PAGES, *(f"{page}_list" for page in PAGES)])
def test_a_macro_has_the_arguments_of_the_options(name):
    (macro,) = (macro for macro in macros() if macro.name == name)
    signature = macro.statement.split(") AS ")[0]
    named = re.findall(r"(\w+) := ", signature)
    assert named == [*Options.__dataclass_fields__, "device"]


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_the_macros(con, page):
    examples = [
        re.findall("example: (.*)", macro.comment)[0]
        for macro in macros()
        if macro.name in (page, f"{page}_list")
    ]
    assert len(examples) == 2
    for example in examples:
        assert con.execute(example).fetchall(), example
