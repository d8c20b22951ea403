"""The rival of `pops_features`: a plain loop in Numba, one patch after the other.

Each patch is cut out of the grid without its missing cells, its moments are sums of two passes,
its quartiles come from sorting it, its eigenvalues from LAPACK, or from the closed form, which is
faster and keeps half the digits. The statistics of an example's patches are taken in the same way.
"""

from math import acos, cos, pi, sqrt

import numpy as np
from numba import njit

from spatialq.runtime.threads import in_threads

NINE = 9
PLACES = {"pca": slice(0, 2), "stat": slice(2, 11)}
"""Of a method's features among all."""


@njit(cache=True, nogil=True)
def quartile(values, n, j):
    """Give the j-th quartile of sorted values, type 8 of Hyndman and Fan."""
    h = (j * (3 * n + 1) + 4) / 12
    k = int(h)
    if k < 1:
        return values[0]
    if k >= n:
        return values[n - 1]
    return values[k - 1] + (h - k) * (values[k] - values[k - 1])


@njit(cache=True, nogil=True)
def stat(values, n, out):
    """Nine statistics of values[:n], which get sorted."""
    mean = 0.0
    for i in range(n):
        mean += values[i]
    mean /= n
    m2, m3, m4 = 0.0, 0.0, 0.0
    for i in range(n):
        d = values[i] - mean
        m2 += d * d
        m3 += d * d * d
        m4 += d * d * d * d
    variance = m2 / n
    out[0], out[1] = mean, variance
    out[2] = (m3 / n) / variance**1.5 if variance > 0 else 0.0
    out[3] = (m4 / n) / (variance * variance) - 3 if variance > 0 else -3.0
    values[:n].sort()
    out[4], out[8] = values[0], values[n - 1]
    for j in range(1, 4):
        out[4 + j] = quartile(values, n, j)


@njit(cache=True, nogil=True)
def pca(x, y, z, n, closed_form, out):
    """Shares of the first two eigenvalues of the covariance of n points."""
    mx, my, mz = 0.0, 0.0, 0.0
    for i in range(n):
        mx += x[i]
        my += y[i]
        mz += z[i]
    mx /= n
    my /= n
    mz /= n
    xx, xy, xz, yy, yz, zz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        a, b, c = x[i] - mx, y[i] - my, z[i] - mz
        xx += a * a
        xy += a * b
        xz += a * c
        yy += b * b
        yz += b * c
        zz += c * c
    total = xx + yy + zz
    if closed_form:
        first, last = extremes(xx, xy, xz, yy, yz, zz)
        out[0], out[1] = first / total, (total - first - last) / total
    else:
        values = np.linalg.eigvalsh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        out[0], out[1] = values[2] / total, values[1] / total


@njit(cache=True, nogil=True)
def extremes(xx, xy, xz, yy, yz, zz):
    """Largest and smallest eigenvalue of a symmetric matrix (Smith 1961)."""
    q = (xx + yy + zz) / 3
    a, b, c = xx - q, yy - q, zz - q
    p = sqrt((a * a + b * b + c * c + 2 * (xy * xy + xz * xz + yz * yz)) / 6)
    det = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz)
    phi = acos(min(1.0, max(-1.0, det / (2 * p * p * p)))) / 3
    return q + 2 * p * cos(phi), q + 2 * p * cos(phi + 2 * pi / 3)


@njit(cache=True, nogil=True)
def example(z, row, left, size, step, n, spacing, wants_pca, wants_stat, closed_form, raw):
    """Features of n x n patches of an example: raw[n * n, 11], NaN where a patch has none."""
    x, y, heights = np.empty(size * size), np.empty(size * size), np.empty(size * size)
    for px in range(n):
        for py in range(n):
            m = 0
            for i in range(size):
                for j in range(size):
                    height = z[row + py * step + j, left + px * step + i]
                    if not np.isnan(height):
                        x[m], y[m], heights[m] = i * spacing, j * spacing, height
                        m += 1
            at = px * n + py
            if m < max(3, size * size / 2):
                raw[at] = np.nan
                continue
            if wants_pca:
                pca(x, y, heights, m, closed_form, raw[at, :2])
            if wants_stat:
                stat(heights, m, raw[at, 2:])


@njit(cache=True, nogil=True)
def summarise(raw, first, last, aggregated):
    """Statistics of features [first, last) of an example's patches: aggregated[11, 9]."""
    values = np.empty(raw.shape[0])
    for f in range(first, last):
        m = 0
        for at in range(raw.shape[0]):
            if not np.isnan(raw[at, f]):
                values[m] = raw[at, f]
                m += 1
        if m == 0:
            aggregated[f] = np.nan
        else:
            stat(values, m, aggregated[f])


@njit(cache=True, nogil=True)
def examples(
    z, first, last, rows, side, size, step, n, spacing, wants_pca, wants_stat, closed_form,
    keep, raw, aggregated,
):  # fmt: skip
    """One scale of examples [first, last): raw[example, n * n, 11], or their statistics."""
    of_example = np.empty((n * n, 11))
    for e in range(first, last):
        if keep:
            of_example = raw[e]
        example(
            z, e % rows * side, e // rows * side, size, step, n, spacing, wants_pca, wants_stat,
            closed_form, of_example,
        )  # fmt: skip
        if not keep:
            summarise(of_example, 0 if wants_pca else 2, 11 if wants_stat else 2, aggregated[e])


def run(grid, options, *, keep=False, closed_form=False):
    """Give for each scale the statistics of examples, float64[example, 11, 9], or raw features.

    Squares only, default steps and thresholds. With `keep` float64[example, patch, 11].
    """
    side = int(options.example_scale // grid.dx)
    columns, rows = grid.columns // side, grid.rows // side
    wants = "pca" in options.methods, "stat" in options.methods
    found = []
    for scale in options.scales:
        size, step = int(scale // grid.dx), max(1, round(scale / 2 / grid.dx))
        n = 1 + (side - size) // step
        raw = np.empty((columns * rows if keep else 0, n * n, 11))
        aggregated = np.empty((0 if keep else columns * rows, 11, NINE))

        def some(span, size=size, step=step, n=n, raw=raw, aggregated=aggregated):
            examples(
                grid.z, *span, rows, side, size, step, n, grid.dx, *wants, closed_form,
                keep, raw, aggregated,
            )  # fmt: skip

        in_threads(some, columns * rows)
        found.append(raw if keep else aggregated)
    return found
