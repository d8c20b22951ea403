"""Which points of a cloud are stray, against the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spatialq.data import strays

from .oracle import strays_of as by_definition


def random_cloud(rng, n):
    """Points of one of several kinds, some of them far away."""
    kind = rng.integers(5)
    points = (
        rng.uniform(0, 100, (n, 3)),
        rng.normal(0, 5, (n, 3)),
        rng.standard_cauchy((n, 3)),  # every scale has points
        np.repeat(rng.uniform(0, 9, (1, 3)), n, axis=0),  # one place
        np.exp(rng.uniform(-9, 9, (n, 3))) * rng.choice([-1, 1], (n, 3)),
    )[kind] * [1, 1, 10.0 ** rng.integers(-2, 2)]
    far = rng.choice(n, rng.integers(min(n, 30)), replace=False)
    axes = rng.random((far.size, 3)) < 0.6
    points[far] += axes * 10.0 ** rng.uniform(0, 9, (far.size, 3)) * rng.choice([-1, 1], 3)
    return points


def found_in(points, z_to_xy_scale=1.0):
    found = strays.strays_of(np.ascontiguousarray(points.T), z_to_xy_scale)
    return [] if found is None else found[0].tolist()


@given(st.integers(0, 2**32 - 1), st.integers(1, 700), st.sampled_from([1.0, 0.3048]))
@settings(deadline=None)
def test_is_the_definition(seed, n, z_to_xy_scale):
    rng = np.random.default_rng(seed)
    points = random_cloud(rng, n)
    assert found_in(points, z_to_xy_scale) == by_definition(points, z_to_xy_scale)


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_a_sample_gives_the_same(seed):
    """Samples are smaller than the cloud; the order of the points decides what is in them."""
    rng = np.random.default_rng(seed)
    points = random_cloud(rng, 700)
    points = points[np.argsort(points[:, 0])] if rng.random() < 0.5 else points
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strays, "SAMPLED", 64)
        patch.setattr(strays, "TAIL", 16)
        patch.setattr(strays, "BLOCK", 100)
        assert found_in(points) == by_definition(points)


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_one_more_makes_no_other_stray(seed):
    rng = np.random.default_rng(seed)
    points = random_cloud(rng, 550)
    alone = found_in(points)
    more = np.insert(points, 7, [1e12, -1e12, 1e12], axis=0)
    few = strays.few(len(points))
    core = np.sort(points, axis=0)[few:-few]
    if len(alone) < few and np.ptp(core, axis=0).any():
        assert found_in(more) == sorted([7, *(k + (k >= 7) for k in alone)])


@pytest.mark.parametrize("n", [0, 1, 2, 99])
def test_few_points_have_no_strays(n):
    points = np.zeros((n, 3))
    points[:1] = 1e9
    assert found_in(points) == []


def test_up_to_ten_on_each_side():
    points = np.random.default_rng(4).uniform(0, 10, (1000, 3))
    points[:10, 0] = 1e6
    points[10:20, 1] = -1e7
    points[20:30, 2] = 1e9
    assert found_in(points) == list(range(30))
    points[30, 0] = 1e6
    assert found_in(points) == list(range(10, 30))  # eleven are a part of the cloud


@pytest.mark.parametrize("z_to_xy_scale", [1.0, 0.3048])
def test_one_place_reaches_a_thousand_units(z_to_xy_scale):
    points = np.full((1000, 3), 500000.0)
    assert found_in(points, z_to_xy_scale) == []
    points[4, 0] += 1000
    points[5, 2] -= 1000 / z_to_xy_scale
    assert found_in(points, z_to_xy_scale) == []
    points[6, 1] -= 1600  # the others reach 500 farther than they are
    assert found_in(points, z_to_xy_scale) == [6]
    points[:] = 500000.0
    points[7, 0], points[8, 2] = 1e7, 500000.0 + 1001 / z_to_xy_scale
    assert found_in(points, z_to_xy_scale) == [7, 8]
    points[9, 0] += 0.001  # the core is still one place
    assert found_in(points, z_to_xy_scale) == [7, 8]


def test_not_finite_is_not_stray():
    points = np.random.default_rng(4).uniform(0, 10, (1000, 3))
    points[3] = 1e9
    for bad in (np.nan, np.inf, -np.inf):
        points[5, 2] = bad
        assert found_in(points) == []


def test_the_box_is_that_of_the_others():
    points = np.random.default_rng(4).uniform(0, 10, (1000, 3))
    points[17] = 1e9
    _, box = strays.strays_of(points.T)
    others = np.delete(points, 17, axis=0)
    np.testing.assert_array_equal(box.low, others.min(axis=0))
    np.testing.assert_array_equal(box.high, others.max(axis=0))


def test_values_at_the_end_of_double_precision():
    points = np.random.default_rng(4).uniform(0, 10, (1000, 3))
    points[17] = [1.7e308, -1.7e308, 0]
    assert found_in(points) == [17]
    points[17] = 5
    assert found_in(points * 1e307) == []
