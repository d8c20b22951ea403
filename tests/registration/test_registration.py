"""Scans whose placement is known are found again, or said to be ambiguous; never a wrong one."""

import re

import numpy as np
import pytest
from spatialq.udfs.registration import UPS

import spatialq
from spatialq.demo.house import write_house
from spatialq.demo.house_scan import write_scan

from .cases import HALL, HOUSE, OTHER, ROOMS, TOWER, about_z, placements, pose, scan, text
from .oracle import error, moved, share_on


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_part_of_a_house_is_found_from_any_pose(seed):
    truth = scan(HOUSE, seed, **ROOMS)
    turn, shift = pose(seed)
    points = truth @ turn.T + shift
    rows, status, matrices = placements(points, HOUSE, unit=1.0)
    assert status[0] == "found"
    off, angle = error(matrices[0], points, truth)
    assert off < 0.010
    assert angle < 0.1
    assert set(status[1:]) <= {"not found"}
    assert rows["explained"][0] > 0.6
    assert np.isfinite([rows[f"sigma_{name}"][0] for name in ("x", "y", "z", "turn")]).all()


@pytest.mark.slow
def test_a_repeated_storey_is_ambiguous_and_all_of_them_are_listed():
    truth = scan(TOWER, 1, low=(-1, -1, 2.9), high=(13, 10, 5.9))
    turn, shift = pose(1)
    points = truth @ turn.T + shift
    _, status, matrices = placements(points, TOWER, unit=1.0)
    assert status[0] == "ambiguous"
    heights = [
        moved(matrix, points)[:, 2].mean() - truth[:, 2].mean()
        for matrix, each in zip(matrices, status, strict=True)
        if each == "ambiguous"
    ]
    for expected in (-3.0, 0.0, 3.0):
        assert np.abs(np.array(heights) - expected).min() < 0.02


def test_a_hall_that_half_a_turn_leaves_unchanged_is_ambiguous():
    truth = scan(HALL, 1, clutter=0)
    turn, shift = pose(2)
    _, status, matrices = placements(truth @ turn.T + shift, HALL, unit=1.0)
    assert status[:2] == ["ambiguous", "ambiguous"]
    turns = [np.degrees(np.arctan2(matrix[1, 0], matrix[0, 0])) for matrix in matrices[:2]]
    assert abs(abs(turns[0] - turns[1]) - 180) < 0.5


@pytest.mark.slow
def test_a_scan_of_another_building_is_not_found():
    _, status, _ = placements(scan(OTHER, 1), HOUSE, unit=1.0)
    assert set(status) == {"not found"}


@pytest.mark.slow
@pytest.mark.parametrize("metres", [0.001, 0.3048])
def test_the_unit_is_found(metres):
    truth = scan(HOUSE, 3, **ROOMS)
    turn, shift = pose(3)
    points = (truth @ turn.T + shift) / metres
    rows, status, matrices = placements(points, HOUSE)
    assert status[0] == "found"
    assert rows["unit"][0] == metres
    assert np.abs(moved(matrices[0], points).mean(axis=0) - truth.mean(axis=0)).max() < 0.01


@pytest.mark.slow
def test_a_scan_whose_y_axis_is_up_is_found():
    truth = scan(HOUSE, 4, **ROOMS)
    points = (truth @ about_z(30.0).T)[:, [0, 2, 1]] * [1, 1, -1]
    rows, status, matrices = placements(points, HOUSE, unit=1.0)
    assert status[0] == "found"
    assert UPS[rows["up"][0]] == "y"
    assert np.abs(moved(matrices[0], points).mean(axis=0) - truth.mean(axis=0)).max() < 0.01


@pytest.mark.slow
def test_a_tilted_scan_is_found_with_six_degrees_of_freedom():
    truth = scan(HOUSE, 5, **ROOMS)
    turn, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))
    turn *= np.sign(np.linalg.det(turn))
    points = truth @ turn.T + [10.0, -20.0, 5.0]
    _, status, matrices = placements(points, HOUSE, unit=1.0, tilt=True)
    assert status[0] == "found"
    off, angle = error(matrices[0], points, truth)
    assert off < 0.010
    assert angle < 0.1


