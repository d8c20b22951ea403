"""The limit beyond which distances are those of noise, from sums that no order changes.

A float64 that is not below 0 is a whole number of 2^-1074. As such, distances are added up without
rounding: the sum is the same in any order, and of any parts that were added up before.
"""

from collections.abc import Callable
from math import inf, sqrt
from typing import Any

import numpy as np

from spatialq.runtime.arrays import Floats
from spatialq.runtime.threads import steps

UNIT = 1074
"""Sums are whole numbers of 2^-UNIT, the least float64."""
EXPONENTS, FRACTION, LOW = 1 << 11, 52, 26
"""Exponents of float64 as they are stored, with that of infinity; bits of a fraction; those of its
lower part."""
AT_ONCE = 1 << 16


def limit_of(n: int, multiplier: float, total: Callable[[float, int], int]) -> float:
    """Give the mean of n distances plus so many standard deviations, with n - 1 in these.

    Parameters
    ----------
    n : int
        At least 2.
    multiplier : float
    total : callable
        Gets a centre, and a power of the differences of distances from it; adds these up, as
        `total_of`.
    """
    mean = mean_of(total(0.0, 1), n)
    if mean == inf or multiplier == 0.0:
        return mean
    return mean + multiplier * sqrt(mean_of(total(mean, 2), n - 1))


def mean_of(total: int, n: int) -> float:
    """Divide a sum, and round once; infinite where a number is, or the sum is beyond float64."""
    return total / (n << UNIT) if total < 1 << UNIT + 1024 else inf


def total_of(values: Floats, centre: float, power: int) -> int:
    """Add up powers of the differences of numbers from a centre, in units of 2^-UNIT.

    Parameters
    ----------
    values : float64[n]
    centre : float
    power : int
        1, if none is below the centre, or 2.
    """
    high, low = np.zeros((2, EXPONENTS), np.uint64)
    for first, stop in steps(0, len(values), AT_ONCE):
        away = values[first:stop] - centre
        with np.errstate(over="ignore"):
            bits = (away if power == 1 else away * away).view(np.int64)
        exponent = bits >> FRACTION
        mantissa = bits & ((1 << FRACTION) - 1) | (exponent > 0).astype(np.int64) << FRACTION
        # sums of so few such parts are exact in float64, too
        for sums, part in ((high, mantissa >> LOW), (low, mantissa & ((1 << LOW) - 1))):
            sums += np.bincount(exponent, part, EXPONENTS).astype(np.uint64)
    return whole(high, low)


def whole(high: Any, low: Any) -> int:
    """Give a sum in units of 2^-UNIT from those of the parts of mantissas.

    Parameters
    ----------
    high, low : uint64[EXPONENTS]
        Of all numbers with an exponent, the sums of their mantissas without the LOW last bits, and
        of these bits.
    """
    return sum(
        ((int(high[exponent]) << LOW) + int(low[exponent])) << max(exponent - 1, 0)
        for exponent in np.flatnonzero(high | low).tolist()
    )
