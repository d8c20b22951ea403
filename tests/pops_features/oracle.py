"""Brute force of `pops_features`: Liang et al. 2022 and its published code, patch by patch.

Nothing of ours is imported. Every patch is cut out of the grid, and its moments are sums over it
of two passes in extended precision.
"""

from fractions import Fraction
from itertools import product
from math import floor
from typing import NamedTuple

import numpy as np

STATISTICS = ("mean", "variance", "skewness", "kurtosis", "min", "q1", "median", "q3", "max")


class Example(NamedTuple):
    example_id: int
    x: float
    y: float
    features: dict  # (method, scale) -> [px, py, feature], NaN where a patch has too few cells
    valid: dict  # scale -> [px, py], whether it has enough


ROUNDED = Fraction(2, 100)
"""Cells by which a length may miss a whole or half number of them, as the documentation says."""


def in_cells(length, spacing):
    """How many cells a length is, to a millionth of one."""
    return round(Fraction(repr(float(length))) / Fraction(repr(float(spacing))), 6)


def to_halves(cells):
    """A number of cells without what coordinates are rounded by."""
    halves = round(2 * cells)
    return Fraction(halves, 2) if abs(2 * cells - halves) < ROUNDED else cells


def starts(n, size, step):
    """First cell of every window that lies wholly in n cells."""
    return [k for k in range(0, n, step) if k + size <= n]


def windows(n, length, step, spacing):
    """Cells in a window along an axis, and the first of each."""
    size = floor(in_cells(length, spacing) + ROUNDED)
    cells = size if step is None else max(1, round(to_halves(in_cells(step, spacing))))
    return size, starts(n, size, cells)


def moments(values):
    """Mean, variance, skewness and kurtosis of the population."""
    values = np.asarray(values, np.longdouble)
    lifted = values - values[0]  # exact where values are near each other
    mean = lifted.mean()
    if (lifted == 0).all():
        return values[0], 0.0, 0.0, -3.0
    second, third, fourth = (((lifted - mean) ** power).mean() for power in (2, 3, 4))
    return values[0] + mean, second, third / second**1.5, fourth / second**2 - 3


def quartiles(values, kind):
    """Quartiles of Hyndman and Fan: types 8 ('median_unbiased') and 7 ('linear')."""
    return np.quantile(np.asarray(values, np.longdouble), np.longdouble([1, 2, 3]) / 4, method=kind)


def statistics(values, kind="median_unbiased"):
    """All nine of them."""
    q1, median, q3 = quartiles(values, kind)
    return (*moments(values), min(values), q1, median, q3, max(values))


def eigenvalues(points):
    """Shares of the eigenvalues of the covariance, descending; NaN where all points are one."""
    centred = points - points[:, :1]
    centred -= centred.mean(axis=1, keepdims=True)
    covariance = np.array([[(a * b).mean() for b in centred] for a in centred])
    total = covariance.trace()
    if total == 0:
        return np.full(3, np.nan)
    return np.linalg.eigvalsh((covariance / total).astype(np.float64))[::-1]


def pca(x, y, z, _):
    return eigenvalues(np.array([x, y, z]))[:2]


def pca_ternary(x, y, z, _):
    """Where the patch is in the ternary diagram of Brodu and Lague 2012."""
    first, second, third = eigenvalues(np.array([x, y, z]))
    c = 3 * third
    a = (1 - c) * (first - second)
    b = 1 - c - a
    return np.maximum(b + c / 2, 0), np.maximum(np.sqrt(3) / 2 * c, 0)


def stat(x, y, z, quantiles):
    return statistics(z, quantiles)


def stat_centred(x, y, z, quantiles):
    mean, variance, skewness, kurtosis, *ordered = statistics(z, quantiles)
    return np.sqrt(variance), skewness, kurtosis, *(value - mean for value in ordered)


METHODS = {
    "pca": (pca, ("pca1", "pca2")),
    "stat": (stat, STATISTICS),
    "pca_ternary": (pca_ternary, ("ternary1", "ternary2")),
    "stat_centred": (stat_centred, ("std", *STATISTICS[2:])),
}


def examples(
    z,
    x0=0.0,
    y0=0.0,
    dx=1.0,
    dy=1.0,
    *,
    scales=(300.0, 400.0, 500.0),
    steps=None,
    example_scale=2000.0,
    example_step=None,
    methods=("pca", "stat"),
    min_valid=0.5,
    min_points=3,
    quantiles="median_unbiased",
):
    """Yield the examples of a grid [rows, columns], row 0 in the south, with their patches."""
    rows, columns = z.shape
    width, wests = windows(columns, example_scale, example_step, dx)
    height, souths = windows(rows, example_scale, example_step, dy)
    y, x = np.mgrid[:rows, :columns].astype(np.longdouble) * [[[dy]], [[dx]]]
    for (i, west), (j, south) in product(enumerate(wests), enumerate(souths)):
        features, valid = {}, {}
        for scale, step in zip(scales, steps or np.array(scales) / 2, strict=True):
            n_x, lefts = windows(width, scale, step, dx)
            n_y, lows = windows(height, scale, step, dy)
            valid[scale] = np.zeros((len(lefts), len(lows)), bool)
            for method in methods:
                shape = len(lefts), len(lows), len(METHODS[method][1])
                features[method, scale] = np.full(shape, np.nan)
            for (px, left), (py, low) in product(enumerate(lefts), enumerate(lows)):
                here = np.s_[south + low :, west + left :]
                patch = [values[here][:n_y, :n_x].astype(np.longdouble) for values in (x, y, z)]
                known = ~np.isnan(patch[2])
                n = np.count_nonzero(known)
                if n >= max(min_points, 1) and n / (n_x * n_y) >= min_valid:
                    valid[scale][px, py] = True
                    points = [values[known] for values in patch]
                    for method in methods:
                        features[method, scale][px, py] = METHODS[method][0](*points, quantiles)
        middle_x = x0 + dx * (west + (width - 1) / 2)
        middle_y = y0 + dy * (south + (height - 1) / 2)
        yield Example(i * len(souths) + j, middle_x, middle_y, features, valid)


def aggregate(values, *, min_patches=1, quantiles="median_unbiased"):
    """Nine statistics over the patches [px, py] of an example that have the feature."""
    known = values[~np.isnan(values)]
    if known.size < max(min_patches, 1):
        return (np.nan,) * len(STATISTICS)
    return statistics(known, quantiles)
