"""The CUDA source, on the host or on a GPU, gives the bits of the CPU kernel."""

import numpy as np
import pytest
from spatialq.udfs.distance import Options, cpu, gpu

from spatialq.data.meshes import Meshes

from ..test_parity import assert_same
from .cases import CASES, LATTICE, ball, cube, tetrahedra

MANY = [*LATTICE, *tetrahedra(9, 5, 3), ball(1, 1, 1, 0.7), ball(3, 2, 1, 1.5), cube(1, 1, 1, 9)]


def compare(a, b, **options):
    meshes = Meshes.of(a), None if b is None else Meshes.of(b)
    results = [kernel.run(*meshes, options=Options(**options)) for kernel in (gpu, cpu)]
    assert_same(*results)


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_as_on_the_cpu(device, case):
    a, b, options = CASES[case]
    compare(a, b, **options)


@pytest.mark.parametrize("options", [{}, {"max_distance": 0.3}, {"k": 3}], ids=str)
def test_many_shapes_are_as_on_the_cpu(device, options):
    compare(MANY, MANY[::3], **options)


def test_asked_pairs_are_as_on_the_cpu(device):
    meshes, pairs = Meshes.of(MANY), (np.array([0, 3, 3]), np.array([5, 4, 19]))
    results = [kernel.run(meshes, options=Options(), pairs=pairs) for kernel in (gpu, cpu)]
    assert_same(*results)
    assert results[0]["a"].tolist() == pairs[0].tolist()
