import subprocess
import sys

import numpy as np
import pyproj
import pytest

from spatialq.demo import World, write_village
from spatialq.demo.scan import MAX_RETURNS, STRIPS
from spatialq.demo.terrain import ORIGIN, POND, SIZE, stream_distance

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def las(world: World):
    import laspy

    return laspy.read(world.las)


@pytest.fixture(scope="module")
def xyz(las) -> np.ndarray:
    return np.column_stack([las.x, las.y, las.z])


def test_another_process_writes_the_same_bytes(tmp_path):
    here, there = tmp_path / "here.laz", tmp_path / "there.laz"
    write_village(here, n_points=60_000, seed=3)
    code = "import sys, spatialq.demo as d; d.write_village(sys.argv[1], n_points=60_000, seed=3)"
    subprocess.run([sys.executable, "-c", code, str(there)], check=True)
    assert here.read_bytes() == there.read_bytes()


def test_the_number_of_threads_does_not_matter(tmp_path):
    import numba

    two, one = tmp_path / "two.laz", tmp_path / "one.laz"
    write_village(two, n_points=30_000)
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        write_village(one, n_points=30_000)
    finally:
        numba.set_num_threads(threads)
    assert two.read_bytes() == one.read_bytes()


def test_another_seed_is_another_village(tmp_path):
    write_village(tmp_path / "a.laz", n_points=5_000, seed=1)
    write_village(tmp_path / "b.laz", n_points=5_000, seed=2)
    assert (tmp_path / "a.laz").read_bytes() != (tmp_path / "b.laz").read_bytes()


@pytest.mark.parametrize("n_points", [1, 2, 17, 1000])
def test_small_villages_have_the_wanted_number_of_points(tmp_path, n_points):
    import laspy

    truth = write_village(tmp_path / "small.laz", n_points=n_points)
    assert sum(truth.points.values()) == n_points
    assert laspy.read(tmp_path / "small.laz").header.point_count == n_points


def test_a_village_without_points_is_refused(tmp_path):
    with pytest.raises(ValueError, match="n_points must be > 0, got 0"):
        write_village(tmp_path / "none.laz", n_points=0)


def test_header_says_what_the_points_are(world, las, xyz):
    header = las.header
    assert str(header.version) == "1.4"
    assert header.point_format.id == 7
    assert header.point_count == 2_500_000
    np.testing.assert_allclose(header.mins, xyz.min(axis=0))
    np.testing.assert_allclose(header.maxs, xyz.max(axis=0))
    returns = np.bincount(np.asarray(las.return_number), minlength=16)[1:]
    np.testing.assert_array_equal(header.number_of_points_by_return, returns)
    crs = header.parse_crs()
    assert crs.equals(pyproj.CRS(world.village.crs))
    assert len(crs.sub_crs_list) == 2


def test_points_fill_the_tile(xyz):
    low, high = xyz.min(axis=0), xyz.max(axis=0)
    np.testing.assert_allclose(low[:2], ORIGIN, atol=6.0)
    np.testing.assert_allclose(high[:2], np.array(ORIGIN) + SIZE, atol=6.0)


def test_classes_are_counted(world, las):
    codes, counts = np.unique(np.asarray(las.classification), return_counts=True)
    assert dict(zip(codes.tolist(), counts.tolist(), strict=True)) == world.village.points
    assert {1, 2, 5, 6, 7, 9, 18} <= set(codes.tolist())


def test_ground_points_lie_on_the_terrain(world, las, xyz):
    points = xyz[np.asarray(las.classification) == 2]
    error = points[:, 2] - world.village.ground(points[:, 0], points[:, 1])
    assert abs(error.mean()) < 0.002
    assert error.std() < 1.2 * world.village.range_noise
    # on a bank of slope 1.6 a range error and the rounded position count too
    assert np.abs(error).max() < 6 * 1.4 * world.village.range_noise + 0.02


