"""Elements that go to the GPU in parts have the relations of the whole."""

import pytest
from spatialq.udfs.intersects_with import cpu, gpu

from spatialq.data.meshes import Meshes
from spatialq.functions.catalogue import catalogue

from ..kernels import assert_same
from .cases import cube

ROW = [cube(1.0, (0.8 * k, 0.1 * k, 0.0)) for k in range(7)]
"""Each meets the next; the others are apart."""
OTHERS = [cube(0.5, (1.1 * k, 0.2, 0.2)) for k in range(5)]


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("relations", [False, True])
@pytest.mark.parametrize("others", [None, OTHERS, []], ids=["within", "two sets", "none"])
def test_parts_of_the_pairs(others, relations):
    a, b = Meshes.of(ROW), None if others is None else Meshes.of(others)
    options = catalogue()["intersects_with"].choose({"relations": relations})
    expected = cpu.run(a, b, options=options)
    assert len(expected["a"]) >= 5 or others == []
    for tiles in (2, 3, 1000):
        assert_same(gpu.run(a, b, options=options, tiles=tiles), expected)
