"""COPC read as densely as is asked for."""

import struct

import numpy as np
import pytest

import spatialq
from spatialq.errors import FileError
from spatialq.io.clouds import at_resolution, read_points
from spatialq.io.las.source import LasSource

from .las_files import write_copc
from .test_copc import cells, info_offset


@pytest.fixture
def copc(tmp_path):
    """A root, eight children and a grandchild, of 3000 points each, in pages of their own."""
    path = write_copc(tmp_path / "tree.copc.laz", cells())
    raw = bytearray(path.read_bytes())
    struct.pack_into("<d", raw, info_offset(path) + 32, 8.0)  # the spacing of the root
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize(
    ("resolution", "points"),
    [(100, 3000), (8, 3000), (7.9, 27_000), (4, 27_000), (3.9, 30_000), (1e-9, 30_000)],
)
def test_the_descent_stops_where_points_are_dense_enough(con, copc, resolution, points):
    read_points(con, copc, name="everything")
    expected = f"SELECT * FROM everything WHERE point_id < {points} ORDER BY point_id"
    found = f"FROM read_las('{copc}', resolution := {resolution}) ORDER BY point_id"
    rows = con.sql(expected).fetchall()
    assert con.sql(found).fetchall() == rows
    view = read_points(con, copc, name="coarse", resolution=resolution)
    assert view.order("point_id").fetchall() == rows
    assert con.sql("SELECT count(*) FROM coarse").fetchall() == [(points,)]
    query = spatialq.read_points(con, copc, resolution=resolution)
    assert query.count() == points


def test_together_with_bounds(con, copc):
    bounds = [0, 0, 300, 300]
    found = con.sql(f"SELECT point_id FROM read_las('{copc}', bounds := {bounds}, resolution := 8)")
    inside = "x <= 300 AND y <= 300 AND point_id < 3000"
    expected = con.sql(f"SELECT point_id FROM read_las('{copc}') WHERE {inside}").fetchall()
    assert sorted(found.fetchall()) == sorted(expected)
    assert expected


def test_arrays_of_a_kernel_have_the_points_that_come(copc):
    source = at_resolution("f", LasSource(copc), 5)
    arrays = {"x": np.zeros(source.rows), "point_id": np.zeros(source.rows, np.int64)}
    assert source.read_into(arrays) == 27_000
    assert sorted(arrays["point_id"][:27_000]) == list(range(27_000))
    assert not source.is_whole
    assert LasSource(copc).is_whole


@pytest.mark.parametrize("given", [0, -1, float("nan"), float("inf"), True])
def test_what_is_no_resolution(con, copc, given):
    with pytest.raises(ValueError, match=r"^read_points: resolution must be a number above 0, got"):
        read_points(con, copc, name="a", resolution=given)


def test_a_file_without_an_octree(con, tmp_path):
    import laspy

    path = tmp_path / "a.las"
    laspy.LasData(laspy.LasHeader(point_format=6, version="1.4")).write(path)
    cloud = laspy.read(path)
    cloud.x = cloud.y = cloud.z = np.arange(3.0)
    cloud.write(path)
    with pytest.raises(FileError, match=r"a.las': has no octree \(COPC\), which resolution needs"):
        read_points(con, path, name="a", resolution=1)
    (tmp_path / "a.xyz").write_text("1 2 3\n")
    with pytest.raises(FileError, match=r"a.xyz': has no octree \(COPC, EPT\), which"):
        read_points(con, tmp_path / "a.xyz", name="a", resolution=1)
