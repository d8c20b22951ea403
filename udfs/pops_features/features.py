"""Features of patches from their moments and order statistics; one loop over the patches each."""

from math import sqrt

import numpy as np

from spatialq.geometry.eigen import eigen
from spatialq.runtime.compile_cache import njit

from .moments import BASE, M2, M3, M4, MEAN, MX, MY

HEIGHT = sqrt(0.75)
"""Height of the triangle of the ternary variant."""


@njit(cache=True, nogil=True, error_model="numpy")
def shape(m2, m3, m4, n):
    """Compute variance, skewness and excess kurtosis of a population; 0, 0, -3 for equal values."""
    variance = m2 / n
    if m2 == 0.0:
        return 0.0, 0.0, -3.0
    return variance, (m3 / n) / (variance * sqrt(variance)), (m4 / n) / (variance * variance) - 3.0


@njit(cache=True, nogil=True, error_model="numpy")
def write_stat(moments, five, counts, raw):
    """Write mean, variance, skewness, kurtosis, minimum, quartiles and maximum (section 4.2)."""
    m2, m3, m4 = moments[M2], moments[M3], moments[M4]
    base, mean, first = moments[BASE], moments[MEAN], raw[0]
    for at in range(counts.size):
        first[at] = base[at] + mean[at]
    variance, skewness, kurtosis = raw[1], raw[2], raw[3]
    for at in range(counts.size):
        variance[at], skewness[at], kurtosis[at] = shape(m2[at], m3[at], m4[at], counts[at])
    for k in range(five.shape[0]):
        raw[4 + k] = five[k]


@njit(cache=True, nogil=True, error_model="numpy")
def write_stat_centred(moments, five, counts, raw):
    """Write the statistics of the published code: standard deviation, heights minus the mean."""
    base, mean = moments[BASE], moments[MEAN]
    m2, m3, m4 = moments[M2], moments[M3], moments[M4]
    deviation, skewness, kurtosis = raw[0], raw[1], raw[2]
    for at in range(counts.size):
        variance, skewness[at], kurtosis[at] = shape(m2[at], m3[at], m4[at], counts[at])
        deviation[at] = sqrt(variance)
    for k in range(five.shape[0]):
        line = raw[3 + k]
        for at in range(counts.size):
            line[at] = (five[k, at] - base[at]) - mean[at]


@njit(cache=True, nogil=True, error_model="numpy")
def write_pca(moments, spread, square, dx, dy, raw):
    """Write the explained variance ratios of the first two components (section 4.2).

    Parameters
    ----------
    moments : float64[MOMENTS, patches]
    spread : float64[3, patches]
        Sums of squares and products of x and y about their means: xx, xy, yy, in cells.
    square : bool[patches]
        Whether x and y are uncorrelated with equal variance, as in a square without missing cells.
    dx, dy : float
        Spacing of the cells.
    raw : float64[2, patches]
        Out.
    """
    m2, mx, my, xx = moments[M2], moments[MX], moments[MY], spread[0]
    first, second = raw[0], raw[1]
    for at in range(square.size):
        a, m = dx * dx * xx[at], m2[at]
        high, _, _ = square_case(a, dx * mx[at], dy * my[at], m)
        share = 1.0 / (a + a + m)
        first[at] = high * share
        second[at] = a * share
    values, vectors = np.empty(3), np.empty((3, 3))
    for at in range(square.size):
        if not square[at]:
            solve(moments, spread, at, dx, dy, values, vectors)
            share = 1.0 / (values[0] + values[1] + values[2])
            first[at] = values[2] * share
            second[at] = values[1] * share


@njit(cache=True, nogil=True, error_model="numpy")
def write_pca_ternary(moments, spread, square, dx, dy, raw):
    """Write the ratios as a position in the triangle of the published code; see `write_pca`."""
    m2, mx, my, xx = moments[M2], moments[MX], moments[MY], spread[0]
    right, up = raw[0], raw[1]
    for at in range(square.size):
        a, m = dx * dx * xx[at], m2[at]
        _, low, beyond = square_case(a, dx * mx[at], dy * my[at], m)
        right[at], up[at] = place(low, beyond, a + a + m)
    values, vectors = np.empty(3), np.empty((3, 3))
    for at in range(square.size):
        if not square[at]:
            solve(moments, spread, at, dx, dy, values, vectors)
            total = values[0] + values[1] + values[2]
            right[at], up[at] = place(values[0], values[2] - values[1], total)


@njit(cache=True, nogil=True, error_model="numpy")
def square_case(a, p, q, m):
    """Solve for the eigenvalues other than a of the matrix [[a, 0, p], [0, a, q], [p, q, m]].

    They are the roots of a quadratic equation. a is the median eigenvalue, since it is a
    diagonal element of the 2 x 2 matrix that has the other two.

    Returns
    -------
    high, low : float
    beyond : float
        high - a, computed like low without cancellation.
    """
    g, h = p * p + q * q, 0.5 * (a - m)
    d = sqrt(h * h + g)
    high = 0.5 * (a + m) + d
    return high, (a * m - g) / high, g / (d + h) if h > 0.0 else d - h


@njit(cache=True, nogil=True, error_model="numpy")
def solve(moments, spread, at, dx, dy, values, vectors):
    """Compute the eigenvalues of a patch's covariance matrix, ascending."""
    xx, xy, yy = dx * dx * spread[0, at], dx * dy * spread[1, at], dy * dy * spread[2, at]
    xz, yz, zz = dx * moments[MX, at], dy * moments[MY, at], moments[M2, at]
    eigen(xx, xy, xz, yy, yz, zz, values, vectors)


@njit(cache=True, nogil=True, error_model="numpy")
def place(low, beyond, total):
    """Map eigenvalues to the triangle of Brodu and Lague 2012, as the published code does."""
    third = 3.0 * low / total
    line = (1.0 - third) * (beyond / total)
    return max((1.0 - third - line) + 0.5 * third, 0.0), max(HEIGHT * third, 0.0)
