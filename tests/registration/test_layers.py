"""Layers of a model hold a placement beside the right one; what they leave open is said."""

import numpy as np
import pytest
from spatialq.udfs.registration import decide, surfels
from spatialq.udfs.registration.refine import FINE, FOUR, Faces
from spatialq.udfs.registration.search import Pose, main_axis

from spatialq.data.meshes import Meshes

from ..element_tables import box
from .cases import HOUSE, T, about_z, placements, pose, scan, storey
from .oracle import moved

GAP = 0.025
"""Metres between layers."""


def climbed(off, turn):
    """Metres from the right place at which the adjustment of one that is off ends."""
    vertices = HOUSE.vertices @ about_z(turn).T
    house = Meshes(vertices, HOUSE.faces, HOUSE.vertex_starts, HOUSE.face_starts)
    model = surfels.of_meshes(house)
    points = scan(HOUSE, 1, clutter=0) @ about_z(turn).T
    cells = surfels.of_cloud(*np.ascontiguousarray(points.T), 1.0, 0.2)
    start = Pose(np.eye(3), about_z(turn) @ off)
    found = decide._climbed(
        Faces.of(model), decide.some(cells, decide.COARSE), start, main_axis(model), FINE, FOUR,
        decide.TOLERANCE, decide.BESIDE,
    )  # fmt: skip
    middle = points.mean(axis=0)
    _, best = max(found, key=lambda each: each[0])
    return np.linalg.norm(best.turn @ middle + best.shift - middle)


@pytest.mark.parametrize(("off", "turn"), [((0, -T, T), 0.0), ((T, T, T), 30.0)])
def test_a_placement_held_by_layers_along_several_axes_is_left(off, turn):
    """Off by the thickness of walls and slabs, half of the faces are on others."""
    assert climbed(np.array(off), turn) < 0.005


def test_one_step_leaves_the_layers_of_one_axis_only(monkeypatch):
    monkeypatch.setattr(decide, "GAIN", 1.0)
    assert climbed(np.array([0, 0, T]), 0.0) < 0.005
    assert climbed(np.array([0, -T, T]), 0.0) > 0.9 * T


def listed(points, elements, seed=3):
    """The states, and how far off, of the placements of a scan that is moved."""
    turn, shift = pose(seed)
    away = points @ turn.T + shift
    _, status, matrices = placements(away, elements, unit=1.0)
    off = np.array([(moved(matrix, away) - points).mean(axis=0) for matrix in matrices])
    return status[0], off[[each == status[0] for each in status]]


@pytest.mark.slow
def test_two_layers_of_the_only_wall_along_an_axis_are_ambiguous():
    """A room open at one side, with a panel on the wall at the other side."""
    parts = [
        box((0, 0, -T), (7, 5, 0)), box((0, 0, 3), (7, 5, 3 + T)),
        box((0, 0, 0), (T, 5, 3)), box((7 - T, 0, 0), (7, 5, 3)), box((2.5, 1, 0), (2.6, 5, 3)),
        box((0, 0, 0), (7, T, 3)), box((T, T, 0), (7 - T, T + GAP, 3)),
    ]  # fmt: skip
    points = scan(Meshes.of(parts), 4, low=(T, T + GAP / 2, -0.05), high=(7 - T, 4.9, 3.05))
    # what is within the panel is not seen
    status, off = listed(points, Meshes.of(parts))
    assert status == "ambiguous"
    for expected in (0.0, -GAP):
        assert np.linalg.norm(off - [0, expected, 0], axis=1).min() < 0.01


@pytest.mark.slow
def test_the_back_of_a_pane_is_not_seen_from_the_front():
    """The only wall along an axis is a pane, and the scan shows the side of the room."""
    parts = [
        box((0, 0, -T), (7, 5, 0)), box((0, 0, 3), (7, 5, 3 + T)),
        box((0, 0, 0), (T, 5, 3)), box((7 - T, 0, 0), (7, 5, 3)), box((2.5, 1, 0), (2.6, 5, 3)),
        box((0, 0, 0), (7, GAP, 3)),
    ]  # fmt: skip
    points = scan(Meshes.of(parts), 4, low=(T, GAP / 2, -0.05), high=(7 - T, 4.9, 3.05))
    status, off = listed(points, Meshes.of(parts))
    assert status == "found"
    assert np.linalg.norm(off[0]) < 0.01


def cells(points):
    return surfels.of_cloud(*np.ascontiguousarray(points.T), 1.0, 0.2)


def test_normals_point_into_the_room_that_was_scanned():
    low, high = np.array([T, T, 0.0]), np.array([4.1, 5.3, 2.8])
    room = cells(scan(HOUSE, 1, low=low - 0.05, high=high + 0.05, clutter=0))
    faced = surfels.facing(room, room)
    assert faced.is_sided.mean() > 0.95
    inwards = ((low + high) / 2 - faced.places) * faced.normals
    assert (inwards.sum(axis=1)[faced.is_sided] > 0).all()
    np.testing.assert_array_equal(abs(faced.normals), abs(room.normals))


