"""Patches with missing cells: moments over the cells that have a value."""

import numpy as np

from spatialq.runtime.compile_cache import njit

from .moments import BASE, M2, M3, M4, MEAN, MX, MY

SPREAD = 3
"""Sums of squares and products of x and y about their means: xx, xy, yy."""


@njit(cache=True, nogil=True, error_model="numpy")
def sum_cells(z, row, left, rows, columns, moments, spread, at):
    """Compute the moments and the spread of a patch with missing cells, in units of cells.

    Parameters
    ----------
    z : float[rows, columns]
    row, left, rows, columns : int
        First row and column of the patch, and its size.
    moments : float64[MOMENTS, patches]
    spread : float64[SPREAD, patches]
    at : int

    Returns
    -------
    count : int
        Cells that have a value.
    """
    n, sx, sy, sz, base = 0, 0.0, 0.0, 0.0, 0.0
    for c in range(columns):
        for r in range(rows):
            height = np.float64(z[row + r, left + c])
            if height == height:
                if n == 0:
                    base = height
                n += 1
                sx += c
                sy += r
                sz += height - base
    mean_x, mean_y, mean_z = sx / n, sy / n, sz / n
    xx, xy, yy, mx, my, m2, m3, m4 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for c in range(columns):
        for r in range(rows):
            height = np.float64(z[row + r, left + c])
            if height == height:
                x, y, e = c - mean_x, r - mean_y, (height - base) - mean_z
                ee = e * e
                xx += x * x
                xy += x * y
                yy += y * y
                mx += x * e
                my += y * e
                m2 += ee
                m3 += ee * e
                m4 += ee * ee
    moments[BASE, at] = base
    moments[MEAN, at] = mean_z
    moments[M2, at] = m2
    moments[M3, at] = m3
    moments[M4, at] = m4
    moments[MX, at] = mx
    moments[MY, at] = my
    spread[0, at] = xx
    spread[1, at] = xy
    spread[2, at] = yy
    return n
