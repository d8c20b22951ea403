"""Elements that go to the GPU in parts have the distances of the whole."""

import pytest
from spatialq.udfs.distance import cpu, gpu

from spatialq.functions.catalogue import catalogue

from ..kernels import arguments_of, assert_same
from .cases import CASES


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", CASES)
def test_every_case_in_tiles(name):
    arguments, options = arguments_of("distance", name)
    options = catalogue()["distance"].choose(options)
    expected = cpu.run(**arguments, options=options)
    for tiles in (2, 1000):
        assert_same(gpu.run(**arguments, options=options, tiles=tiles), expected)
