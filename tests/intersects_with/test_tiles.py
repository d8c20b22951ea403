"""Elements that go to the GPU in parts have the relations of the whole."""

import numpy as np
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
def test_an_element_in_both_sets_does_not_meet_itself():
    a, b = Meshes.of(ROW), Meshes.of([*OTHERS[:2], *ROW[2:5]])
    identities = np.arange(7, dtype=np.uint64), np.array([90, 91, 2, 3, 4], np.uint64)
    options = catalogue()["intersects_with"].choose({})
    everything = cpu.run(a, b, options=options)
    keep = identities[0][everything["a"]] != identities[1][everything["b"]]
    assert (~keep).sum() == 3
    expected = {name: values[keep] for name, values in everything.items()}
    assert_same(cpu.run(a, b, options=options, identities=identities), expected)
    assert_same(gpu.run(a, b, options=options, identities=identities), expected)
    assert_same(gpu.run(a, b, options=options, identities=identities, tiles=2), expected)


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
