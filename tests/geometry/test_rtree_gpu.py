"""The R-tree on the GPU, or its CUDA source on the host: the same boxes and pairs."""

import numpy as np
import pytest

from spatialq.data.meshes import Meshes
from spatialq.geometry import boxes, rtree, rtree_gpu

from .test_broad_phase import CASES, MANY, boxes_of, scattered


def found_there(device, a, b, distance):
    there = [None if each is None else device.upload_small(each) for each in (a, b)]
    return [device.download(rows) for rows in rtree_gpu.pairs(device, *there, distance)]


def assert_as_on_the_cpu(device, a, b, distance):
    for found, expected in zip(
        found_there(device, a, b, distance), rtree.pairs(a, b, distance), strict=True
    ):
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_as_on_the_cpu(device, case):
    assert_as_on_the_cpu(device, *CASES[case])


def test_a_giant_is_left_to_many_threads(device):
    giants = boxes_of(np.full((2, 3), -1e4), np.array([[2e4] * 3, [1e4 + 5.0] * 3]))
    many = np.vstack([scattered(1500, extent=0.5), giants, scattered(1500, seed=1, extent=0.5)])
    assert_as_on_the_cpu(device, many, None, 0.001)
    assert_as_on_the_cpu(device, many, giants, 0.001)
    assert_as_on_the_cpu(device, giants, many, 0.001)


def test_more_pairs_than_expected_are_all_found(device):
    equal = np.tile(MANY[:1], (300, 1))
    assert_as_on_the_cpu(device, equal, None, 0.0)
    assert_as_on_the_cpu(device, equal, MANY[:200], 0.0)


def test_boxes_are_as_on_the_cpu(device):
    rng = np.random.default_rng(8)
    parts = []
    for n in (12, 0, 1, 11, 32, 500):
        vertices = 5e6 + rng.normal(size=(n + 4, 3))
        parts.append((vertices, rng.integers(0, n + 3, (n, 3))))
    meshes = Meshes.of(parts)
    there = Meshes(*(device.upload_small(getattr(meshes, name)) for name in meshes.__match_args__))
    found = device.download(rtree_gpu.boxes(device, there))
    np.testing.assert_array_equal(found, boxes.of(meshes))
    assert np.isinf(found[1]).all()
