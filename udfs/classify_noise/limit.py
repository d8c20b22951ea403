"""The limit beyond which distances are those of noise, from sums in one order on all devices."""

from collections.abc import Callable
from math import sqrt
from typing import Any

from spatialq.runtime.arrays import Floats

RUN = 256
"""Values that are added up one after the other; their sums then likewise."""


def limit_of(
    distance: Floats,
    multiplier: float,
    empty: Callable[[int], Any],
    add: Callable[[Any, float, int, Any], None],
) -> float:
    """Give the mean of distances plus so many standard deviations, with n - 1 in these.

    Parameters
    ----------
    distance : float64[n], n > 1
    multiplier : float
    empty : callable
        Makes float64[m] where the distances are.
    add : callable
        Gets values, float64[m]; a centre; the power, 1 or 2, of their differences from it that is
        added up; and where the sum of each run goes, float64[m / RUN] rounded up.
    """

    def total(centre: float, power: int) -> float:
        values = distance
        while len(values) > 1:
            sums = empty(-(-len(values) // RUN))
            add(values, centre, power, sums)
            values, centre, power = sums, 0.0, 1
        return float(values[0])

    n = len(distance)
    mean = total(0.0, 1) / n
    return mean + multiplier * sqrt(total(mean, 2) / (n - 1))
