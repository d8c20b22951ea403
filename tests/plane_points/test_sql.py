"""`plane_points` through DuckDB."""

import numpy as np
import pyarrow as pa
import pytest
from spatialq.udfs.detect_planes import Options

import spatialq
from spatialq.functions.catalogue import catalogue

from .cases import ROOM, surfaces

POINTS = surfaces(1, *ROOM, clutter=300)


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        columns = zip(("point_id", "x", "y", "z"), zip(*POINTS, strict=True), strict=True)
        con.register("cloud", pa.table({name: np.array(values) for name, values in columns}))
        con.execute("CREATE TABLE pts AS FROM cloud")
        yield con


def kernel(con, where="true", **options):
    columns = con.sql(f"SELECT point_id, x, y, z FROM pts WHERE {where}").fetchnumpy()
    run = catalogue()["plane_points"].kernel("cpu")
    found = run(*(columns[c] for c in "xyz"), columns["point_id"], Options(**options))
    return [
        (point_id, plane_id or None, distance if plane_id else None)
        for point_id, plane_id, distance in zip(*(v.tolist() for v in found.values()), strict=True)
    ]


def test_columns_and_types(con):
    relation = con.sql("FROM plane_points('pts')")
    assert relation.columns == ["point_id", "plane_id", "distance"]
    assert list(map(str, relation.types)) == ["BIGINT", "BIGINT", "DOUBLE"]


def test_a_point_of_no_plane_has_neither_plane_nor_distance(con):
    found = con.sql("FROM plane_points('pts', max_distance := 0.02)").fetchall()
    assert found == kernel(con, max_distance=0.02)
    assert {plane_id is None for _, plane_id, _ in found} == {True, False}
    assert {(a is None, b is None) for _, a, b in found} == {(True, True), (False, False)}


@pytest.mark.parametrize("call", ["plane_points(pts)", "plane_points('pts', device := 'cpu')"])
def test_all_ways_to_call_it_give_what_the_kernel_gives(con, call):
    assert con.sql(f"FROM {call}").fetchall() == kernel(con)


def test_group_by_runs_each_group_by_itself(con):
    rows = con.sql(
        "SELECT tile, plane_points_list(point_id, x, y, z, "
        "max_distance := 0.02) FROM (SELECT *, x > 3 AS tile FROM pts) GROUP BY tile"
    ).fetchall()
    assert len(rows) == 2
    for tile, found in rows:
        expected = kernel(con, "x > 3" if tile else "x <= 3", max_distance=0.02)
        assert sorted(tuple(row.values()) for row in found) == sorted(expected)


def test_it_joins_the_points_and_the_planes(con):
    query = (
        "SELECT plane_id, count(*), any_value(point_count), max(abs(nx * x + ny * y + nz * z - d "
        "- distance)) FROM pts JOIN plane_points('pts') USING (point_id) "
        "JOIN detect_planes('pts') USING (plane_id) GROUP BY plane_id ORDER BY plane_id"
    )
    rows = con.sql(query).fetchall()
    assert len(rows) >= 6
    for _, points, counted, difference in rows:
        assert points == counted
        assert difference < 0.05 / 2**15  # see test_oracle.py


def test_an_empty_table_gives_an_empty_result(con):
    con.execute("CREATE OR REPLACE TEMP TABLE nothing AS FROM pts LIMIT 0")
    assert con.sql("FROM plane_points('nothing')").fetchall() == []


def test_an_option_is_refused_in_its_own_name(con):
    with pytest.raises(
        Exception, match=r"plane_points: max_distance must be > 0 or NULL, got 0\.0"
    ):
        con.sql("FROM plane_points('pts', max_distance := 0)").fetchall()
