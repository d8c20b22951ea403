"""Lowest and highest values in discs: the Numba loops of the openings.

A disc is a stack of horizontal runs, and the lowest value of a run of any length is that of two
overlapping runs whose length is a power of two: these are tabulated by doubling. Everything left
in the inner loops is the least of values of contiguous rows, several columns at a time.
"""

from typing import Any

import numpy as np
from numba import njit

INFINITY = np.float32(np.inf)


@njit(cache=True, nogil=True)
def lowest(z: Any, sign: Any, half_widths: Any, result: Any, first: int, last: int) -> None:
    """Least of `sign * z` in the disc around each cell of the rows [first, last), times `sign`.

    `half_widths[d]` is how far the disc reaches along a row that is d rows from its centre.
    Cells outside the array do not count.
    """
    rows, columns = z.shape
    radius = half_widths.size - 1
    levels = 1
    while 2 << (levels - 1) <= 2 * half_widths[0] + 1:
        levels += 1
    low, high = max(first - radius, 0), min(last + radius, rows)
    width = columns + 2 * radius
    table = np.full((levels, high - low, width), INFINITY)
    for r in range(low, high):
        source, base = z[r], table[0, r - low]
        for j in range(columns):
            base[radius + j] = sign * source[j]
        for k in range(1, levels):
            half = 1 << (k - 1)
            small, large = table[k - 1, r - low], table[k, r - low]
            for j in range(width - half):
                a, b = small[j], small[j + half]
                large[j] = a if a < b else b
    out = np.empty(columns, np.float32)
    for i in range(first, last):
        out[:] = INFINITY
        for d in range(radius + 1):
            k, w = 0, half_widths[d]
            while 2 << k <= 2 * w + 1:
                k += 1
            left, right = radius - w, radius + w + 1 - (1 << k)
            up, down = i - d if i - d >= low else i + d, i + d if i + d < high else i - d
            if up >= high or down < low:
                continue
            p, q = table[k, up - low, left:], table[k, up - low, right:]
            u, v = table[k, down - low, left:], table[k, down - low, right:]
            for j in range(columns):
                a, b = p[j], q[j]
                a = a if a < b else b
                b = u[j]
                a = a if a < b else b
                b = v[j]
                a = a if a < b else b
                b = out[j]
                out[j] = a if a < b else b
        target = result[i]
        for j in range(columns):
            target[j] = sign * out[j]
