"""What `intersects_with` refuses, and in which words."""

import re

import pytest
from spatialq.udfs.intersects_with import Options


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tolerance": -0.001}, "tolerance must be >= 0 metres, got -0.001"),
        ({"tolerance": float("nan")}, "tolerance must be >= 0 metres, got nan"),
        ({"tolerance": float("inf")}, "tolerance must be >= 0 metres, got inf"),
        ({"method": "obb"}, "method must be 'exact' or 'pairmesh', got 'obb'"),
        ({"method": "Exact"}, "method must be 'exact' or 'pairmesh', got 'Exact'"),
        ({"broad_phase": "bvh"}, "broad_phase must be 'auto' or 'rtree' or 'grid', got 'bvh'"),
    ],
)
def test_options(arguments, message):
    with pytest.raises(ValueError, match=re.escape(f"intersects_with: {message}")):
        Options(**arguments)


@pytest.mark.parametrize("arguments", [{}, {"tolerance": 0.0}, {"tolerance": 1.0}])
def test_good_options(arguments):
    assert Options(**arguments).tolerance == arguments.get("tolerance", 0.001)
