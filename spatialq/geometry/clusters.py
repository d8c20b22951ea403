"""Clusters of faces: runs of `CLUSTER` faces of a mesh that share a bounding box."""

from typing import Any

import numpy as np

from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit

CLUSTER = 8
"""Consecutive faces of a mesh that share a box."""


def starts_of(face_starts: Ints) -> Ints:
    """Give where the clusters of each mesh begin, int64[k + 1], from where its faces begin."""
    sizes = -(-np.diff(face_starts) // CLUSTER)
    return np.concatenate([[0], np.cumsum(sizes)])


@njit(cache=True, nogil=True, error_model="numpy")
def cluster_boxes(
    vertices: Any,
    faces: Any,
    vertex_starts: Any,
    face_starts: Any,
    cluster_starts: Ints,
    first: int,
    stop: int,
    clusters: Floats,
) -> None:
    """Find the boxes of the clusters of the meshes first to stop.

    Parameters
    ----------
    vertices, faces, vertex_starts, face_starts
        See `Meshes`.
    cluster_starts : int64[k + 1]
        Where the clusters of each mesh begin.
    first, stop : int
    clusters : float64[c, 6]
        Out: lower corner, upper corner.
    """
    for e in range(first, stop):
        v0 = vertex_starts[e]
        for c in range(cluster_starts[e], cluster_starts[e + 1]):
            begin = face_starts[e] + (c - cluster_starts[e]) * CLUSTER
            end = min(begin + CLUSTER, face_starts[e + 1])
            for axis in range(3):
                low = np.inf
                high = -np.inf
                for f in range(begin, end):
                    for corner in range(3):
                        x = vertices[v0 + faces[f, corner], axis]
                        low = x if x < low else low
                        high = x if x > high else high
                clusters[c, axis] = low
                clusters[c, 3 + axis] = high
