"""`distance` as a job: the pairs of one call on the elements of all models."""

import pytest

import spatialq
from spatialq import cluster
from spatialq.cluster.methods import box_cells
from tests.cluster import models
from tests.conftest import made_once

CASES = {
    "all": {"max_distance": 0.3},
    "touching": {"max_distance": 0.0},
    "two sets": {"max_distance": 1.5, "a": "IfcWall", "b": "IfcSlab"},
    "related": {"max_distance": 0.5, "exclude": "default"},
}
IN_SQL = "FROM distance({a}, {b}, max_distance := {d}, exclude := '{related}')"


@pytest.fixture(scope="module")
def row(tmp_path_factory):
    return made_once(tmp_path_factory, "row_of_models", models.make)


@pytest.fixture(scope="module")
def con(row):
    with spatialq.connect() as con:
        spatialq.load(con, row / "house_01.ifc")
        for name in ("IfcWall", "IfcSlab"):
            query = f"SELECT * FROM elements WHERE is_a(ifc_class, '{name}')"
            con.execute(f"CREATE TABLE {name} AS {query}")
        yield con


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("cell_elements", [15, 4000])
def test_pairs_are_those_of_one_call(at_once, con, row, tmp_path, monkeypatch, name, cell_elements):
    options = CASES[name]
    monkeypatch.setattr(box_cells, "MOST_COPIES", 1.9)  # walls are as long as the house
    made = cluster.run(
        "distance", row / "house_01.ifc", tmp_path / "out", cell_elements=cell_elements, **options
    )
    a, b = options.get("a"), options.get("b")
    query = IN_SQL.format(
        a=f"'{a or 'elements'}'",
        b=f"'{b}'" if b else "NULL",
        d=options["max_distance"],
        related=options.get("exclude", "none"),
    )
    if a:
        query = query.replace("related := False", "related := false, relations := 'relations'")
    found = cluster.table(con, tmp_path / "out").sql_query()
    expected = con.sql(query)
    assert con.sql(found).columns == expected.columns
    assert models.rows_of(con, found) == models.rows_of(con, query)
    assert made["rows"] > 10
    assert (made["parts"] > 1) == (cell_elements == 15)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "max_distance must be a number of metres"),
        ({"max_distance": 1.0, "k": 3}, "k is no option of a job"),
        ({"max_distance": 1.0, "tile_size": 5.0}, "tile_size is for points"),
        ({"max_distance": 1.0, "closer_than": 5.0}, "no option 'closer_than'"),
    ],
)
def test_wrong_options(row, tmp_path, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        cluster.run("distance", row / "house_01.ifc", tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
