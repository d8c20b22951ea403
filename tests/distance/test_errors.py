"""`distance` with options that it cannot have."""

import math

import pytest
from spatialq.udfs.distance import Options


@pytest.mark.parametrize("value", [-0.001, math.nan, math.inf])
def test_a_distance_that_is_none_is_refused(value):
    right = f"distance: max_distance must be >= 0 metres, got {value!r}"
    with pytest.raises(ValueError, match=right):
        Options(max_distance=value)


@pytest.mark.parametrize("value", [0, -1])
def test_no_neighbours_are_refused(value):
    with pytest.raises(ValueError, match=f"distance: k must be >= 1, got {value}"):
        Options(k=value)
