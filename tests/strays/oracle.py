"""Stray points by their definition, one point at a time; imports nothing of ours."""

import numpy as np


def strays_of(points, z_to_xy_scale=1.0):
    """Positions of the stray points of a cloud (n rows of x, y, z), ascending."""
    n = len(points)
    few = min(max(10, n // 100_000), n // 100)
    weights = np.array([1.0, 1.0, z_to_xy_scale])
    if few == 0:
        return []
    ordered = np.sort(points, axis=0)
    low, high = ordered[few], ordered[n - 1 - few]
    far, joined = list(range(n)), True
    is_place = max((high - low) * weights) == 0
    while joined:
        reach = (1000 if is_place else max((high - low) * weights) / 2) / weights
        joined = [
            k for k in far if all(low - reach <= points[k]) and all(points[k] <= high + reach)
        ]
        is_place = False
        for k in joined:
            low, high = np.minimum(low, points[k]), np.maximum(high, points[k])
        far = [k for k in far if k not in set(joined)]
    return far
