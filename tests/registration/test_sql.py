"""`registration` and `to_model` through DuckDB and the query builder."""

import warnings

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import spatialq as sq
from spatialq.errors import CrsWarning

from ..element_tables import put
from .cases import HOUSE, ROOMS, pose, scan, storey

TRUTH = scan(HOUSE, 2, **ROOMS, density=300)
TURN, SHIFT = pose(2)


@pytest.fixture(scope="module")
def con():
    with sq.connect() as con:
        x, y, z = np.ascontiguousarray((TRUTH @ TURN.T + SHIFT).T)
        incoming = pa.table({"point_id": np.arange(len(x)), "x": x, "y": y, "z": z})
        con.register("incoming", incoming)
        con.execute("CREATE TABLE scan AS FROM incoming")
        con.unregister("incoming")
        meshes = storey()
        put(con, "elements", global_id=[f"e{k}" for k in range(len(meshes))], mesh=meshes)
        con.execute("CREATE TABLE placements AS FROM registration('scan', 'elements')")
        yield con


def test_the_matrix_brings_the_points_to_the_model(con):
    rows = con.execute(
        "SELECT candidate, status, len(matrix), unit, up, sentence FROM placements"
    ).fetchall()
    assert rows[0][:5] == (1, "found", 16, 1.0, "z")
    assert rows[0][5].startswith("the scan fits in one place: ")
    con.execute("SET VARIABLE placement = (SELECT matrix FROM placements WHERE status = 'found')")
    placed = con.execute(
        "SELECT x, y, z FROM to_model('scan', getvariable('placement')) ORDER BY point_id"
    ).fetchnumpy()
    found = np.stack([placed[axis] for axis in "xyz"], axis=1)
    assert np.linalg.norm((found - TRUTH).mean(axis=0)) < 0.010
    assert np.abs(found - TRUTH).max() < 0.03


def test_the_builder_moves_points(con):
    (matrix,) = con.execute("SELECT matrix FROM placements WHERE candidate = 1").fetchall()[0]
    placed = sq.table(con, "scan").to_model(matrix)
    assert "x" in placed.columns
    assert len(placed.to_arrow()) == len(TRUTH)


FEET = """CREATE OR REPLACE VIEW feet AS
SELECT point_id, x / 0.3048 AS x, y / 0.3048 AS y, z / 0.3048 AS z FROM scan"""
COLUMN_BY_COLUMN = "[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 5.0, 0, 0, 1]"
NOT_FINITE = "[1, 0, 0, 'nan'::DOUBLE, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]"


@pytest.mark.parametrize("matrix", ["NULL", "[1.0, 2.0]", "'here'", COLUMN_BY_COLUMN, NOT_FINITE])
def test_what_is_no_matrix_is_refused(con, matrix):
    with pytest.raises(duckdb.Error, match="to_model: matrix must be 16 finite numbers, row by"):
        con.execute(f"FROM to_model('scan', {matrix})").fetchall()


def test_a_scan_whose_unit_is_found_is_not_said_to_be_in_metres(con):
    con.execute(FEET)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = con.execute("SELECT status, unit FROM registration('feet', 'elements')").fetchall()
    assert found[0] == ("found", 0.3048)


def test_a_known_unit_is_taken(con):
    con.execute(FEET)
    units = con.execute(
        "SELECT DISTINCT unit FROM registration('feet', 'elements', crs := 'EPSG:25832')"
    ).fetchall()
    assert units == [(1.0,)]


def test_feet_across_and_metres_up(con):
    con.execute(
        "CREATE OR REPLACE VIEW mixed AS "
        "SELECT point_id, x * 3937 / 1200 AS x, y * 3937 / 1200 AS y, z FROM scan"
    )
    with pytest.warns(CrsWarning, match="heights were converted"):
        con.execute(
            "CREATE TABLE of_mixed AS "
            "FROM registration('mixed', 'elements', crs := 'EPSG:2263+5703')"
        )
    con.execute("SET VARIABLE placement = (SELECT matrix FROM of_mixed WHERE status = 'found')")
    placed = con.execute(
        "SELECT x, y, z FROM to_model('mixed', getvariable('placement')) ORDER BY point_id"
    ).fetchnumpy()
    found = np.stack([placed[axis] for axis in "xyz"], axis=1)
    assert np.abs(found - TRUTH).max() < 0.03
