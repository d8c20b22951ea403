"""Raw features of the patches of adjacent examples, one scale at a time."""

import numpy as np

from spatialq.runtime.compile_cache import njit

from .features import write_pca, write_pca_ternary, write_stat, write_stat_centred
from .holes import SPREAD, sum_cells
from .lanes import MAX_NETWORK, WIDTH
from .methods import CENTRED, PCA, STAT, TERNARY
from .moments import COLUMN, MEAN, MOMENTS, merge_columns, sum_columns
from .order import BUCKETS, FIVE, five_of_lanes, five_of_many


@njit(cache=True, nogil=True, error_model="numpy")
def fill_patches(
    z, row, left, examples, step, sx, sy, tx, ty, nx, ny, dx, dy, min_cells, rows, complete, whole,
    linear, raw, counts,
):  # fmt: skip
    """Compute the raw features of all patches of one scale in a run of examples.

    Parameters
    ----------
    z : float32 or float64 [rows, columns]
        Row 0 is the southernmost; NaN where there is no value.
    row, left : int
        South-western cell of the first example.
    examples, step : int
        Number of examples, and columns from one to the next.
    sx, sy, tx, ty, nx, ny : int
        Cells of a patch, cells from one patch to the next, and patches per example, along x and y.
    dx, dy : float
        Spacing of the cells.
    min_cells : int
        Minimum number of cells of a patch that have a value.
    rows : int64[4]
        First row in `raw` of each method; -1 if it is not wanted.
    complete, whole : int64[exchanges, 2]
        From `order.exchanges`, for a patch.
    linear : bool
        Whether quartiles are of type 7 instead of type 8.
    raw : float64[series, examples * nx * ny]
        Out: by example, then by patch with y varying fastest; NaN for a patch with too few values.
    counts : int64[examples * nx * ny]
        Out: cells with a value.
    """
    n, per_example = sx * sy, nx * ny
    total = examples * per_example
    wants_order = rows[STAT] >= 0 or rows[CENTRED] >= 0
    moments, spread = np.empty((MOMENTS, total)), np.empty((SPREAD, total))
    five = np.empty((FIVE, total if wants_order else 0))
    square = np.empty(total, np.bool_)
    width = (examples - 1) * step + (nx - 1) * tx + sx
    sums = np.empty((COLUMN, width))
    for py in range(ny):
        sum_columns(z, row + py * ty, left, width, sy, wants_order, sums)
        for example in range(examples):
            for px in range(nx):
                at = example * per_example + px * ny + py
                merge_columns(sums, example * step + px * tx, sx, sy, wants_order, moments, at)
    xx, yy = n * (sx * sx - 1) / 12.0, n * (sy * sy - 1) / 12.0
    for at in range(total):
        counts[at] = n
        spread[0, at], spread[1, at], spread[2, at] = xx, 0.0, yy
        square[at] = dx * dx * xx == dy * dy * yy
        if moments[MEAN, at] != moments[MEAN, at]:  # a cell is missing
            south, west = origin(at, per_example, ny, step, tx, ty)
            counts[at] = sum_cells(z, row + south, left + west, sy, sx, moments, spread, at)
            square[at] = False
    if wants_order:
        order_patches(
            z, row, left, step, sx, sy, tx, ty, per_example, ny, complete, whole, linear, counts,
            five,
        )  # fmt: skip
    if rows[PCA] >= 0:
        write_pca(moments, spread, square, dx, dy, raw[rows[PCA] :])
    if rows[TERNARY] >= 0:
        write_pca_ternary(moments, spread, square, dx, dy, raw[rows[TERNARY] :])
    if rows[STAT] >= 0:
        write_stat(moments, five, counts, raw[rows[STAT] :])
    if rows[CENTRED] >= 0:
        write_stat_centred(moments, five, counts, raw[rows[CENTRED] :])
    for at in range(total):
        if counts[at] < min_cells:
            raw[:, at] = np.nan


@njit(cache=True, nogil=True, error_model="numpy")
def origin(at, per_example, ny, step, tx, ty):
    """Row and column of a patch's first cell, relative to the first example."""
    example, patch = at // per_example, at % per_example
    return (patch % ny) * ty, example * step + (patch // ny) * tx


@njit(cache=True, nogil=True, error_model="numpy")
def order_patches(
    z, row, left, step, sx, sy, tx, ty, per_example, ny, complete, whole, linear, counts, five
):
    """Compute the order statistics of all patches; see `fill_patches`."""
    n, total = sx * sy, counts.size
    if n <= MAX_NETWORK:
        sets = np.empty((n, WIDTH), z.dtype)
        souths, wests = np.empty(WIDTH, np.int64), np.empty(WIDTH, np.int64)
        for first in range(0, total, WIDTH):
            lanes = min(WIDTH, total - first)
            for lane in range(WIDTH):
                at = first + min(lane, lanes - 1)
                south, west = origin(at, per_example, ny, step, tx, ty)
                souths[lane], wests[lane] = row + south, left + west
            for r in range(sy):
                for c in range(sx):
                    for lane in range(WIDTH):
                        sets[r * sx + c, lane] = z[souths[lane] + r, wests[lane] + c]
            of_lanes = counts[first : first + lanes]
            five_of_lanes(sets, of_lanes, lanes, complete, whole, linear, five, first)
        return
    values, rest, buckets = np.empty(n), np.empty(n), np.empty(BUCKETS, np.int64)
    for at in range(total):
        south, west = origin(at, per_example, ny, step, tx, ty)
        m = 0
        for r in range(sy):
            for c in range(sx):
                height = z[row + south + r, left + west + c]
                if height == height:
                    values[m] = height
                    m += 1
        if m > 0:
            five_of_many(values, m, linear, buckets, rest, five, at)
