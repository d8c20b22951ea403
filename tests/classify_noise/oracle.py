"""`classify_noise` by brute force: all distances, as PDAL's `filters.outlier` defines outliers."""

import numpy as np


def noise(points, *, method="statistical", mean_k=8, multiplier=2.0, voxel_size=5.0, max_points=6):
    """Classes: 7, 18, or 0 where a point is no noise."""
    n = len(points)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, 1 : mean_k + 1]
    if method == "isolated":
        voxels = np.floor(points / voxel_size)
        around = (np.abs(voxels[:, None] - voxels[None]) <= 1).all(axis=2).sum(axis=1)
        is_noise = around <= max_points
    elif n < 2:
        is_noise = np.zeros(n, bool)
    else:
        mean = np.array([distances[i, nearest[i]].mean() for i in range(n)])
        is_noise = mean > mean.mean() + multiplier * mean.std(ddof=1)
    is_low = [
        z < points[near, 2].mean() if len(near) else False
        for z, near in zip(points[:, 2], nearest, strict=True)
    ]
    return np.where(is_noise, np.where(is_low, 7, 18), 0)
