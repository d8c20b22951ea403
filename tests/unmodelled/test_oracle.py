"""Clusters against brute force, and clutter in simulated scans by its truth."""

import numpy as np
import pytest
from spatialq.udfs.unmodelled import Options, cpu

import spatialq
from spatialq.data.meshes import Meshes
from spatialq.demo import scanner
from spatialq.demo.scanner import box, rooms

from ..deviation.cases import triangles_of
from . import oracle
from .cases import CASES, DOOR, HEAP, ON_WALL, POLE, WALL, arguments


def run(name):
    given, options = arguments(name)
    return cpu.run(**given, options=Options(**options))


def expected(name):
    points, elements, options = CASES[name]
    options, points = dict(options), np.concatenate(points)
    metres = options.pop("unit", 1.0)
    meshes = [triangles_of(each) for each in elements if len(each[1])]
    triangles = np.concatenate(meshes) if meshes else np.empty((0, 3, 3))
    return points, metres, oracle.clusters(points, triangles, metres=metres, **options)


@pytest.mark.parametrize("name", CASES)
def test_clusters_are_those_of_brute_force(name):
    points, metres, rows = expected(name)
    found = run(name)
    assert found["cluster_id"].tolist() == list(range(1, len(rows) + 1))
    assert found["point_count"].tolist() == [len(each) for each in rows]

    def key(low):
        return tuple(np.round(low / metres, 6))

    boxes = {}
    for each in rows:
        boxes[(len(each), *key(points[each].min(axis=0)))] = points[each]
    for k in range(len(rows)):
        low = np.array([found[f"{axis}min"][k] for axis in "xyz"])
        high = np.array([found[f"{axis}max"][k] for axis in "xyz"])
        own = boxes.pop((int(found["point_count"][k]), *key(low)))
        np.testing.assert_array_equal(high, own.max(axis=0))
        middle = np.array([found[f"c{axis}"][k] for axis in "xyz"])
        np.testing.assert_allclose(middle, own.mean(axis=0), rtol=0, atol=1e-8)
        assert found["size"][k] == pytest.approx(metres * np.ptp(own, axis=0).max(), abs=1e-12)
        normal, across, along = oracle.plane(own)
        assert found["rmse"][k] == pytest.approx(metres * across, abs=1e-7)
        is_plane = metres * across <= 0.02 and metres * along > max(3 * metres * across, 1e-3)
        assert found["is_plane"][k] == is_plane
        given = np.array([found[f"n{axis}"][k] for axis in "xyz"])
        if is_plane:
            assert abs(given @ normal) == pytest.approx(1.0, abs=1e-9)
            assert given[np.argmax(np.abs(given))] > 0
            assert found["d"][k] == pytest.approx(given @ own.mean(axis=0), abs=1e-6)
        else:
            assert np.isnan([*given, found["d"][k]]).all()
    assert not boxes


def test_what_is_a_plane():
    found = run("a door leaf, a heap and a pole")
    assert found["point_count"].tolist() == [len(DOOR), len(HEAP), len(POLE)]
    assert found["is_plane"].tolist() == [True, False, False]
    assert found["ny"][0] > 0.999
    assert found["d"][0] == pytest.approx(-1.0, abs=0.002)


def test_the_order_of_the_points_does_not_matter():
    points = np.concatenate([ON_WALL, DOOR, HEAP])
    meshes, options = Meshes.of([WALL]), Options(gap=0.2)
    one, other = (
        cpu.run(*np.ascontiguousarray(each.T), None, meshes, options)
        for each in (points, points[np.random.default_rng(1).permutation(len(points))])
    )
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def test_a_gap_that_is_too_small():
    points = np.array([(0.0, 0.0, 9.0), (1e6, 1e6, 1e6)])
    with pytest.raises(ValueError, match=r"^unmodelled: gap must be large enough for points that"):
        cpu.run(*np.ascontiguousarray(points.T), None, Meshes.of([WALL]), Options(gap=1e-3))


@pytest.mark.parametrize("seed", [1, 2])
def test_clutter_of_a_simulated_scan_is_found(seed):
    """Each thing that stands free and has enough points is one cluster; there are no others."""
    meshes, _ = rooms(2, 1)
    rng = np.random.default_rng(seed)
    places = [(1.5, 2.0), (2.5, 1.0), (6.5, 2.5), (7.5, 1.0)]
    things = []
    for x, y in places:
        low = np.array([x, y, 0.4]) + rng.uniform(0, 0.2, 3)
        things.append(box(low, low + rng.uniform(0.3, 0.6, 3)))
    stations = [(2.0, 3.2, 1.6), (3.2, 0.8, 1.6), (7.0, 3.5, 1.6), (8.2, 0.6, 1.6)]
    scan = scanner.scan(meshes, stations, others=Meshes.of(things), mixed=0.0, seed=seed)
    found = spatialq.run("unmodelled", scan.x, scan.y, scan.z, elements=meshes, min_points=100)
    points = np.stack([scan.x, scan.y, scan.z], axis=1)[scan.element < 0]
    whole = [
        int(
            ((points > low.min(axis=0) - 0.02) & (points < low.max(axis=0) + 0.02))
            .all(axis=1)
            .sum()
        )
        for low, _ in things
    ]
    assert min(whole) > 1000
    assert sorted(found["point_count"].tolist()) == sorted(whole)
    assert not found["is_plane"].any()
    for low, high in ((v.min(axis=0), v.max(axis=0)) for v, _ in things):
        middle = np.stack([found[f"c{axis}"] for axis in "xyz"], axis=1)
        assert ((middle > low) & (middle < high)).all(axis=1).sum() == 1


def test_in_sql_and_in_the_builder():
    con = spatialq.connect()
    points = np.concatenate([ON_WALL, DOOR])
    columns = dict(zip("xyz", np.ascontiguousarray(points.T), strict=True))
    con.register("cloud", {"point_id": np.arange(len(points)), **columns})
    con.execute("CREATE TABLE points AS FROM cloud")
    vertices, faces = WALL
    con.execute(
        "CREATE TABLE elements AS SELECT 'wall' AS global_id, {vertices: ?::DOUBLE[], faces: "
        "?::INTEGER[]} AS mesh",
        [vertices.ravel().tolist(), np.asarray(faces).ravel().tolist()],
    )
    rows = con.sql(
        "SELECT cluster_id, point_count, is_plane, d "
        "FROM unmodelled('points', 'elements', gap := 0.2, unit := 1)"
    ).fetchall()
    assert [(row[0], row[1], row[2]) for row in rows] == [(1, len(DOOR), True)]
    assert rows[0][3] == pytest.approx(-1.0, abs=0.002)
    built = spatialq.table(con, "points").unmodelled("elements", gap=0.2, unit=1).to_arrow()
    assert built["point_count"].to_pylist() == [len(DOOR)]
