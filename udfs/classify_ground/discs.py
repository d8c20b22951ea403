"""Lowest and highest values in discs: the Numba loop of the openings.

A disc is a stack of horizontal runs. The minimum of a run of any length is that of two overlapping
runs whose length is a power of two, and these are tabulated by doubling. The inner loops then take
the minimum of several contiguous rows, which compiles to vector instructions.
"""

from typing import Any

import numpy as np

from spatialq.runtime.compile_cache import njit

INFINITY = np.float32(np.inf)


@njit(cache=True, nogil=True)
def lowest(z: Any, sign: Any, half_widths: Any, result: Any, first: int, last: int) -> None:
    """Minimum of `sign * z` in the disc around each cell of the rows [first, last), times `sign`.

    `half_widths[d]` is the half width of the disc in the rows at distance d from its centre. Cells
    outside the array are ignored.
    """
    rows, columns = z.shape
    radius = half_widths.size - 1
    levels = np.zeros(radius + 1, np.int64)
    for d in range(radius + 1):
        while 2 << levels[d] <= 2 * half_widths[d] + 1:
            levels[d] += 1
    # table[k, h, j]: minimum of the 2^k cells from column j - radius, in row h + first - radius
    height, width = last - first + 2 * radius, columns + 2 * radius
    table = np.empty((levels[0] + 1, height, width), np.float32)
    for h in range(height):
        row = h + first - radius
        runs = table[0, h]
        runs[:] = INFINITY
        if 0 <= row < rows:
            source = z[row]
            for j in range(columns):
                runs[radius + j] = sign * source[j]
        for k in range(1, levels[0] + 1):
            half = 1 << (k - 1)
            left, right, runs = table[k - 1, h], table[k - 1, h, half:], table[k, h]
            for j in range(width - half):
                a, b = left[j], right[j]
                runs[j] = a if a < b else b
    minimum = np.empty(columns, np.float32)
    for h in range(radius, height - radius):
        k, from_left = levels[0], radius - half_widths[0]
        from_right = radius + half_widths[0] + 1 - (1 << k)
        left, right = table[k, h, from_left:], table[k, h, from_right:]
        for j in range(columns):
            a, b = left[j], right[j]
            minimum[j] = a if a < b else b
        # Rows above and below the centre in pairs: fewer passes over `minimum`.
        for d in range(1, radius + 1, 2):
            k, from_left = levels[d], radius - half_widths[d]
            from_right = radius + half_widths[d] + 1 - (1 << k)
            p, q = table[k, h - d, from_left:], table[k, h - d, from_right:]
            r, s = table[k, h + d, from_left:], table[k, h + d, from_right:]
            e = d + 1 if d < radius else d
            k, from_left = levels[e], radius - half_widths[e]
            from_right = radius + half_widths[e] + 1 - (1 << k)
            t, u = table[k, h - e, from_left:], table[k, h - e, from_right:]
            v, w = table[k, h + e, from_left:], table[k, h + e, from_right:]
            for j in range(columns):
                a, b = p[j], q[j]
                a = a if a < b else b
                b, c = r[j], s[j]
                b = b if b < c else c
                a = a if a < b else b
                b, c = t[j], u[j]
                b = b if b < c else c
                a = a if a < b else b
                b, c = v[j], w[j]
                b = b if b < c else c
                a = a if a < b else b
                b = minimum[j]
                minimum[j] = a if a < b else b
        target = result[h + first - radius]
        for j in range(columns):
            target[j] = sign * minimum[j]


@njit(cache=True, nogil=True)
def opened(z: Any, half_widths: Any, outside: int, result: Any) -> None:
    """Open a small grid in one call with a disc whose centre may lie `outside` cells outside it."""
    rows, columns = z.shape
    inside = slice(outside, outside + rows), slice(outside, outside + columns)
    frame = np.full((rows + 2 * outside, columns + 2 * outside), INFINITY, np.float32)
    frame[inside] = z
    low, high = np.empty_like(frame), np.empty_like(frame)
    lowest(frame, np.float32(1), half_widths, low, 0, len(frame))
    lowest(low, np.float32(-1), half_widths, high, 0, len(frame))
    result[:] = high[inside]
