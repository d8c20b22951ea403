"""Small scenes, whose answers are known; and seeded changes, by the truth of the simulated scan."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from spatialq.udfs.coverage import STATUSES, Options, cpu

from spatialq.demo import scanner
from spatialq.demo.scanner import box

from . import oracle
from .cases import CASES, FRONT, GROUND, STATION, WALL, arguments, grid

SCRIPT = Path(__file__).parents[2] / "benchmarks/scan_changes.py"


def run(name, **more):
    given, options = arguments(name)
    return cpu.run(**given, options=Options(**{**options, **more}))


def statuses(found):
    return [STATUSES[code] for code in found["status"]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("in its place", ["installed", "installed"]),
        ("moved by 30 mm", ["displaced", "installed"]),
        ("moved back by 120 mm", ["displaced", "installed"]),
        ("within the tolerance", ["installed", "installed"]),
        ("missing, with a wall beyond", ["not found", "installed"]),
        ("behind what is in no model", ["occluded", "installed"]),
        ("behind another element", ["occluded", "installed"]),
        ("far from the scan", ["no data", "installed"]),
        ("no positions of the scanner", ["installed", "installed", "no data"]),
        ("in feet", ["installed", "installed"]),
        ("no triangles", ["not applicable", "installed"]),
        ("no elements", []),
        ("no points", ["no data"]),
    ],
)
def test_statuses(name, expected):
    assert statuses(run(name)) == expected


def test_movement_is_in_metres_along_the_axes():
    found = run("moved by 30 mm")
    assert [found[name][0] for name in ("dx", "dy", "dz")] == pytest.approx([0, -0.03, 0], abs=5e-4)
    assert abs(found["offset"][0]) == pytest.approx(0.03, abs=5e-4)
    assert found["spread"][0] == pytest.approx(0.002, rel=0.2)
    assert found["tilt"][0] < 0.05


def test_shares_are_those_of_the_surface():
    """Of a wall 4 x 0.2 x 2.5 m the front is seen, and all of it could be."""
    found = run("in its place")
    surface = 2 * (4 * 2.5 + 4 * 0.2 + 0.2 * 2.5)
    assert found["area"][0] == pytest.approx(surface)
    assert found["seen"][0] == pytest.approx(10 / surface, rel=0.03)
    assert found["visible"][0] == pytest.approx(10 / surface, rel=0.1)
    assert found["points"][0] == pytest.approx(len(FRONT), rel=0.03)


def test_a_row_for_each_face():
    found = run("a row for each face")
    wall = found["element"] == 0
    assert wall.sum() == 6
    assert sorted(found["face"][wall]) == list(range(6))
    assert sum(found["area"][wall]) == pytest.approx(22.6)
    front = np.argmax(found["seen"] * wall)
    assert found["seen"][front] > 0.97
    assert found["area"][front] == pytest.approx(10.0)
    assert [STATUSES[k] for k in found["status"][wall]].count("installed") == 1


def test_without_positions_nothing_is_missing_or_hidden():
    for name in CASES:
        given, options = arguments(name)
        options = {key: value for key, value in options.items() if key != "scanner"}
        found = cpu.run(**given, options=Options(**options))
        assert not {"not found", "occluded"} & set(statuses(found))
        assert np.isnan(found["visible"]).all()


def test_thickness_of_a_wall_seen_from_both_sides():
    back = FRONT + np.array([0, 0.215, 0])
    points = np.concatenate([FRONT, back, GROUND])
    given = {**dict(zip("xyz", points.T.copy(), strict=True)), "point_id": None}
    elements, options = scanner.Meshes.of([WALL]), Options(scanner=(*STATION, 2.0, 2.2, 1.5))
    found = cpu.run(**given, elements=elements, options=options)
    assert found["thickness"][0] == pytest.approx(0.215, abs=2e-3)


def test_the_order_of_points_and_the_threads_do_not_matter(monkeypatch):
    given, options = arguments("moved by 30 mm")
    first = cpu.run(**given, options=Options(**options))
    order = np.random.default_rng(1).permutation(len(given["x"]))
    shuffled = {key: given[key][order] for key in ("x", "y", "z", "point_id")}
    monkeypatch.setenv("SPATIALQ_THREADS", "3")
    again = cpu.run(**shuffled, elements=given["elements"], options=Options(**options))
    for name, values in first.items():
        np.testing.assert_array_equal(values, again[name])


def test_a_covered_face_is_not_missing():
    """A wall behind a covering, and a slab below flooring, are hidden and never not found."""
    wall, covering = box((0, 0, 0), (4, 0.2, 2.5)), box((0, -0.02, 0), (4, 0, 2.5))
    points = np.concatenate([FRONT + np.array([0, -0.02, 0]), GROUND])
    given = {**dict(zip("xyz", points.T.copy(), strict=True)), "point_id": None}
    found = cpu.run(
        **given, elements=scanner.Meshes.of([wall, covering]), options=Options(scanner=STATION)
    )
    assert statuses(found) == ["occluded", "installed"]


@pytest.mark.parametrize("scanner_at", [STATION, None])
@pytest.mark.parametrize("order", [[0, 1], [1, 0]], ids=["wall first", "post first"])
def test_a_face_in_that_of_another_element_tells_of_neither(order, scanner_at):
    """A post within a wall, flush with its front: the points there are on the wall all the same."""
    post = box((1.0, 0, 0), (1.3, 0.15, 2.5))
    parts, points = [WALL, post], np.concatenate([FRONT, GROUND])
    given = {**dict(zip("xyz", points.T.copy(), strict=True)), "point_id": None}
    elements = scanner.Meshes.of([parts[k] for k in order])
    found = cpu.run(**given, elements=elements, options=Options(scanner=scanner_at))
    assert [statuses(found)[order.index(k)] for k in (0, 1)] == ["installed", "uncertain"]


def test_an_element_with_a_face_of_its_own_is_installed_beside_a_flush_one():
    """A post that stands out 0.1 m behind a low wall, both flush in front, as is its upper half."""
    low, post = box((0, 0, 0), (4, 0.2, 1.2)), box((1.0, 0, 0), (1.3, 0.3, 2.5))
    above = (FRONT[:, 2] < 1.2) | ((FRONT[:, 0] > 1.0) & (FRONT[:, 0] < 1.3))
    points = np.concatenate([FRONT[above], GROUND])
    given = {**dict(zip("xyz", points.T.copy(), strict=True)), "point_id": None}
    found = cpu.run(
        **given, elements=scanner.Meshes.of([low, post]), options=Options(scanner=STATION)
    )
    assert statuses(found) == ["installed", "installed"]


@pytest.mark.parametrize("far", [[], [(300.0, 300.0, 100.0)]], ids=["alone", "on a large site"])
def test_a_narrow_panel_between_its_neighbours_is_missing(far):
    """Oblique rays through a gap of 0.2 m end on the wall behind, not on the panels beside it."""
    panels = [box((x, 0, 0), (x + 0.2, 0.03, 2.5)) for x in (1.5, 1.7, 1.9, 2.1, 2.3)]
    beside = FRONT[(abs(FRONT[:, 0] - 2) < 0.5) & (abs(FRONT[:, 0] - 2) > 0.1)]
    behind = grid((0, 0.6, 0), (4, 0, 0), (0, 0, 2.5), seed=5)
    points = np.concatenate([beside, behind, GROUND, np.reshape(far, (-1, 3))])
    given = {**dict(zip("xyz", points.T.copy(), strict=True)), "point_id": None}
    elements, options = scanner.Meshes.of(panels), Options(scanner=(3.5, -2.0, 1.5))
    found = cpu.run(**given, elements=elements, options=options)
    assert statuses(found) == ["installed", "installed", "not found", "installed", "installed"]


@pytest.mark.parametrize("degrees", [20, 35, 45])
def test_a_long_narrow_beam_that_slopes_is_in_its_place(degrees):
    """Points on faces of 60 and 100 mm tell no slope across them, whichever way the beam runs."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    way = np.array([(c, 0.0, s), (0.0, 1.0, 0.0), (-s, 0.0, c)])
    corners, triangles = box((0, 0, 2), (6, 0.06, 2.1))
    points = np.concatenate([
        grid((0, 0, 2), (6, 0, 0), (0, 0, 0.1), step=0.02, noise=0.003),
        grid((0, 0, 2), (6, 0, 0), (0, 0.06, 0), step=0.02, noise=0.003, seed=2),
    ]) @ way  # fmt: skip
    given = {**dict(zip("xyz", points.T.copy(), strict=True)), "point_id": None}
    elements = scanner.Meshes.of([(corners @ way, triangles)])
    station = tuple(np.array([3.0, -2.0, 1.0]) @ way)
    found = cpu.run(**given, elements=elements, options=Options(scanner=station, tolerance=0.005))
    assert statuses(found) == ["installed"]


