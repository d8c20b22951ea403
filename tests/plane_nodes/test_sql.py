"""`plane_nodes` through DuckDB."""

import numpy as np
import pyarrow as pa
import pytest
from spatialq.udfs.detect_planes import detection

import spatialq

from ..plane_points.cases import ROOM, surfaces

COLUMNS = {
    "level": "BIGINT", "cx": "DOUBLE", "cy": "DOUBLE", "cz": "DOUBLE", "size": "DOUBLE",
    "point_count": "BIGINT", "nx": "DOUBLE", "ny": "DOUBLE", "nz": "DOUBLE",
    "thickness": "DOUBLE", "votes": "DOUBLE", "plane_id": "BIGINT", "state": "VARCHAR",
}  # fmt: skip


@pytest.fixture(scope="module")
def con():
    points = surfaces(1, *ROOM, clutter=300)
    with spatialq.connect() as con:
        columns = zip(("point_id", "x", "y", "z"), zip(*points, strict=True), strict=True)
        con.register("cloud", pa.table({name: np.array(values) for name, values in columns}))
        con.execute("CREATE TABLE pts AS FROM cloud")
        yield con


def test_columns_and_types(con):
    relation = con.sql("FROM plane_nodes('pts')")
    assert dict(zip(relation.columns, map(str, relation.types), strict=True)) == COLUMNS


def test_a_node_without_a_plane_says_why(con):
    states = con.sql("SELECT DISTINCT state FROM plane_nodes('pts') WHERE plane_id IS NULL")
    found = {state for (state,) in states.fetchall()}
    assert found
    assert found <= {"small", "free", "explained", "thick", "stair"}
    states = con.sql("SELECT DISTINCT state FROM plane_nodes('pts') WHERE plane_id IS NOT NULL")
    assert states.fetchall() == [("plane",)]


def test_votes_of_a_plane_are_those_of_its_nodes(con):
    query = """
        SELECT plane_id, sum(n.votes), any_value(p.votes)
        FROM plane_nodes('pts') AS n RIGHT JOIN detect_planes('pts') AS p USING (plane_id)
        GROUP BY plane_id ORDER BY plane_id
    """
    rows = con.sql(query).fetchall()
    assert len(rows) >= 6
    for _, of_nodes, of_plane in rows:
        assert of_nodes == pytest.approx(of_plane, rel=1e-12)


def test_group_by_runs_each_group_by_itself(con):
    rows = con.sql(
        "SELECT tile, plane_nodes_list(point_id, x, y, z) "
        "FROM (SELECT *, x > 3 AS tile FROM pts) GROUP BY tile"
    ).fetchall()
    for tile, found in rows:
        con.execute(f"CREATE OR REPLACE TEMP VIEW part AS FROM pts WHERE (x > 3) = {tile}")
        assert [tuple(row.values()) for row in found] == con.sql(
            "FROM plane_nodes('part')"
        ).fetchall()


def test_several_outputs_come_from_one_search(con, monkeypatch):
    searches = []
    find = detection.planar_nodes

    def counted(cloud, options, wide, size):
        searches.append(cloud.size)
        return find(cloud, options, wide, size)

    monkeypatch.setattr(detection, "planar_nodes", counted)
    columns = con.sql("SELECT x, y, z FROM pts").fetchnumpy()
    spatialq.run("detect_planes", *columns.values(), device="cpu")
    alone = searches.copy()
    outputs = ["detect_planes", "plane_points", "plane_nodes"]
    found = spatialq.run(outputs, *columns.values(), device="cpu")
    assert searches == 2 * alone
    assert list(found) == outputs


def test_an_empty_table_gives_an_empty_result(con):
    con.execute("CREATE OR REPLACE TEMP TABLE nothing AS FROM pts LIMIT 0")
    assert con.sql("FROM plane_nodes('nothing')").fetchall() == []


def test_an_option_is_refused_in_its_own_name(con):
    with pytest.raises(Exception, match=r"plane_nodes: max_distance must be > 0 or NULL, got 0\.0"):
        con.sql("FROM plane_nodes('pts', max_distance := 0)").fetchall()
