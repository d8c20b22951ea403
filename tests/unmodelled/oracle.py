"""`unmodelled` by brute force: every point and triangle, flood fill of cubes, planes by SVD."""

import numpy as np

from ..deviation.oracle import distances


def clusters(points, triangles, *, max_distance=0.1, gap=0.1, min_points=50, metres=1.0):
    """List the rows of the points of each cluster, the largest first, of equal ones any order."""
    far = [
        k
        for k, point in enumerate(points)
        if not len(triangles) or distances(point * metres, triangles).min() > max_distance
    ]
    cubes = {}
    for k in far:
        cube = tuple(np.floor(points[k] / (gap / metres)).astype(int).tolist())
        cubes.setdefault(cube, []).append(k)
    found, left = [], set(cubes)
    while left:
        queue, rows = [left.pop()], []
        while queue:
            i, j, k = queue.pop()
            rows += cubes[i, j, k]
            around = {
                (i + a, j + b, k + c) for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (-1, 0, 1)
            }
            queue += around & left
            left -= around
        found.append(sorted(rows))
    return sorted((rows for rows in found if len(rows) >= min_points), key=lambda rows: -len(rows))


def plane(points):
    """Give the best plane of points: its unit normal, and the standard deviations across, along."""
    off = points - points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(off, full_matrices=True)
    sizes = np.append(sizes, np.zeros(3 - len(sizes)))[:3]
    return axes[2], sizes[2] / np.sqrt(len(points)), sizes[1] / np.sqrt(len(points))
