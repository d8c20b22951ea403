"""Brute force of `contours`: where heights cross the lines between neighbours. Nothing of ours."""

import numpy as np

RAISED = 1e-3
"""Share of the interval by which heights on a contour are raised, as in GDAL."""


def crossings(z, x0, y0, dx, dy, interval, base=0.0):
    """Where a height crosses the line between two neighbours: (height, x, y), in order."""
    z = z.astype(np.float64)
    k = (z - base) / interval
    z = np.where(k == np.rint(k), z + RAISED * interval, z)
    found = []
    for r in range(z.shape[0]):
        for c in range(z.shape[1]):
            for r2, c2 in ((r, c + 1), (r + 1, c)):
                if r2 >= z.shape[0] or c2 >= z.shape[1]:
                    continue
                low, high = sorted((z[r, c], z[r2, c2]))
                first = int(np.ceil((low - base) / interval))
                for n in range(first, int(np.floor((high - base) / interval)) + 1):
                    height = base + n * interval
                    t = (height - z[r, c]) / (z[r2, c2] - z[r, c])
                    x, y = (
                        x0 + dx * (c + t * (c2 - c)),
                        y0 + dy * (r + t * (r2 - r)),
                    )
                    found.append((height, x, y))
    return np.array(sorted(found)).reshape(-1, 3)
