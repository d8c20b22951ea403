"""Compression of vertices and indices: the decoder of the tests gives them back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from spatialq.export.tiles.meshopt import encode_indices, encode_vertices

from .tiles_reading import decode_indices, decode_vertices

pytestmark = pytest.mark.slow  # the decoder is plain Python

SHAPES = st.tuples(st.integers(1, 600), st.sampled_from([4, 8, 12, 64, 256]))


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_vertices_come_back(data):
    n, stride = data.draw(SHAPES)
    spread = data.draw(st.sampled_from([0, 1, 2, 7, 127]))
    seed = data.draw(st.integers(0, 1000))
    steps = np.random.default_rng(seed).integers(-spread, spread + 1, (n, stride))
    vertices = np.cumsum(steps, axis=0).astype(np.uint8)
    packed = encode_vertices(vertices)
    assert decode_vertices(packed, n, stride) == vertices.tobytes()
    assert len(packed) <= n * stride + stride * (n // 16 + 40) + 300


@settings(deadline=None, max_examples=50)
@given(arrays.arrays(np.uint32, st.integers(0, 300), elements=st.integers(0, 2**30 - 1)))
def test_indices_come_back(indices):
    assert decode_indices(encode_indices(indices), indices.size) == indices.tobytes()


def test_what_repeats_takes_little():
    """Sixteen equal bytes take two bits."""
    packed = encode_vertices(np.full((256, 8), 7, np.uint8))
    assert len(packed) == 1 + 8 * 4 + 32
    assert len(encode_indices(np.arange(3000, dtype=np.uint32))) == 1 + 3000 + 4
