"""How far a placement is off from a known one, and what share of points lies on a model."""

import numpy as np


def moved(matrix, points):
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def error(matrix, points, truth):
    """Metres at the middle of the scan, and degrees, by the best movement of the rest (Kabsch)."""
    a, b = moved(matrix, points), truth
    off = np.linalg.norm(a.mean(axis=0) - b.mean(axis=0))
    u, _, v = np.linalg.svd((a - a.mean(axis=0)).T @ (b - b.mean(axis=0)))
    turn = v.T @ np.diag([1, 1, np.linalg.det(v.T @ u.T)]) @ u.T
    return off, np.degrees(np.arccos(min(1.0, (np.trace(turn) - 1) / 2)))


def share_on(points, meshes, limit):
    """Share of points that are above or below a triangle, and no farther than the limit."""
    is_on = np.zeros(len(points), bool)
    for a, b, c in meshes.vertices[meshes.global_faces]:
        normal = np.cross(b - a, c - a)
        normal /= np.linalg.norm(normal)
        here = np.abs((points - a) @ normal) <= limit
        for p, q in ((a, b), (b, c), (c, a)):
            here &= (points - p) @ np.cross(normal, q - p) >= -1e-9
        is_on |= here
    return is_on.mean()
