"""The CUDA source, on the host or on a GPU, gives the bits of the CPU kernel."""

import numpy as np
import pytest

from spatialq.data.meshes import Meshes

from ..kernels import assert_same, run_both
from .cases import LATTICE, ball, cube, tetrahedra

MANY = [*LATTICE, *tetrahedra(9, 5, 3), ball(1, 1, 1, 0.7), ball(3, 2, 1, 1.5), cube(1, 1, 1, 9)]


@pytest.mark.parametrize("options", [{}, {"max_distance": 0.3}, {"k": 3}], ids=str)
def test_many_shapes_are_as_on_the_cpu(device, options):
    meshes = {"a": Meshes.of(MANY), "b": Meshes.of(MANY[::3])}
    assert_same(*run_both("distance", meshes, **options))


def test_asked_pairs_are_as_on_the_cpu(device):
    pairs = np.array([0, 3, 3]), np.array([5, 4, 19])
    results = run_both("distance", {"a": Meshes.of(MANY), "pairs": pairs})
    assert_same(*results)
    assert results[0]["a"].tolist() == pairs[0].tolist()
