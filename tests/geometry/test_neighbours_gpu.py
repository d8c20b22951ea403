"""The search for neighbours on the GPU, or its CUDA sources on the host: the tree of the CPU."""

import numpy as np
import pytest

from spatialq.geometry.neighbours_gpu import NeighboursOnGpu

from .test_neighbours import CLOUDS, RNG, search


@pytest.mark.parametrize("name", [*CLOUDS, "both zeros", "extremes"])
def test_the_tree_is_that_of_the_cpu(device, name):
    more = {
        "both zeros": np.where(RNG.random((300, 3)) < 0.5, 0.0, -0.0),
        "extremes": RNG.choice([-1e300, -5e-324, 0.0, 5e-324, 1e300], (300, 3)),
    }
    points = {**CLOUDS, **more}[name]
    expected = search(points)
    there = device.upload(list(np.ascontiguousarray(points.T)))
    found = NeighboursOnGpu(device, *there)
    assert found.levels == expected.levels
    np.testing.assert_array_equal(device.download(found.points), expected.points)
    np.testing.assert_array_equal(device.download(found.order), expected.order)
    if len(points):
        np.testing.assert_array_equal(device.download(found.boxes), expected.boxes)
        np.testing.assert_array_equal(device.download(found.lowest), expected.lowest)
