"""Logarithm and cube root: as in the C library, and to the bit alike on all devices."""

import numpy as np
import pytest

from spatialq.geometry.elementary import cube_root, logarithm

RNG = np.random.default_rng(2)
NUMBERS = np.concatenate(
    [
        RNG.random(20_000),
        1 + RNG.normal(size=2000) * 1e-9,
        np.exp(RNG.uniform(-745, 709, 20_000)),
        [5e-324, 2.2e-308, 0.5, np.nextafter(0.5, 0), np.sqrt(0.5), 1.0, 2.0, 8.0, 1.7e308],
    ]
)
SOURCE = """#include "geometry/elementary.cuh"

extern "C" __global__ void elementary(const double* x, long long n, double* logarithms,
                                      double* roots) {
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    logarithms[i] = logarithm(x[i]);
    roots[i] = cube_root(x[i]);
}
"""


@pytest.mark.parametrize(
    ("function", "expected", "units"), [(logarithm, np.log, 1), (cube_root, np.cbrt, 2)]
)
def test_as_the_c_library(function, expected, units):
    found = np.array([function(x) for x in NUMBERS])
    right = expected(NUMBERS)
    assert (np.abs(found - right) <= units * np.spacing(np.abs(right))).all()


def test_roots_of_nothing_and_infinity():
    assert cube_root(0.0) == 0.0
    assert cube_root(np.inf) == np.inf
    assert np.isnan(cube_root(np.nan))
    assert logarithm(1.0) == 0.0


def test_devices_round_alike(device, tmp_path):
    source = tmp_path / "own" / "elementary.cu"
    source.parent.mkdir()
    source.write_text(SOURCE)
    with device.use():
        (there,) = device.upload([NUMBERS])
        found = device.xp.empty(NUMBERS.size), device.xp.empty(NUMBERS.size)
        blocks = (-(-NUMBERS.size // 128),)
        device.launch(source, "elementary", blocks, 128, there, NUMBERS.size, *found)
        logarithms, roots = map(device.download, found)
    assert logarithms.tolist() == [logarithm(x) for x in NUMBERS]
    assert roots.tolist() == [cube_root(x) for x in NUMBERS]
