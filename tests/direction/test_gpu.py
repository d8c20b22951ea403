"""`direction` on the GPU gives the pairs of the CPU; without one its source runs on the host."""

import numpy as np
import pytest

from spatialq.data.meshes import Meshes

from ..host.device import HostDevice
from ..kernels import assert_same, run_both
from .cases import box, together
from .test_oracle import KINDS, blocks, scene


@pytest.mark.parametrize(("model", "strict"), KINDS)
@pytest.mark.parametrize("direction", ["above", "below", "west"])
def test_scenes_are_as_on_the_cpu(device, model, strict, direction):
    _, cubes = scene(20)
    many = [*cubes, *blocks(21), together(*blocks(22, 40))]
    if isinstance(device, HostDevice):  # the host takes a second for a few pairs
        many = many[::3]
    many = Meshes.of(many)
    chosen = {"direction": direction, "model": model, "strict": strict, "true_north": 33.0}
    found, expected = run_both("direction", {"a": many}, **chosen)
    assert_same(found, expected)
    assert len(found["a"]) or (strict and isinstance(device, HostDevice))
    rows = np.random.default_rng(23).integers(
        0, len(many), (2, 99 if not isinstance(device, HostDevice) else 9)
    )
    pairs = {"a": many, "b": many, "pairs": (rows[0], rows[1])}
    assert_same(*run_both("direction", pairs, **chosen))


@pytest.mark.usefixtures("device")
def test_nothing_at_all():
    none, some = Meshes.of([]), Meshes.of([box((0, 0, 0), (1, 1, 1))])
    for a, b in ((none, None), (some, None), (none, some), (some, none)):
        assert_same(*run_both("direction", {"a": a, "b": b}))
