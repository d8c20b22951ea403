"""The simulated scan: its points are where its truth says that they are."""

import numpy as np
import pytest

from spatialq.data.meshes import Meshes
from spatialq.demo import scanner
from spatialq.demo.scanner import Change, box

ROOM = Meshes.of([
    box((-0.2, -0.2, -0.3), (5.2, 4.2, 0.0)),
    box((-0.2, -0.2, 2.5), (5.2, 4.2, 2.8)),
    box((-0.2, -0.2, 0.0), (0.0, 4.2, 2.5)),
    box((5.0, -0.2, 0.0), (5.2, 4.2, 2.5)),
    box((0.0, -0.2, 0.0), (5.0, 0.0, 2.5)),
    box((0.0, 4.0, 0.0), (5.0, 4.2, 2.5)),
    box((3.0, 2.0, 0.0), (3.3, 2.3, 2.5)),
])  # fmt: skip
STATION = np.array([(1.5, 1.5, 1.6)])
EXACT = {"range_noise": 0.0, "angle_noise": 0.0, "mixed": 0.0}


def points_of(scan, element):
    return np.stack([scan.x, scan.y, scan.z], axis=1)[scan.element == element]


def test_points_are_on_the_faces_of_their_elements():
    scan = scanner.scan(ROOM, STATION, beams=20_000, **EXACT)
    assert (np.bincount(scan.element, minlength=7) > 100).all()
    np.testing.assert_allclose(points_of(scan, 0)[:, 2], 0.0, atol=1e-9)
    np.testing.assert_allclose(points_of(scan, 1)[:, 2], 2.5, atol=1e-9)
    np.testing.assert_allclose(points_of(scan, 3)[:, 0], 5.0, atol=1e-9)
    column = points_of(scan, 6)
    assert (np.isclose(column[:, 0], 3.0) | np.isclose(column[:, 1], 2.0)).all()
    behind = points_of(scan, 3)  # where the column is between, nothing of the wall is seen
    at = behind[:, 1] - 1.5
    assert not ((at / 3.5 > 0.5 / 1.8 + 1e-6) & (at / 3.5 < 0.8 / 1.5 - 1e-6)).any()


def test_changes_are_in_the_points_and_what_is_missing_is_expected():
    changes = {3: Change(shift=(0.03, 0, 0)), 6: Change(is_missing=True), 2: Change(turn=1.0)}
    scan = scanner.scan(ROOM, STATION, beams=20_000, changes=changes, **EXACT)
    whole = scanner.scan(ROOM, STATION, beams=20_000, **EXACT)
    np.testing.assert_allclose(points_of(scan, 3)[:, 0], 5.03, atol=1e-9)
    turned = points_of(scan, 2)
    slope = np.polyfit(turned[:, 1], turned[:, 0], 1)[0]
    assert np.degrees(np.arctan(-slope)) == pytest.approx(1.0, abs=1e-6)
    assert (scan.element == 6).sum() == 0
    assert scan.expected[6] == whole.expected[6] == (whole.element == 6).sum() > 100


def test_noise_is_along_the_beam():
    scan = scanner.scan(ROOM, STATION, beams=50_000, angle_noise=0.0, mixed=0.0)
    rays = np.stack([scan.x, scan.y, scan.z], axis=1) - STATION
    length = np.linalg.norm(rays, axis=1)
    wall = scan.element == 3
    to_wall = length[wall] * 3.5 / rays[wall, 0]
    assert (length[wall] - to_wall).std() == pytest.approx(0.003, rel=0.05)


def test_points_at_edges_are_between_two_surfaces():
    scan = scanner.scan(ROOM, STATION, beams=50_000, range_noise=0.0, angle_noise=0.0, mixed=1.0)
    exact = scanner.scan(ROOM, STATION, beams=50_000, **EXACT)
    differs = np.abs(scan.x - exact.x) > 1e-9
    assert differs.any()
    assert not (differs & ~scan.is_mixed).any()
    assert scan.is_mixed.mean() < 0.02


def test_clutter_is_of_no_element():
    places = scanner.places_in(ROOM, seed=2)
    others = scanner.clutter(ROOM, places, 5, seed=2)
    scan = scanner.scan(ROOM, STATION, beams=20_000, others=others, **EXACT)
    assert (scan.element == -1).any()
    low = others.vertices.min(axis=0)
    assert low[2] == pytest.approx(0.0, abs=1e-9)


def test_a_scan_follows_from_its_arguments(monkeypatch):
    places = scanner.stations_in(ROOM, 3, seed=4)
    first = scanner.scan(ROOM, places, beams=20_000, seed=5)
    monkeypatch.setenv("SPATIALQ_THREADS", "1")
    again = scanner.scan(ROOM, scanner.stations_in(ROOM, 3, seed=4), beams=20_000, seed=5)
    other = scanner.scan(ROOM, places, beams=20_000, seed=6)
    for name, values in vars(first).items():
        np.testing.assert_array_equal(values, getattr(again, name))
    assert not np.array_equal(first.x, other.x)


def test_stations_are_in_free_space_and_see_all_rooms():
    meshes, names = scanner.rooms(2, 2)
    stations = scanner.stations_in(meshes, 6)
    scan = scanner.scan(meshes, stations, beams=20_000)
    seen = {name for name, n in zip(names, np.bincount(scan.element), strict=True) if n > 50}
    assert all(f"flooring 0 {i} {j}" in seen for i in range(2) for j in range(2))
    assert not any(name.startswith("duct") for name in seen)


def test_a_door_turns_about_one_end():
    meshes = Meshes.of([box((1, 0, 0), (1.9, 0.04, 2))])
    door = scanner.built(meshes, {0: scanner.opened(meshes, 0, 90)})
    low, high = door.vertices.min(axis=0), door.vertices.max(axis=0)
    np.testing.assert_allclose(high - low, [0.04, 0.9, 2], atol=1e-9)
    np.testing.assert_allclose([low[0], low[1]], [0.98, 0.02], atol=1e-9)


def test_nothing_is_seen_without_a_station_or_a_model():
    assert len(scanner.scan(ROOM, np.empty((0, 3))).x) == 0
    assert len(scanner.scan(Meshes.of([]), STATION, beams=100).x) == 0
