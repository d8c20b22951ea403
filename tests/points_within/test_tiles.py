"""Points that go to the GPU in runs have the pairs of the whole."""

import numpy as np
import pytest
from spatialq.udfs.points_within import cpu, gpu

from spatialq.functions.catalogue import catalogue

from ..kernels import arguments_of, assert_same
from .cases import CASES


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("has_ids", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_every_case_in_tiles(name, has_ids):
    arguments, options = arguments_of("points_within", name)
    options = catalogue()["points_within"].choose(options)
    arguments = arguments if has_ids else {**arguments, "point_id": None}
    expected = cpu.run(**arguments, options=options)
    for tiles in (2, 7):
        assert_same(gpu.run(**arguments, options=options, tiles=tiles), expected)


@pytest.mark.usefixtures("device")
def test_what_is_not_finite_is_refused_as_on_the_cpu():
    arguments, _ = arguments_of("points_within", "far from the origin")
    arguments["y"][[4, 7]] = np.inf, np.nan
    options = catalogue()["points_within"].choose({})
    sentences = []
    for kernel in (cpu, gpu):
        with pytest.raises(ValueError, match="points_within: x and y must be finite") as error:
            kernel.run(**arguments, options=options)
        sentences.append(str(error.value))
    assert sentences[0] == sentences[1]
