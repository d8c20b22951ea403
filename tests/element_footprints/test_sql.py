"""Footprints in SQL and of the builder, and as a file that another program reads."""

import duckdb
import geopandas
import numpy as np
import pytest
import shapely

import spatialq
from spatialq.demo.house import write_house


@pytest.fixture(scope="module")
def con(tmp_path_factory):
    path = tmp_path_factory.mktemp("footprints") / "house.ifc"
    write_house(path)
    with spatialq.connect() as con:
        spatialq.load(con, path)
        yield con


def test_footprints_of_a_house_are_the_unions_of_its_triangles(con, tmp_path):
    query = spatialq.table(con, "elements").element_footprints()
    assert query.columns[-1] == "footprint"
    assert "mesh" not in query.columns
    out = tmp_path / "footprints.gpkg"
    assert query.write(out) == query.count()
    frame = geopandas.read_file(out)
    rows = con.sql("SELECT global_id, mesh FROM elements").fetchall()
    found = frame.set_index("global_id").geometry
    assert len(rows) == len(found) > 50
    for global_id, mesh in rows:
        xy = np.array(mesh["vertices"]).reshape(-1, 3)[:, :2]
        parts = shapely.polygons(xy[np.array(mesh["faces"]).reshape(-1, 3)])
        expected = shapely.union_all(parts[shapely.area(parts) > 0])
        assert found[global_id].is_valid
        assert found[global_id].symmetric_difference(expected).area < 1e-4


def test_a_mesh_without_an_area_has_none(con):
    upright = "{vertices: [0, 0, 0, 1, 0, 0, 0, 0, 1], faces: [0, 1, 2]}"
    query = f"SELECT mesh_footprint(NULL), mesh_footprint({upright})"
    assert con.sql(query).fetchall() == [(None, None)]


@pytest.mark.parametrize(
    ("mesh", "sentence"),
    [
        ("{vertices: [0, 0, 0, 1, 0, 0, 0, 1, 0], faces: [0, 1, 3]}", "of its 3 vertices, got 3"),
        ("{vertices: [0, 0, 0, 1], faces: [0, 1, 3]}", "multiples of three, got 4 and 3"),
        ("{vertices: [0, 0, 'nan'::DOUBLE], faces: [0, 0, 0]}", "must be finite"),
        ("5", "mesh must be a mesh"),
    ],
)
def test_broken_meshes_are_refused(con, mesh, sentence):
    with pytest.raises(duckdb.Error, match=f"mesh_footprint: .*{sentence}"):
        con.sql(f"SELECT mesh_footprint({mesh})").fetchall()
