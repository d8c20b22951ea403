"""The clouds that the benchmarks run on."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def clouds():
    path = Path(__file__).parents[2] / "benchmarks" / "clouds.py"
    spec = importlib.util.spec_from_file_location("clouds", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["small", "sparse", "dense"])
def test_points_are_in_the_extent_and_rounded(clouds, kind):
    spec = clouds.KINDS[kind]
    x, y, z = clouds.make_cloud(kind, n=50_000)
    assert x.dtype == y.dtype == z.dtype == np.float64
    assert x.size == y.size == z.size == 50_000
    for values, low, extent in ((x, spec.west, spec.width), (y, spec.south, spec.depth)):
        assert low - spec.resolution <= values.min()
        assert values.max() <= low + extent + spec.resolution
        assert np.ptp(values) > 0.99 * extent
        np.testing.assert_allclose(values / spec.resolution, np.rint(values / spec.resolution))


def test_the_same_seed_gives_the_same_points(clouds):
    first, again = (clouds.make_cloud("small", n=10_000, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (clouds.make_cloud("small", n=10_000, seed=5)[0] != first[0]).any()


def test_strips_hold_the_same_points_in_flight_order(clouds):
    mixed = clouds.make_cloud("small", n=20_000)
    x, y, z = clouds.make_cloud("small", n=20_000, strips=True)
    strip = (x - clouds.KINDS["small"].west) // clouds.STRIP
    assert (np.diff(strip) >= 0).all()
    assert (np.diff(y)[np.diff(strip) == 0] >= 0).all()
    np.testing.assert_array_equal(np.sort(z), np.sort(mixed[2]))


def test_there_are_outliers_a_lake_and_uneven_strips(clouds):
    spec = clouds.KINDS["small"]
    x, y, z = clouds.make_cloud("small")
    u, v = x - spec.west, y - spec.south
    lake = np.hypot(u - 0.7 * spec.width, v - 0.3 * spec.depth) < 0.055 * spec.depth
    assert not lake.any()
    counts = np.histogram(u, bins=60, range=(0.0, spec.width))[0]
    assert counts.max() > 5 * counts.min()
    ground = np.array([clouds._terrain(a, b) for a, b in zip(u, v, strict=True)])
    # two in a hundred thousand points each, of two million
    assert 15 < (z - ground < -4.5).sum() < 80
    assert 15 < (z - ground > 50.0).sum() < 80
