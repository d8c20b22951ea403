"""Counts of masks, on the host and on a GPU."""

import numpy as np
import pytest

from spatialq.runtime import cuda

from .kernels import on_device


@pytest.mark.parametrize("size", [0, 1, 31, 256, 257, 70_001])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8])
def test_what_is_set_is_counted(device, monkeypatch, size, dtype):
    mask = np.random.default_rng(size).integers(0, 3, size).astype(dtype)
    assert cuda.count(mask) == np.count_nonzero(mask)
    monkeypatch.setattr(cuda, "on_gpu", lambda _: True)
    assert cuda.count(on_device(device, mask)) == np.count_nonzero(mask)


def test_a_mask_has_any_shape(device, monkeypatch):
    mask = np.arange(12).reshape(3, 4) % 3 == 0
    monkeypatch.setattr(cuda, "on_gpu", lambda _: True)
    assert cuda.count(on_device(device, mask)) == 4
