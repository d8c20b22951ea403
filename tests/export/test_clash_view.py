"""From where a clash is seen: both elements must be, by rays that are cast by brute force."""

import numpy as np
import pytest

from spatialq.data.meshes import Meshes
from spatialq.export.clash_view import COLOURS, see

from .ray_casting import cast
from .test_rasteriser import BOX, SIDES


def box(low, high):
    return BOX * np.subtract(high, low) + low, SIDES


def triangles(mesh):
    return mesh[0][mesh[1]]


def covered(view, *boxes):
    """How many pixels of a small picture the rays find of each box."""
    wide, tall = 80, 60
    item, _, _ = cast(view.camera, np.concatenate([triangles(each) for each in boxes]), wide, tall)
    return [np.count_nonzero(item // len(SIDES) == k) for k in range(len(boxes))]


CUBE, CORE = box((0, 0, 0), (3, 3, 3)), box((0.1, 0.1, 0.1), (2.9, 2.9, 2.9))
COLUMN = box((0, 0, 0), (1, 1, 3))
CASES = {
    "through each other": (
        box((-2, 0, 0), (2, 1, 1)), box((0, -2, 0.2), (0.5, 3, 0.8)), (0.2, 0.5, 0.5), "plain",
    ),
    "side by side": (box((0, 0, 0), (1, 1, 1)), box((1, 0, 0), (2, 1, 1)), (1, 0.5, 0.5), "plain"),
    "one inside": (CUBE, CORE, (1.5, 1.5, 1.5), "cut"),
    "the other inside": (CORE, CUBE, (1.5, 1.5, 1.5), "cut"),
    "equal": (COLUMN, COLUMN, (0.5, 0.5, 1.5), "veil"),
    "thin": (CUBE, box((1, 1, -2), (1.1, 1.1, 5)), (1, 1, 1), "plain"),
    "thin inside": (
        box((-1, -0.1, 0), (1, 0.1, 3)), box((0, 0, 1), (0.04, 0.04, 2)), (0, 0, 1.5), "cut",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_both_elements_are_seen(name):
    a, b, point, way = CASES[name]
    corners = np.concatenate([a[0], b[0]])
    shell = box(corners.min(axis=0) - 0.1, corners.max(axis=0) + 0.1)
    view = see(np.array(point, float), Meshes.of([a, b]), Meshes.of([shell]))
    assert ("cut" if view.is_cut else "plain" if view.veil is None else "veil") == way
    assert view.others.tolist() == []  # the shell hides both
    for k, colour in enumerate(COLOURS):
        own = view.picture.pixels[view.picture.item == k]
        assert len(own) > 30
        light = own / np.array(colour)
        np.testing.assert_allclose(light, light[:, :1] * [1, 1, 1], atol=0.05)
    if view.veil is None:
        assert min(covered(view, a, b)) > 0
    else:
        assert covered(view, (a, b)[1 - view.veil]) > [0]


def test_what_hides_nothing_stays():
    a, b, point, _ = CASES["through each other"]
    floor, shell = box((-9, -9, -2), (9, 9, -1.9)), box((-3, -3, -1), (4, 4, 2))
    view = see(np.array(point), Meshes.of([a, b]), Meshes.of([shell, floor]))
    assert view.others.tolist() == [1]
    assert (view.picture.item == 2).any()
