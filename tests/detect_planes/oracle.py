"""Plain steps of `detect_planes`, by the paper: Limberger & Oliveira 2015, 10.1016/j.patcog.2014.12.020.

Nothing of ours is imported. All arithmetic is in double precision on coordinates relative to the
centroid.
"""

from typing import NamedTuple

import numpy as np

OUTLIER = 10  # a node's points farther from its plane than its size by this are not of it
REACH = 4.0  # squared Mahalanobis distance up to which a node votes
DEEPEST = 20


class Node(NamedTuple):
    level: int
    middle: np.ndarray  # of the cell, relative to the centroid of the cloud
    size: float
    n: int  # points that are no outliers
    mean: np.ndarray  # of these
    normal: np.ndarray
    values: np.ndarray  # eigenvalues of their covariance, ascending
    vectors: np.ndarray  # in columns


def principal(points):
    """Mean, eigenvalues in ascending order, eigenvectors in columns."""
    mean = points.mean(axis=0)
    values, vectors = np.linalg.eigh((points - mean).T @ (points - mean) / len(points))
    return mean, np.maximum(values, 0.0), vectors


def octree(points, s_level, s_ms, max_thickness=1 / 25, min_isotropy=1 / 6):
    """Coplanar nodes, depth first: sections 3.1 and 3.2."""
    points = points - points.mean(axis=0)
    half = np.abs(points).max()

    def visit(inside, level, middle, half):
        if len(inside) < s_ms or level > DEEPEST:
            return
        if level >= s_level:
            mean, values, vectors = principal(inside)
            if values[0] < max_thickness * values[1] and values[1] > min_isotropy * values[2]:
                off = np.abs((inside - mean) @ vectors[:, 0])
                kept = inside[off <= 2 * half / OUTLIER]
                mean, values, vectors = principal(kept)
                yield Node(
                    level, middle, 2 * half, len(kept), mean, vectors[:, 0], values, vectors
                )
                return
        upper = inside > middle
        for child in np.ndindex(2, 2, 2):
            here = (upper == child).all(axis=1)
            yield from visit(
                inside[here], level + 1, middle + half * (np.array(child) - 0.5), half / 2
            )

    return list(visit(points, 0, np.zeros(3), half))
