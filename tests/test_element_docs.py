"""Every query that the pages and macros of elements show runs on the house."""

import re
from pathlib import Path

import pytest

import spatialq
from spatialq.database.connection import macros

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("intersects_with", "distance", "direction")
VIEWS = {
    "ducts": "IfcDuctSegment", "beams": "IfcBeam", "walls": "IfcWall", "slabs": "IfcSlab",
    "spaces": "IfcSpace", "furniture": "IfcColumn", "desks": "IfcColumn", "exits": "IfcDoor",
    "house": "IfcWall", "trees": "IfcColumn", "roof": "IfcRoof", "antennas": "IfcBeam",
    "old": "IfcSlab", "new": "IfcSlab",
}  # fmt: skip


@pytest.fixture(scope="module")
def con(world):
    with spatialq.connect() as con:
        spatialq.load(con, world.ifc)
        for view, ifc_class in VIEWS.items():
            con.execute(f"CREATE VIEW {view} AS FROM elements WHERE ifc_class = '{ifc_class}'")
        yield con


@pytest.mark.parametrize("page", PAGES)
def test_the_queries_of_a_page(con, page):
    blocks = re.findall(r"```sql\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)
    assert blocks
    for statement in con.extract_statements("".join(blocks)):
        con.execute(statement.query.replace("CREATE VIEW", "CREATE OR REPLACE VIEW")).fetchall()


@pytest.mark.parametrize("page", [*PAGES, "spatial_elements"])
def test_the_examples_of_the_macros(con, page):
    file = (DOCS.parent / "sql" / f"{page}.sql").read_text()
    examples = [
        (macro.name, example)
        for macro in macros()
        if macro.statement in file
        for example in re.findall("example: (.*)", macro.comment)
    ]
    assert len(examples) > 2
    for name, example in examples:
        assert f"{name}(" in example
        con.execute(example).fetchall()
