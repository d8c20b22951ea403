"""Storeys of several models under one name: by their elevations, or where elements are."""

from random import Random

import pytest

import spatialq
from spatialq import cluster
from spatialq.workflows.clash import find_clashes

from .command_line import rows
from .io.ifc_models import Builder


def model(tmp_path, name, unit, storeys):
    """Write a model with a wall of 2.5 m in each storey, at its height above it."""
    builder = Builder(unit=unit)
    for storey, elevation, height in storeys:
        builder.storey_at(storey, elevation)
        builder.add("IfcWall", f"{name} {storey}", [builder.box((0, 0, height), (4, 0.2, 2.5))])
    return builder.write(tmp_path / f"{name}.ifc")


@pytest.mark.slow
def test_storeys_of_several_models_are_those_of_most(tmp_path):
    paths = [
        model(tmp_path, "a", "metre", [("EG", 0.0, 0.0), ("OG", 3.0, 3.0)]),
        model(tmp_path, "b", "millimetre", [("EG", 0.0, 0.0), ("OG", 2.82, 2.82)]),
        model(tmp_path, "c", "metre", [("Level 0", 0.1, 0.1), ("Level 1", 3.0, 3.1)]),
        # of no elevation that is true, and of all heights
        model(tmp_path, "d", "metre", [("STE1", 0.0, 3.0)]),
        model(tmp_path, "e", "metre", [("Undefined", 0.0, 5.9)]),
    ]
    with spatialq.connect() as con:
        for path in paths:
            spatialq.load(con, path)
        query = """
            SELECT parse_filename(file_name)[:1], storey, storey_unified, round(elevation, 2)
            FROM unified_storeys('elements', 'objects') ORDER BY ALL
        """
        assert con.sql(query).fetchall() == [
            ("a", "EG", "EG", 0.0),
            ("a", "OG", "OG", 3.0),
            ("b", "EG", "EG", 0.0),
            ("b", "OG", "OG", 3.0),
            ("c", "Level 0", "EG", 0.0),
            ("c", "Level 1", "OG", 3.0),
            ("d", "STE1", "OG", 3.0),
            ("e", "Undefined", "OG", 3.0),
        ]


@pytest.mark.parametrize("seed", range(4))
def test_equal_elevations_are_one_floor_in_whatever_order_rows_are(seed):
    """Floors 3 m apart in 8 models, each with names of its own."""
    storeys = [(f"{k}.ifc", f"{k} {3 * n}", 3.0 * n) for k in range(8) for n in range(5)]
    with spatialq.connect() as con:
        con.execute("CREATE TABLE s (file_name VARCHAR, name VARCHAR, elevation DOUBLE)")
        Random(seed).shuffle(storeys)
        con.executemany("INSERT INTO s VALUES (?, ?, ?)", storeys)
        con.execute("CREATE TABLE objects AS SELECT *, 'IfcBuildingStorey' AS ifc_class FROM s")
        con.execute(
            "CREATE TABLE elements AS SELECT file_name, rowid AS step_id, name AS global_id, "
            "name AS storey, elevation AS zmin, elevation + 2.5 AS zmax FROM s"
        )
        found = con.sql(
            "SELECT zmin, elevation, count(DISTINCT storey_unified), count(*) "
            "FROM unified_storeys('elements', 'objects') JOIN elements USING (file_name, step_id) "
            "GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    assert found == [(3.0 * n, 3.0 * n, 1, 8) for n in range(5)]


@pytest.fixture
def federation(tmp_path):
    """Write three models that say EG and OG, far from two that clash and have other names."""
    names = [("EG", "OG")] * 3 + [("Level 0", "Level 1"), ("0", "1")]
    for k, (low, high) in enumerate(names):
        builder = Builder(unit="metre")
        for storey, elevation in ((low, 0.0), (high, 3.0)):
            builder.storey_at(storey, elevation)
            at = (20.0 * k, 0.0, elevation) if k < 3 else (100.0 + k, 0.0, elevation)
            builder.add("IfcWall", f"{k} {storey}", [builder.box(at, (4, 0.2, 2.5))])
        builder.write(tmp_path / f"{k}.ifc")
    return f"{tmp_path}/*.ifc"


FLOORS = [("Level 0", "0", "EG", "EG"), ("Level 1", "1", "OG", "OG")]
STOREYS = "a_storey, b_storey, a_storey_unified, b_storey_unified"


@pytest.mark.slow
def test_clashes_have_the_floors_of_all_models_in_every_way(federation, tmp_path):
    """No pair of models, and none of the cells of a job, has the names of most."""
    project = tmp_path / "clashes.duckdb"
    for options in ({}, {"project": project}, {"project": project}):
        with find_clashes([federation], **options) as con:
            assert con.sql(f"SELECT {STOREYS} FROM clashes ORDER BY ALL").fetchall() == FLOORS
    cluster.run("intersects_with", federation, tmp_path / "job", executor="serial", cell_elements=2)
    with spatialq.connect() as con:
        parts = cluster.table(con, tmp_path / "job")
        assert parts.project(STOREYS).order("ALL").fetchall() == FLOORS
    groups = rows("clash", federation, "--group", "storey")["groups"]
    assert {each["group_name"] for each in groups} == {"EG", "OG"}
    matrix = rows("clash", federation, "--matrix", "storey")["matrix"]
    assert [(each["one"], each["other"]) for each in matrix] == [("EG", "EG"), ("OG", "OG")]
    rows("clash", federation, "-o", tmp_path / "a.bcf")
    with spatialq.connect() as con:
        labels = con.sql(f"SELECT labels FROM read_bcf('{tmp_path / 'a.bcf'}')").fetchall()
    assert sorted(labels) == [(["overlap", "EG"],), (["overlap", "OG"],)]


def test_storeys_without_elevations_keep_their_names():
    with spatialq.connect() as con:
        con.execute("CREATE TABLE objects (file_name TEXT, name TEXT, ifc_class TEXT, "
                    "elevation DOUBLE)")  # fmt: skip
        con.execute("CREATE TABLE elements AS SELECT 'f' AS file_name, 1 AS step_id, "
                    "'x' AS global_id, 'EG' AS storey, 0.0 AS zmin, 1.0 AS zmax")  # fmt: skip
        found = con.sql("SELECT storey_unified, elevation FROM unified_storeys('elements', "
                        "'objects')").fetchall()  # fmt: skip
    assert found == [("EG", None)]
