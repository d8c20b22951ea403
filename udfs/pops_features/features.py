"""Features of patches from their moments and order statistics."""

from math import sqrt

import numpy as np

from spatialq.numba_cache import njit

from ..detect_planes.eigen import eigen
from .moments import M2, M3, M4, MEAN, MX, MY

HEIGHT = sqrt(0.75)
"""Of the triangle in which the ternary variant places the ratios."""


@njit(cache=True, nogil=True, error_model="numpy")
def shape(m2, m3, m4, n):
    """Give variance, skewness and excess kurtosis of a population; 0, 0, -3 where all are equal."""
    variance = m2 / n
    if m2 == 0.0:
        return 0.0, 0.0, -3.0
    return variance, (m3 / n) / (variance * sqrt(variance)), (m4 / n) / (variance * variance) - 3.0


@njit(cache=True, nogil=True, error_model="numpy")
def write_stat(moments, five, at, n, raw, row):
    """Write mean, variance, skewness, kurtosis, minimum, quartiles and maximum (section 4.2)."""
    variance, skewness, kurtosis = shape(moments[M2, at], moments[M3, at], moments[M4, at], n)
    raw[row, at] = moments[MEAN, at]
    raw[row + 1, at] = variance
    raw[row + 2, at] = skewness
    raw[row + 3, at] = kurtosis
    for k in range(5):
        raw[row + 4 + k, at] = five[k, at]


@njit(cache=True, nogil=True, error_model="numpy")
def write_stat_centred(moments, five, at, n, raw, row):
    """Write the statistics of the published code: standard deviation, heights about the mean."""
    variance, skewness, kurtosis = shape(moments[M2, at], moments[M3, at], moments[M4, at], n)
    raw[row, at] = sqrt(variance)
    raw[row + 1, at] = skewness
    raw[row + 2, at] = kurtosis
    for k in range(5):
        raw[row + 3 + k, at] = five[k, at] - moments[MEAN, at]


@njit(cache=True, nogil=True, error_model="numpy")
def write_pca(xx, xy, yy, moments, at, dx, dy, values, vectors, raw, pca, ternary):
    """Write the explained variance ratios, or where they are in the published triangle.

    Without missing cells x and y do not correlate. Where their variances a are equal, too, as in a
    square patch, one eigenvalue is a and the others follow from a quadratic equation: a is the
    middle one, since z correlates with x and y at most completely.

    Parameters
    ----------
    xx, xy, yy : float
        Sums of squares and products of x and y about their means, in cells.
    moments : float64[MOMENTS, patches]
    at : int
    dx, dy : float
        Spacing of the cells.
    values, vectors : float64[3], float64[3, 3]
        Scratch.
    raw : float64[series, patches]
    pca, ternary : int
        First row of either in `raw`, or -1.
    """
    a, b, c = dx * dx * xx, dx * dy * xy, dy * dy * yy
    p, q, m = dx * moments[MX, at], dy * moments[MY, at], moments[M2, at]
    if b == 0.0 and a == c:
        g, h = p * p + q * q, 0.5 * (a - m)
        d = sqrt(h * h + g)
        total = a + a + m
        high = 0.5 * (a + m) + d
        low = (a * m - g) / high
        # without cancellation where the two are near each other
        beyond = g / (d + h) if h > 0.0 else d - h
        middle = a
    else:
        eigen(a, b, p, c, q, m, values, vectors)
        low, middle, high = values[0], values[1], values[2]
        total = low + middle + high
        beyond = high - middle
    if pca >= 0:
        raw[pca, at] = high / total
        raw[pca + 1, at] = middle / total
    if ternary >= 0:
        third = 3.0 * low / total
        line = (1.0 - third) * (beyond / total)
        raw[ternary, at] = max((1.0 - third - line) + 0.5 * third, 0.0)
        raw[ternary + 1, at] = max(HEIGHT * third, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def forget(raw, at):
    """Leave a patch without features."""
    for row in range(raw.shape[0]):
        raw[row, at] = np.nan
