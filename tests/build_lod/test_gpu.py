"""The GPU's tree is the CPU's, to the bit; without a GPU its sources run on the host."""

import numpy as np
import pytest
from spatialq.udfs.build_lod import UDF, Options, cpu, gpu
from spatialq.udfs.build_lod.tree import Root, Tree

from spatialq.udf import Lists, Text

from ..host.device import OnDevice
from ..test_parity import device
from .cases import CASES, random
from .test_cpu import CLOUD
from .test_oracle import STRATEGIES, cube_of, points_of
from .test_cpu import assert_same as assert_same_tree

__all__ = ["device"]


def assert_same_table(found, expected):
    assert list(found) == list(expected)
    for name, values in expected.items():
        if isinstance(values, Lists):
            np.testing.assert_array_equal(found[name].offsets, values.offsets)
            assert_same_table(found[name].columns, values.columns)
        elif isinstance(values, Text):
            np.testing.assert_array_equal(found[name].codes, values.codes)
            assert found[name].names == values.names
        else:
            assert found[name].dtype == values.dtype, name
            np.testing.assert_array_equal(found[name], values, err_msg=name)


def both(columns, **options):
    return (UDF.kernel(kind)(**columns, options=Options(**options)) for kind in ("gpu", "cpu"))


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", CASES)
def test_every_case_is_as_on_the_cpu(case, strategy):
    columns, options = CASES[case]
    assert_same_table(*both(columns, strategy=strategy, **options))
