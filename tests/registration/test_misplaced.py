"""A scan that lies beside the elements is told of by all functions that compare the two."""

import warnings

import numpy as np
import pytest
from spatialq.udfs.registration.misplaced import sentence

import spatialq
from spatialq import cluster
from spatialq.data.meshes import Meshes
from spatialq.demo import scanner
from spatialq.demo.house import write_house
from spatialq.demo.house_scan import write_scan
from spatialq.demo.scanner import Change
from spatialq.errors import PlacementWarning

from .cases import HOUSE, OTHER, TOWER, about_z, scan

CALLS = (
    "deviation('points', 'elements', unit := 1)",
    "coverage('points', 'elements', unit := 1)",
    "point_elements('points', 'elements', 0.05, unit := 1)",
    pytest.param("plane_elements('points', 'elements', unit := 1)", marks=pytest.mark.slow),
)
EAST = "the scan lies 300 mm east of the model: registration gives the movement that puts it right"


def said(points, elements=HOUSE, metres=1.0):
    return sentence(*np.ascontiguousarray(np.asarray(points).T), metres, elements)


@pytest.fixture(scope="module")
def con(tmp_path_factory):
    """The demo's house, in which some walls were built off their place, and its scan."""
    folder = tmp_path_factory.mktemp("misplaced")
    write_house(folder / "house.ifc")
    write_scan(folder / "house.laz")
    con = spatialq.connect()
    con.execute(f"CREATE TABLE elements AS FROM read_ifc('{folder}/house.ifc')")
    con.execute(f"CREATE TABLE scan AS FROM read_las('{folder}/house.laz')")
    return con


def view(con, x="x", y="y", z="z"):
    con.execute(
        f"CREATE OR REPLACE VIEW points AS SELECT point_id, {x} AS x, {y} AS y, {z} AS z FROM scan"
    )


@pytest.mark.parametrize("call", CALLS)
def test_a_scan_that_fits_with_some_walls_off_is_not_spoken_of(con, call):
    view(con)  # warnings are errors
    assert con.sql(f"SELECT count(*) FROM {call}").fetchall()[0][0] > 0


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ({"x": "x + 0.3"}, EAST),
        ({"z": "z + 3"}, "3000 mm above the model"),
        (dict(zip("xyz", ("x * 1000", "y * 1000", "z * 1000"), strict=True)), r"unit := 0\.001"),
        ({"y": "y - 500"}, r"has no point near the elements: it is at x y z .* m, the elements"),
    ],
)
def test_a_scan_beside_the_elements_is_told_of(con, call, moved, expected):
    view(con, **moved)
    name = call.partition("(")[0]
    with pytest.warns(PlacementWarning, match=f"^{name}: .*{expected}"):
        con.sql(f"SELECT count(*) FROM {call}").fetchall()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("shift", "expected"),
    [
        ((0, 0, 0), ""),
        ((0.010, 0.005, -0.005), ""),
        ((0.03, 0, 0), "30 mm east of"),
        ((0, -0.2, 0), "200 mm south of"),
        ((0, 0, 0.3), "300 mm above"),
        ((-0.6, 0.4, 0.5), "600 mm west, 400 mm north, 500 mm above"),
        ((0, 0, -3.2), "3200 mm below"),
    ],
)
def test_what_is_said_is_where_it_lies(seed, shift, expected):
    """The truth is the shift; noise is 10 mm, so that single millimetres are not asked for."""
    found = said(scan(HOUSE, seed, noise=0.003) + np.asarray(shift))
    if not expected:
        assert found == ""
        return
    numbers = {part.split()[2]: float(part.split()[0]) for part in expected.split(", ")}
    parts = found.removeprefix("lies ").partition(" the model")[0].removesuffix(" of").split(", ")
    given = {part.split()[2]: float(part.split()[0]) for part in parts}
    for side in numbers.keys() | given.keys():
        assert abs(numbers.get(side, 0) - given.get(side, 0)) <= 5, found


@pytest.mark.parametrize("degrees", [0.3, 0.5])
def test_a_turn_is_told_of(degrees):
    points = scan(HOUSE, 1, noise=0.003)
    middle = points.mean(axis=0)
    turned = (points - middle) @ about_z(degrees).T + middle
    assert f"turned {degrees:.2f} degrees counter-clockwise" in said(turned)


@pytest.mark.parametrize("seed", range(3))
def test_walls_that_were_built_turned_are_no_turn_of_the_scan(seed):
    """Three of eight walls by 0.3 degrees each, about their own middles, as the scan would be."""
    rows = np.random.default_rng(seed).permutation(8)[:3]
    built = scanner.built(HOUSE, {int(row): Change(turn=0.3) for row in rows})
    assert said(scan(built, seed, noise=0.003)) == ""


def test_one_of_several_equal_storeys_is_where_it_says():
    part = scan(TOWER, 1, low=(-1, -1, 2.9), high=(13, 10, 5.9))
    assert said(part, TOWER) == ""


def test_another_building_does_not_fit():
    found = said(scan(OTHER, 1) + np.array([2.3, 1.1, 0.0]))
    assert found.startswith("does not fit the elements: ")


def test_a_few_elements_of_a_scan_that_fits():
    points = scan(HOUSE, 1)
    for rows in ([0], [3, 8], [1, 4, 5]):
        assert said(points, HOUSE.take(np.array(rows))) == ""


def test_walls_without_floors_of_a_scan_that_fits(con):
    view(con)
    con.execute("CREATE OR REPLACE VIEW walls AS FROM elements WHERE ifc_class = 'IfcWall'")
    con.sql("SELECT count(*) FROM deviation('points', 'walls', unit := 1)").fetchall()


def test_units_are_told():
    points = scan(HOUSE, 1)
    assert said(points * 1000).endswith("in millimetres it would be among them: unit := 0.001")
    assert said(points / 0.3048).endswith("in feet it would be among them: unit := 0.3048")
    assert said(points, metres=0.001).endswith("in metres it would be among them: unit := 1")
    assert said(points * 1000, metres=0.001) == ""


def test_nothing_is_said_of_nothing():
    assert said(np.empty((0, 3))) == ""
    assert said(scan(HOUSE, 1), Meshes.of([])) == ""
    assert said([(5.0, 4.0, 1.0)]) == ""
    assert said([(np.nan, 4.0, 1.0)]) == ""
    assert said([(500.0, 4.0, 1.0)]).startswith("has no point near the elements")


def test_the_order_of_the_points_does_not_matter():
    points = scan(HOUSE, 1) + np.array([0.3, 0, 0])
    assert said(points) == said(points[::-1])


@pytest.mark.slow
@pytest.mark.parametrize("moved", [0.0, 0.3, 500.0])
def test_jobs_tell_it_once(tmp_path, moved):
    import laspy

    write_house(tmp_path / "house.ifc")
    write_scan(tmp_path / "house.laz")
    las = laspy.read(tmp_path / "house.laz")
    las.x = np.asarray(las.x) + moved
    las.write(tmp_path / "moved.laz")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        cluster.run(
            "deviation", str(tmp_path / "moved.laz"), tmp_path / "out", workers=1, unit=1.0,
            elements=tmp_path / "house.ifc", tile_size=4.0,
        )  # fmt: skip
    told = [str(each.message) for each in found if issubclass(each.category, PlacementWarning)]
    assert len(told) == (moved > 0)
    if moved:
        assert ("300 mm east" if moved < 1 else "has no point near") in told[0]