@pytest.mark.slow
def test_what_the_model_does_not_have_is_not_explained():
    model = HOUSE.take(np.array([0, 1, 2, 3, 4, 5, 8]))  # without a ceiling and two walls
    truth = scan(HOUSE, 9, clutter=0)
    rows, status, _ = placements(truth, model, unit=1.0)
    assert status[0] == "found"
    share = share_on(truth[::20], model, 0.05)
    assert share < 0.8
    assert rows["explained"][0] == pytest.approx(share, abs=0.06)


@pytest.mark.slow
def test_far_coordinates_do_not_change_the_placement():
    far = np.array([691_000.0, 5_334_000.0, 520.0])
    truth = scan(HOUSE, 6, **ROOMS)
    turn, _ = pose(6)
    points = truth @ turn.T + far
    _, status, matrices = placements(points, HOUSE, unit=1.0)
    assert status[0] == "found"
    assert np.abs(moved(matrices[0], points).mean(axis=0) - truth.mean(axis=0)).max() < 0.01


def test_a_placed_scan_says_how_it_lies_off():
    truth = scan(HOUSE, 7, **ROOMS)
    off = np.array([0.3, -0.6, 0.04])
    middle = truth.mean(axis=0)
    points = (truth - middle) @ about_z(0.7).T + middle + off
    rows, status, matrices = placements(points, HOUSE, placed=True)
    assert status[0] == "found"
    shift, angle = error(matrices[0], points, truth)
    assert shift < 0.005
    assert angle < 0.05
    sentence = text(rows["sentence"], 0)
    pattern = (
        r"the scan lies (\d+) mm east, (\d+) mm south, (\d+) mm above the model, turned (\S+) "
    )
    said = [float(each) for each in re.match(pattern, sentence).groups()]
    assert said == pytest.approx([300, 600, 40, 0.7], abs=3)
    assert said[3] == pytest.approx(0.7, abs=0.02)
    assert "counter-clockwise" in sentence


@pytest.mark.slow
def test_both_faces_of_a_shifted_wall_do_not_hide_the_shift():
    """The mean of the distances from both faces of each wall is 0 without a registration."""
    truth = scan(HOUSE, 8, clutter=0)
    _, status, matrices = placements(truth + np.array([0.1, 0, 0]), HOUSE, placed=True)
    assert status[0] == "found"
    assert matrices[0][0, 3] == pytest.approx(-0.1, abs=0.002)


@pytest.mark.slow
def test_elements_off_their_place_do_not_pull_at_the_placement(tmp_path):
    """Two walls of the demo's house were built 25 and 30 mm off."""
    write_house(tmp_path / "house.ifc")
    write_scan(tmp_path / "house.laz")
    with spatialq.connect() as con:
        spatialq.read_ifc(con, str(tmp_path / "house.ifc"), name="elements")
        points = f"'{tmp_path / 'house.laz'}'"
        ((status, matrix),) = con.execute(
            f"SELECT status, matrix FROM registration({points}, 'elements', unit := 1) LIMIT 1"
        ).fetchall()
    assert status == "found"
    np.testing.assert_allclose(np.reshape(matrix, (4, 4))[:3, 3], 0.0, atol=0.003)


def test_without_points_there_is_no_row():
    rows = spatialq.run("registration", *np.empty((3, 0)), elements=HOUSE)
    assert all(len(values) == 0 for values in rows.values())


@pytest.mark.parametrize("count", [1, 50])
def test_too_few_points_are_not_found(count):
    points = scan(HOUSE, 1, density=10)[:count]
    rows, status, matrices = placements(points, HOUSE)
    assert status == ["not found"]
    assert np.isnan(matrices).all()
    assert np.isnan(rows["explained"]).all()


def test_coordinates_must_be_finite():
    points = scan(HOUSE, 1, density=10)
    points[7, 1] = np.nan
    with pytest.raises(ValueError, match="registration: x, y and z must be finite, got 1 points"):
        placements(points, HOUSE)
