"""Moments of patches: sums over each column of a window, columns merged into patches.

A column of a window belongs to several adjacent patches, so it is summed once for all of them, in
loops along the rows of the grid. Sums of a column are relative to its first height, those of a
patch to the mean of its first column, and not to sea level. A value of a set of n differs from the
mean by at most sqrt(n) standard deviations, so power sums about it lose no more than the digits of
n, whereas raw power sums (Liang et al. 2022, eq. 5) may lose all digits.
`kernels.cu` has the same operations in the same order.
"""

from spatialq.runtime.compile_cache import njit

COLUMN = 7
"""Numbers per column: first height, mean, squares, cubes, fourth powers, moment with y; scratch."""

MOMENTS = 7
"""Numbers per patch: one of its heights, the mean relative to it, sums of squares, cubes and fourth
powers about the mean, moments with x and y."""

BASE, MEAN, M2, M3, M4, MX, MY = range(MOMENTS)


@njit(cache=True, nogil=True, error_model="numpy")
def sum_columns(z, row, left, width, size, higher, sums):
    """Compute sums[:, :width] for the columns of a window.

    Parameters
    ----------
    z : float[rows, columns]
    row, left : int
        Southernmost row and westernmost column.
    width, size : int
        Columns and rows.
    higher : bool
        Whether cubes and fourth powers are needed.
    sums : float64[COLUMN, >= width]
    """
    first, mean, squares, cubes, fourths, tilt, off = (
        sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6],
    )  # fmt: skip
    line = z[row, left : left + width]
    for x in range(width):
        first[x] = line[x]
        mean[x] = 0.0
        tilt[x] = 0.0
    for x in range(width):
        squares[x] = 0.0
        cubes[x] = 0.0
        fourths[x] = 0.0
    for r in range(size):
        line = z[row + r, left : left + width]
        for x in range(width):
            off[x] = line[x] - first[x]
        for x in range(width):  # each row is in the totals of all later rows
            mean[x] += off[x]
            tilt[x] += mean[x]
        if higher:
            for x in range(width):
                square = off[x] * off[x]
                squares[x] += square
                cubes[x] += square * off[x]
            for x in range(width):
                square = off[x] * off[x]
                fourths[x] += square * square
        else:
            for x in range(width):
                squares[x] += off[x] * off[x]
    inverse, centre = 1.0 / size, 0.5 * (size + 1)
    for x in range(width):
        tilt[x] = centre * mean[x] - tilt[x]
    for x in range(width):
        total, mu = mean[x], mean[x] * inverse
        if higher:
            fourths[x] -= mu * (4.0 * cubes[x] - mu * (6.0 * squares[x] - 3.0 * mu * total))
            cubes[x] -= mu * (3.0 * squares[x] - 2.0 * mu * total)
        squares[x] -= mu * total
        mean[x] = mu


@njit(cache=True, nogil=True, error_model="numpy")
def merge_columns(sums, left, columns, rows, higher, moments, at):
    """Compute moments[:, at] for a patch from its columns of a window.

    Parameters
    ----------
    sums : float64[COLUMN, width]
        From `sum_columns` for the window.
    left, columns : int
        First column of the patch in the window, and number of columns.
    rows : int
        Number of rows of the window.
    higher : bool
        As for `sum_columns`.
    moments : float64[MOMENTS, patches]
        NaN if a cell is missing.
    at : int
    """
    first, mean = sums[0, left], sums[1, left]
    a1, a2, a3, a4, tilt, my, own = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for c in range(columns):
        k = left + c
        e = (sums[0, k] - first) + (sums[1, k] - mean)
        square = e * e
        a1 += e
        tilt += a1  # each column is in the totals of all later ones
        my += sums[5, k]
        squares = sums[2, k]
        own += squares
        a2 += square
        if higher:
            cubes, ee = sums[3, k], rows * square
            a3 += cubes + e * (3.0 * squares + ee)
            a4 += sums[4, k] + e * (4.0 * cubes + e * (6.0 * squares + ee))
    a2 = own + rows * a2
    mx = 0.5 * (columns + 1) * a1 - tilt
    shift = a1 * (1.0 / columns)
    a1 *= rows
    moments[BASE, at] = first
    moments[MEAN, at] = mean + shift
    moments[M2, at] = a2 - shift * a1
    if higher:
        moments[M3, at] = a3 - shift * (3.0 * a2 - 2.0 * shift * a1)
        moments[M4, at] = a4 - shift * (4.0 * a3 - shift * (6.0 * a2 - 3.0 * shift * a1))
    moments[MX, at] = rows * mx
    moments[MY, at] = my
