"""A cloud whose points go to the GPU in runs has the planes of the whole."""

import numpy as np
import pytest

from spatialq.functions.catalogue import catalogue

from ..conftest import real_file
from ..kernels import arguments_of, assert_same
from .cases import CASES, rooms

OUTPUTS = ("detect_planes", "plane_points", "plane_nodes")


def tables(columns, options, kind, **tiles):
    function = catalogue()["detect_planes"]
    run = function.kernel_of_all(kind)
    return run(**columns, options=function.choose(options), outputs=OUTPUTS, **tiles)


def assert_same_tables(columns, options, tiles):
    found, expected = tables(columns, options, "gpu", tiles=tiles), tables(columns, options, "cpu")
    for name in OUTPUTS:
        assert_same(found[name], expected[name])


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", CASES)
def test_every_case_in_tiles(name):
    columns, options = arguments_of("detect_planes", name)
    assert_same_tables(columns, options, 3)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("tiles", [2, 7])
@pytest.mark.parametrize("order", ["in order", "shuffled"])
def test_a_room_in_tiles(tiles, order):
    """In order, tiles have the points of few surfaces; shuffled, all surfaces are in all tiles."""
    scene = rooms.room(6000)
    turn = np.random.default_rng(1).permutation(6000) if order == "shuffled" else slice(None)
    columns = {"x": scene.x[turn], "y": scene.y[turn], "z": scene.z[turn], "point_id": None}
    assert_same_tables(columns, {}, tiles)


@pytest.mark.usefixtures("device")
def test_what_is_not_finite_is_refused_for_the_whole():
    scene = rooms.room(500)
    columns = {axis: getattr(scene, axis).copy() for axis in "xyz"}
    columns["y"][[17, 400]] = np.inf
    with pytest.raises(ValueError, match=r"must be finite, got 2 points.*point_id 17"):
        tables({**columns, "point_id": None}, {}, "gpu", tiles=4)


@pytest.mark.slow
@pytest.mark.usefixtures("device")
def test_a_real_room_in_tiles():
    points = np.fromfile(real_file("golden/planes/room_100000.f32"), np.float32).reshape(-1, 3)
    x, y, z = np.ascontiguousarray(points[:15_000].T, np.float64)
    assert_same_tables({"x": x, "y": y, "z": z, "point_id": None}, {}, 5)
