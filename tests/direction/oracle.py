"""`direction` as slow and obvious code: cubes by their cells, others by lines through them."""

import numpy as np


def relaxed_cells(a, b):
    """Whether a cell of b lies over or in a cell of a; cells are (x, y, z)."""
    return any((x, y) == (u, v) and z >= w for x, y, z in b for u, v, w in a)


def strict_cells(a, b):
    """Whether the lower side of all cells of b lies over the lower side of some of a."""
    return all(any((x, y) == (u, v) and z > w for u, v, w in a) for x, y, z in b)


def heights(mesh, places):
    """Lowest and highest point of a mesh on the upright lines through places; NaN without any."""
    low, high = np.full(len(places), np.inf), np.full(len(places), -np.inf)
    for p, q, r in mesh[0][mesh[1]]:
        e, f, to = (q - p)[:2], (r - p)[:2], places - p[:2]
        area = e[0] * f[1] - e[1] * f[0]
        if abs(area) < 1e-9:
            continue
        s = (to[:, 0] * f[1] - to[:, 1] * f[0]) / area
        t = (e[0] * to[:, 1] - e[1] * to[:, 0]) / area
        inside = (s >= 0) & (t >= 0) & (s + t <= 1)
        z = p[2] + s * (q - p)[2] + t * (r - p)[2]
        low[inside], high[inside] = np.minimum(low, z)[inside], np.maximum(high, z)[inside]
    low[np.isinf(low)], high[np.isinf(high)] = np.nan, np.nan
    return low, high


def relaxed(a, b):
    """Whether b is over a on some line, by their heights."""
    return bool((b[1] > a[0]).any())


def strict(a, b):
    """Whether b is over a on all lines that meet b, by their heights."""
    return not (~np.isnan(b[0]) & ~(b[0] > a[0])).any()
