"""The scenes that tests and benchmarks of planes run on."""

import numpy as np
import pytest

from .cases import rooms

PLANES = {
    "room": (12, 12), "box": (6, 6), "flat": (1, 1), "partitions": (8, 8), "crossing": (2, 2),
    "tables": (7, 8), "thin_wall": (8, 8), "building": (20, 192), "facade": (4, 67),
}  # fmt: skip
MOVE = {"turn": rooms.turn(3), "scale": 1 / 0.3048, "shift": (500_000, 5_000_000, 300)}


def distances(scene):
    on = scene.plane >= 0
    own = scene.planes[scene.plane[on]]
    return (
        own[:, 0] * scene.x[on] + own[:, 1] * scene.y[on] + own[:, 2] * scene.z[on] - own[:, 3]
    )  # fmt: skip


@pytest.mark.parametrize("name", rooms.SCENES)
def test_points_lie_on_their_planes_but_for_noise(name):
    scene = rooms.SCENES[name](30_000)
    assert scene.x.size == scene.y.size == scene.z.size == scene.plane.size == 30_000
    off = distances(scene)
    assert off.std() == pytest.approx(scene.noise, rel=0.03)
    assert np.abs(off).max() <= 5 * scene.noise
    assert set(np.unique(scene.plane)) - {-1} == set(range(len(scene.planes)))
    if name in PLANES:
        assert (len(scene.planes), scene.patch.max() + 1) == PLANES[name]
    np.testing.assert_allclose(np.linalg.norm(scene.planes[:, :3], axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("name", rooms.SCENES)
def test_the_truth_moves_with_the_points(name):
    scene = rooms.SCENES[name](3000)
    there = scene.moved(**MOVE)
    np.testing.assert_allclose(there.unit * distances(scene), distances(there), atol=2e-8)
    assert there.noise == pytest.approx(scene.noise / 0.3048)
    np.testing.assert_allclose(MOVE["turn"] @ MOVE["turn"].T, np.eye(3), atol=1e-15)


def test_a_seed_gives_the_same_points():
    one, same, other = (rooms.room(1000, seed=seed) for seed in (1, 1, 2))
    assert (one.x == same.x).all()
    assert (one.x != other.x).all()


def test_a_share_is_clutter():
    assert np.mean(rooms.room(50_000).plane < 0) == pytest.approx(rooms.CLUTTER, abs=0.01)
    assert (rooms.box(1000).plane >= 0).all()
