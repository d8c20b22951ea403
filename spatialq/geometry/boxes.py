"""Boxes of elements: float64[n, 6], xmin ymin zmin xmax ymax zmax; inf .. -inf if empty."""

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import steps

Boxes = Floats

MESHES = 1 << 14
"""Meshes that a loop in one thread visits between two checks of the task."""


def of(meshes: Meshes) -> Boxes:
    """Make the box of each mesh, from the corners of its faces.

    Parameters
    ----------
    meshes : Meshes
        Of k elements.

    Returns
    -------
    float64[k, 6]
        xmin, ymin, zmin, xmax, ymax, zmax; inf .. -inf for a mesh
        without faces. Vertices that no face uses do not count.
    """
    found = np.empty((len(meshes), 6))
    for part in steps(0, len(found), MESHES):
        _boxes(*meshes.arrays, *part, found)
    return found


def not_empty(boxes: Boxes) -> Ints:
    """Rows of the boxes that are not inf .. -inf."""
    west, south, bottom, east, north, top = boxes.T
    return np.flatnonzero((west <= east) & (south <= north) & (bottom <= top))


@njit(cache=True, nogil=True)
def _boxes(vertices, faces, vertex_starts, face_starts, start, stop, boxes):  # type: ignore[no-untyped-def]
    for mesh in range(start, stop):
        west = south = bottom = np.inf
        east = north = top = -np.inf
        first = vertex_starts[mesh]
        for face in range(face_starts[mesh], face_starts[mesh + 1]):
            for corner in range(3):
                vertex = first + faces[face, corner]
                x, y, z = vertices[vertex, 0], vertices[vertex, 1], vertices[vertex, 2]
                west, east = min(west, x), max(east, x)
                south, north = min(south, y), max(north, y)
                bottom, top = min(bottom, z), max(top, z)
        boxes[mesh, 0], boxes[mesh, 1], boxes[mesh, 2] = west, south, bottom
        boxes[mesh, 3], boxes[mesh, 4], boxes[mesh, 5] = east, north, top
