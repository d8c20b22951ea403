"""`plane_elements` with the planes of the GPU gives what it gives with those of the CPU."""

import numpy as np
import pytest

from spatialq.data.meshes import Meshes
from spatialq.functions.catalogue import catalogue

from ..kernels import assert_same, run_both
from .cases import ROOM, patch

POINTS = np.concatenate([
    patch((0, 0, 0), (4, 0, 0), (0, 0, 2.5), n=900, noise=0.003, seed=1)[0],
    patch((3.97, 0, 0), (0, 3, 0), (0, 0, 2.5), n=900, noise=0.003, seed=2)[0],
    patch((1, 1, 0.75), (1.6, 0, 0), (0, 0.9, 0), n=600, noise=0.003, seed=3)[0],
])  # fmt: skip


def run_in_tiles(arguments):
    function = catalogue()["plane_elements"]
    return function.kernel("gpu")(**arguments, options=function.choose({}), tiles=4)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("elements", [ROOM, []], ids=["a room", "no elements"])
def test_as_on_the_cpu(elements):
    columns = dict(zip("xyz", np.ascontiguousarray(POINTS.T), strict=True))
    arguments = {"point_id": np.arange(len(POINTS)), "elements": Meshes.of(elements)}
    found, expected = run_both("plane_elements", {**columns, **arguments})
    assert_same(found, expected)
    assert_same(run_in_tiles({**columns, **arguments}), expected)
    assert sorted(found["element"].tolist()) == ([-1, 0, 3] if elements else [-1, -1, -1])
