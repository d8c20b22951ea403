"""The limit of statistical noise: exact sums, against fractions."""

from fractions import Fraction
from math import fsum, inf, sqrt

import numpy as np
import pytest
from spatialq.udfs.classify_noise import limit

RNG = np.random.default_rng(3)
EDGES = [0.0, 5e-324, 1e-310, 2.0**-1022, np.nextafter(2.0**-1022, 0), 1.0, np.nextafter(1.0, 2)]
MIXED = np.concatenate([EDGES, RNG.random(150_000) * 10.0 ** RNG.integers(-300, 300, 150_000)])


def test_sums_are_exact():
    total = Fraction(limit.total_of(MIXED, 0.0, 1), 1 << limit.UNIT)
    assert total == sum(map(Fraction, MIXED.tolist()))
    values = RNG.random(5000) * 10
    squares = Fraction(limit.total_of(values, 3.7, 2), 1 << limit.UNIT)
    assert squares == sum(Fraction((each - 3.7) * (each - 3.7)) for each in values.tolist())


def test_parts_add_up_in_any_order():
    parts = np.split(RNG.permutation(MIXED), [10, 11, 70_000])
    sums = [limit.total_of(part, 0.0, 1) for part in parts]
    assert sum(reversed(sums)) == limit.total_of(MIXED, 0.0, 1)
    assert limit.total_of(np.empty(0), 0.0, 1) == 0


def test_the_limit_is_the_mean_and_standard_deviations():
    values = RNG.gamma(2.0, size=20_000)
    found = limit.limit_of(values.size, 2.5, lambda *more: limit.total_of(values, *more))
    mean = fsum(values.tolist()) / values.size
    deviation = sqrt(fsum(((values - mean) ** 2).tolist()) / (values.size - 1))
    assert found == pytest.approx(mean + 2.5 * deviation, rel=1e-15)


def test_of_equal_distances_it_is_that_distance():
    values = np.full(1001, 0.1)
    assert limit.limit_of(1001, 3.0, lambda *more: limit.total_of(values, *more)) == 0.1


@pytest.mark.parametrize("multiplier", [0.0, 2.5])
@pytest.mark.parametrize("far", [inf, 1.7e308])
@pytest.mark.parametrize("n", [2, 4, 1000])
def test_distances_whose_sum_is_infinite_make_it_infinite(n, far, multiplier):
    values = np.ones(n)
    values[-2:] = far
    assert limit.limit_of(n, multiplier, lambda *more: limit.total_of(values, *more)) == inf