def test_low_noise_is_below_and_high_noise_above(world, las, xyz):
    above = xyz[:, 2] - world.village.ground(xyz[:, 0], xyz[:, 1])
    classes = np.asarray(las.classification)
    assert above[classes == 7].max() < -2.5
    assert above[classes == 18].min() > 40.0
    rest = above[(classes != 7) & (classes != 18)]
    assert rest.min() > -0.5
    assert rest.max() < 30.0


def test_building_points_are_on_roofs_or_walls(world, las, xyz):
    points = xyz[np.asarray(las.classification) == 6]
    distance = np.full(len(points), np.inf)
    for plane in world.village.roofs:
        low, high = plane.corners[:, :2].min(axis=0) - 0.1, plane.corners[:, :2].max(axis=0) + 0.1
        inside = ((points[:, :2] > low) & (points[:, :2] < high)).all(axis=1)
        away = np.abs(points[inside] @ plane.normal - plane.offset)
        distance[inside] = np.minimum(distance[inside], away)
    assert (distance < 6 * world.village.range_noise).mean() > 0.93


def test_each_roof_has_points(world, xyz):
    for plane in world.village.roofs:
        middle = plane.corners.mean(axis=0)
        near = np.linalg.norm(xyz[:, :2] - middle[:2], axis=1) < 1.0
        away = np.abs(xyz[near] @ plane.normal - plane.offset)
        assert (away < 0.15).sum() > 5, plane.house


def test_pulses_are_whole_and_in_flight_order(las):
    time = np.asarray(las.gps_time)
    assert (np.diff(time) >= 0).all()
    first = np.flatnonzero(np.diff(time, prepend=-1.0) > 0)
    sizes = np.diff(np.append(first, time.size))
    returns = np.asarray(las.number_of_returns)
    np.testing.assert_array_equal(np.repeat(sizes, sizes), returns)
    expected = np.arange(time.size) - np.repeat(first, sizes) + 1
    np.testing.assert_array_equal(np.asarray(las.return_number), expected)
    assert returns.max() <= MAX_RETURNS
    assert (np.asarray(las.classification)[returns > 1] == 5).mean() > 0.4


def test_strips_overlap(las, xyz):
    source = np.asarray(las.point_source_id)
    assert len(np.unique(source)) == len(STRIPS)
    cells = ((xyz[:, :2] - ORIGIN) // 20.0).astype(int)
    pairs = np.unique(np.column_stack([cells, source]), axis=0)
    _, strips_of_cell = np.unique(pairs[:, :2], axis=0, return_counts=True)
    assert (strips_of_cell >= 2).mean() > 0.4
    assert np.asarray(las.edge_of_flight_line).any()
    angle = np.asarray(las.scan_angle) * 0.006
    assert angle.min() < -8.0
    assert angle.max() > 8.0
    assert np.abs(angle).max() < 12.0


def test_the_pond_gives_no_returns_and_the_stream_few(las, xyz):
    u, v = (xyz[:, :2] - ORIGIN).T
    ground = np.asarray(las.classification) != 5
    in_pond = np.hypot((u - POND[0]) / POND[2], (v - POND[1]) / POND[3]) < 0.9
    assert not (in_pond & ground).any()
    water = np.asarray(las.classification) == 9
    aside = [stream_distance(a, b) for a, b in zip(u[water][::50], v[water][::50], strict=True)]
    assert max(aside) < 3.0


def test_crowns_let_light_through_to_the_ground(world, las, xyz):
    trees = world.village.scene.trees
    tree = trees[np.argmax(trees[:, 3])]
    u, v = (xyz[:, :2] - ORIGIN).T
    under = np.hypot(u - tree[0], v - tree[1]) < 0.6 * tree[3]
    classes = np.asarray(las.classification)[under]
    assert (classes == 5).sum() > 50
    assert (classes == 2).sum() > 10


def test_colours_tell_materials_apart(las):
    classes = np.asarray(las.classification)
    green, red = np.asarray(las.green, float), np.asarray(las.red, float)
    assert (green > red)[classes == 5].all()
    assert (green < red)[classes == 6].mean() > 0.8
    assert green.max() > 256 * 128
