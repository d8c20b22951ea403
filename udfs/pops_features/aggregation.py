"""Statistics of a feature over the patches of an example: nine numbers per feature and scale."""

import numpy as np

from spatialq.runtime.compile_cache import njit

from .features import shape
from .lanes import MAX_NETWORK, WIDTH
from .methods import STATISTICS
from .order import BUCKETS, FIVE, five_of_lanes, five_of_many

NINE = len(STATISTICS)


@njit(cache=True, nogil=True, error_model="numpy")
def aggregate(raw, min_values, complete, whole, linear, statistics, patches):
    """Compute the statistics of series of values (section 5).

    Parameters
    ----------
    raw : float64[series, n]
        NaN where a patch has no features.
    min_values : int, >= 1
        Minimum number of values of a series.
    complete, whole : int64[exchanges, 2]
        From `order.exchanges`, for n values.
    linear : bool
        Whether quartiles are of type 7 instead of type 8.
    statistics : float64[9, series]
        Out: mean, variance, skewness, kurtosis, minimum, quartiles, maximum; NaN for a series with
        too few values.
    patches : int64[series]
        Out: number of values of each series.
    """
    total, n = raw.shape
    sets = np.empty((min(n, MAX_NETWORK), WIDTH))
    sums = np.empty((4, WIDTH))
    five = np.empty((FIVE, total))
    values, rest, buckets = np.empty(n), np.empty(n), np.empty(BUCKETS, np.int64)
    for first in range(0, total, WIDTH):
        lanes = min(WIDTH, total - first)
        for lane in range(lanes):
            patches[first + lane] = sum_up(raw[first + lane], sums, lane)
        if n <= MAX_NETWORK:
            for k in range(n):
                for lane in range(WIDTH):
                    sets[k, lane] = raw[first + min(lane, lanes - 1), k]
            of_lanes = patches[first : first + lanes]
            five_of_lanes(sets, of_lanes, lanes, complete, whole, linear, five, first)
        for lane in range(lanes):
            at, m = first + lane, patches[first + lane]
            if m < min_values:
                statistics[:, at] = np.nan
                continue
            if n > MAX_NETWORK:
                k = 0
                for value in raw[at]:
                    if value == value:
                        values[k] = value
                        k += 1
                five_of_many(values, m, linear, buckets, rest, five, at)
            variance, skewness, kurtosis = shape(sums[1, lane], sums[2, lane], sums[3, lane], m)
            statistics[0, at] = sums[0, lane]
            statistics[1, at] = variance
            statistics[2, at] = skewness
            statistics[3, at] = kurtosis
            for k in range(FIVE):
                statistics[4 + k, at] = five[k, at]


@njit(cache=True, nogil=True, error_model="numpy")
def sum_up(series, sums, lane):
    """Write mean and sums of powers about it (2, 3, 4) to sums[:, lane]; return the count."""
    m, base, total = 0, 0.0, 0.0
    for value in series:
        if value == value:
            if m == 0:
                base = value
            m += 1
            total += value - base
    mean = total / m
    m2, m3, m4 = 0.0, 0.0, 0.0
    for value in series:
        if value == value:
            e = (value - base) - mean
            ee = e * e
            m2 += ee
            m3 += ee * e
            m4 += ee * ee
    sums[0, lane], sums[1, lane], sums[2, lane], sums[3, lane] = base + mean, m2, m3, m4
    return m
