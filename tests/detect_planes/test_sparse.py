"""A cloud with too few points for planes of the size of a roof: its user is told, once."""

import warnings

import numpy as np
import pytest

import spatialq
from spatialq.errors import SparsePointsWarning

from ..conftest import real_file
from ..element_tables import box, put
from .cases import hills, rooms

SPARSE_TILE = "data/lidar/test_semis_2023_0292_6833_LA93_IGN69.laz"


def told(run):
    """Run, and give the sentences of warnings of sparse points."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    return [str(each.message) for each in found if each.category is SparsePointsWarning]


def median_of_squares(x, y, side):
    """Points of the square of the median point, one point after the other."""
    squares = {}
    for at in zip((x - x.min()) // side, (y - y.min()) // side, strict=True):
        squares[at] = squares.get(at, 0) + 1
    each = sorted(count for count in squares.values() for _ in range(count))
    return each[(len(each) - 1) // 2]


@pytest.mark.parametrize(
    ("density", "options", "is_told"),
    [
        (0.3, {}, True),
        (0.7, {}, True),
        (1.2, {}, False),
        (0.7, {"s_ms": 4, "min_points": 10}, False),
        (0.3, {"s_ms": 4, "min_points": 10}, True),
        (1.2, {"min_points": 50}, True),
        (1.2, {"s_ps": 1e-3}, True),
    ],
)
def test_points_of_a_roof(density, options, is_told):
    points = hills(density, 150.0)
    sentences = told(lambda: spatialq.run("detect_planes", *points, **options))
    assert len(sentences) == is_told
    if is_told:
        median = median_of_squares(*points[:2], 10.0)
        assert f"surfaces of 10 by 10 m have {median} points" in sentences[0]


def test_feet_are_not_metres():
    points = [values / 0.3048 for values in hills(1.2, 150.0)]
    assert not told(lambda: spatialq.run("detect_planes", *points, unit=0.3048))
    assert not told(lambda: spatialq.run("detect_planes", *points, crs="EPSG:2264"))
    assert told(lambda: spatialq.run("detect_planes", *points, unit=1.0))


def test_roofs_of_a_tile_without_its_ground():
    """What counts is where points are: a fiftieth of the extent, as dense as 3 per square metre."""
    x, y, z = hills(3.0, 200.0)
    on = (x % 67 < 12) & (y % 67 < 12)
    points = [values[on] for values in (x, y, z)]
    assert x[on].size < 0.3 * 200.0**2
    assert not told(lambda: spatialq.run("detect_planes", *points))


def test_dense_clouds_are_not_spoken_of():
    scene = rooms.room(20_000)
    assert not told(lambda: spatialq.run("detect_planes", scene.x, scene.y, scene.z))
    assert not told(lambda: spatialq.run("detect_planes", *3 * [np.empty(0)]))


def test_every_way_in_says_it():
    x, y, z = hills(0.3, 120.0)
    con = spatialq.connect()
    con.execute("CREATE TABLE points (point_id BIGINT, x DOUBLE, y DOUBLE, z DOUBLE)")
    rows = np.column_stack([np.arange(x.size), x, y, z])
    con.executemany("INSERT INTO points VALUES (?, ?, ?, ?)", rows.tolist())
    put(con, "elements", global_id=["g"], ifc_class=["IfcSlab"], mesh=[box((0, 0, -1), (9, 9, 0))])
    of_points = ("detect_planes", "plane_points", "plane_nodes")
    queries = {name: f"FROM {name}('points')" for name in of_points}
    queries["plane_elements"] = "FROM plane_elements('points', 'elements')"
    for name, query in queries.items():
        sentences = told(lambda query=query: con.sql(query).fetchall())
        assert [each.partition(":")[0] for each in sentences] == [name]
    assert len(told(lambda: spatialq.run(["detect_planes", "plane_points"], x, y, z))) == 1
    groups = "SELECT detect_planes_list(point_id, x, y, z) FROM points"
    assert len(told(lambda: con.sql(groups).fetchall())) == 1


def test_a_real_sparse_tile():
    path = real_file(SPARSE_TILE)
    con = spatialq.connect()
    sentences = told(lambda: con.sql(f"FROM detect_planes('{path}')").fetchall())
    assert [each.partition(":")[0] for each in sentences] == ["detect_planes"]
    assert "0.3 points per square metre" in sentences[0]
    assert "surfaces of 10 by 10 m have 30 points" in sentences[0]
