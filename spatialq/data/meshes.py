"""Many triangle meshes, stored one after the other in the same arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Meshes:
    """The meshes of k elements, in the memory of one device.

    Parameters
    ----------
    vertices : float64[n, 3]
        Metres.
    faces : int32[m, 3]
        Vertex indices relative to the first vertex of the mesh; counter-clockwise seen from
        outside.
    vertex_starts, face_starts : int64[k + 1]
        First vertex and first face of each mesh; the last entry is the end.
    """

    vertices: Any
    faces: Any
    vertex_starts: Any
    face_starts: Any

    def __len__(self) -> int:
        return len(self.face_starts) - 1

    @classmethod
    def of(cls, meshes: Sequence[tuple[Any, Any]]) -> "Meshes":
        """Concatenate single meshes, given as vertices and faces.

        Examples
        --------
        >>> two = Meshes.of([(vertices, faces), (vertices + 1.0, faces)])  # doctest: +SKIP
        """
        vertices = [np.asarray(each, np.float64).reshape(-1, 3) for each, _ in meshes]
        faces = [np.asarray(each, np.int32).reshape(-1, 3) for _, each in meshes]
        return cls(
            np.concatenate([np.empty((0, 3)), *vertices]),
            np.concatenate([np.empty((0, 3), np.int32), *faces]),
            np.cumsum([0, *map(len, vertices)]),
            np.cumsum([0, *map(len, faces)]),
        )

    def followed_by(self, other: "Meshes") -> "Meshes":
        """Append other meshes."""
        return Meshes(
            np.concatenate([self.vertices, other.vertices]),
            np.concatenate([self.faces, other.faces]),
            np.concatenate([self.vertex_starts, self.vertex_starts[-1] + other.vertex_starts[1:]]),
            np.concatenate([self.face_starts, self.face_starts[-1] + other.face_starts[1:]]),
        )