@pytest.mark.parametrize("station", [STATION, (-1.0, -3.0, 2.0), (2.0, 3.0, 1.2)])
def test_what_could_be_seen_is_what_no_box_hides(station):
    """A wall, a column before it and a high board; the scan has points far from all of them."""
    limits = [
        ((0, 0, 0), (4, 0.2, 2.5)), ((1.5, -1, 0), (2, -0.5, 2.2)), ((2.5, -0.6, 1), (4, -0.5, 2)),
    ]  # fmt: skip
    points = FRONT + np.array([0.0, 40.0, 0.0])
    given = {**dict(zip("xyz", points.T.copy(), strict=True)), "point_id": None}
    elements = scanner.Meshes.of([box(*each) for each in limits])
    found = cpu.run(**given, elements=elements, options=Options(scanner=station, cell=0.05))
    expected = [oracle.visible(limits, row, station) for row in range(3)]
    np.testing.assert_allclose(found["visible"], expected, atol=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12])
def test_changes_of_generated_rooms(seed):
    """Nine of ten changes are found at least, and no element that is hidden is called missing."""
    spec = importlib.util.spec_from_file_location("scan_changes", SCRIPT)
    scan_changes = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scan_changes)
    meshes, _ = scanner.rooms(4, 3)
    changed = scan_changes.case(meshes, seed, stations=12)
    scan = changed.scan
    options = Options(scanner=tuple(scan.stations.ravel()), tolerance=0.005)
    rows = scan_changes.judge(
        cpu.run(scan.x, scan.y, scan.z, None, meshes, options), changed, STATUSES
    )
    is_change = [right for _, kind, right, _ in rows if kind in ("moved", "missing")]
    others = [right for _, kind, right, _ in rows if kind == "installed"]
    assert len(is_change) >= 15
    assert len(others) >= 40
    assert np.mean(is_change) >= 0.9
    assert np.mean(others) >= 0.98
    assert not [row for row in rows if row[1] == "hidden" and row[3] == "not found"]