def test_no_side_is_known_of_a_wall_with_a_room_on_either_side():
    house = cells(scan(HOUSE, 1, clutter=0))
    faced = surfels.facing(house, house)
    x, y, z = house.places.T
    is_between = (abs(x - 4.2) < T) & (y > 1) & (y < 4.5) & (z > 0.5) & (z < 2.3)
    assert is_between.sum() > 50
    assert not faced.is_sided[is_between].any()


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([8, 8, 8], True), ([80, 80], False), ([8, 8, 4, 4], True), ([8, 8, 8, -8], False),
        ([8, 8, 8, 8, 8, -8], True), ([8, 8, 8, 8, 8, -8, -8], False), ([], False),
    ],
)  # fmt: skip
def test_three_layers_must_speak_for_a_placement(votes, expected):
    """Each counts once, however large it is; and three times as many as those against it."""
    votes = np.array(votes, np.int64)
    layer = np.repeat(np.arange(len(votes)), abs(votes))
    layers = decide.Layers(layer % 3, layer * 0.6)
    assert layers.speak_for(np.repeat(np.sign(votes), abs(votes))) is expected


def two_storeys(differing):
    """The same storey twice, but for some parts that are `GAP` off in the upper one."""
    upper = storey(3.0)
    for part, shift in differing.items():
        vertices, faces = upper[part]
        upper[part] = vertices + np.array(shift), faces
    return Meshes.of([*storey(), *upper])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("differing", "expected"),
    [
        ({9: (0, 0, GAP)}, "ambiguous"),
        ({4: (GAP, 0, 0), 5: (0, GAP, 0), 6: (-GAP, 0, 0), 9: (0, 0, GAP)}, "found"),
    ],
    ids=["a ceiling", "three walls and a ceiling"],
)
def test_storeys_are_told_apart_by_more_than_one_layer(differing, expected):
    """One part may have been built off its place, several of them not to just where others are."""
    tower = two_storeys(differing)
    points = scan(tower, 2, low=(0.1, 0.1, 2.95), high=(11.9, 8.9, 5.95), clutter=3)
    status, off = listed(points, tower)
    assert status == expected
    assert np.linalg.norm(off, axis=1).min() < 0.01
    if expected == "ambiguous":
        assert np.linalg.norm(off - [0, 0, -3.0], axis=1).min() < 0.02


def double_house(differing):
    """A storey and the same one after half a turn, but for some parts that are `GAP` off there."""
    other = storey()
    for part, shift in differing.items():
        vertices, faces = other[part]
        other[part] = vertices + np.array(shift), faces
    turned = [(v * [-1, -1, 1] + [24.0, 9.0, 0.0], faces) for v, faces in other]
    return Meshes.of([*storey(), *turned])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("differing", "expected"),
    [
        ({}, "ambiguous"),
        ({4: (GAP, 0, 0), 5: (0, GAP, 0)}, "ambiguous"),
        ({4: (GAP, 0, 0), 5: (0, GAP, 0), 6: (-GAP, 0, 0), 9: (0, 0, GAP)}, "found"),
    ],
    ids=["nothing", "two walls", "three walls and a ceiling"],
)
def test_half_a_turn_is_told_by_more_than_two_layers(differing, expected):
    houses = double_house(differing)
    points = scan(houses, 3, low=(0.1, 0.1, -0.05), high=(11.9, 8.9, 2.85), clutter=3)
    status, off = listed(points, houses)
    assert status == expected
    assert np.linalg.norm(off, axis=1).min() < 0.01
    # the middle of the part that was scanned is 12 m from where half a turn puts it
    is_turned = np.abs(np.linalg.norm(off[:, :2], axis=1) - 12.0) < 0.3
    assert is_turned.any() == (expected == "ambiguous")


@pytest.mark.slow
def test_a_building_that_is_seen_from_outside_only():
    """The sides of its faces are guessed wrong: most of what was scanned is inside of the hull."""
    parts = [
        ((0, 0, -T), (8, 6, 0)), ((0, 0, 3), (8, 6, 3 + T)), ((0, 0, 0), (T, 6, 3)),
        ((8 - T, 0, 0), (8, 6, 3)), ((0, 0, 0), (8, T, 3)), ((0, 6 - T, 0), (8, 6, 3)),
        ((8, 1, -T), (11, 4, 0)), ((8, 1, 2), (11, 4, 2 + T)), ((11 - T, 1, 0), (11, 4, 2)),
        ((8, 1, 0), (11, 1 + T, 2)), ((8, 4 - T, 0), (11, 4, 2)), ((3, T, 0), (3.1, 6 - T, 3)),
    ]  # fmt: skip
    house = Meshes.of([box(*each) for each in parts])
    points = scan(house, 2, clutter=0, density=1000, noise=0.005)
    hidden = [((0.05, 0.05, -1), (7.95, 5.95, 3.15)), ((7.9, 1.05, -1), (10.95, 3.95, 2.15))]
    for low, high in hidden:
        points = points[~((points > low) & (points < high)).all(axis=1)]
    state, offs = listed(points[points[:, 2] > -0.15], house)
    assert state in ("found", "ambiguous")
    assert np.linalg.norm(offs, axis=1).min() < 0.01
