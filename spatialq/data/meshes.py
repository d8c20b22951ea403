"""Many triangle meshes, stored one after the other in the same arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from spatialq.runtime.arrays import Ints


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

    @property
    def arrays(self) -> tuple[Any, Any, Any, Any]:
        """The arrays, in the order in which kernels take them, and of one Numba type each."""
        from spatialq.data.points import read_only  # Numba, which takes a while to import

        vertices, faces = (
            read_only(each) if isinstance(each, np.ndarray) else each
            for each in (self.vertices, self.faces)
        )
        return vertices, faces, self.vertex_starts, self.face_starts

    @property
    def face_mesh(self) -> Ints:
        """Which mesh each face belongs to; of meshes in the memory of the host."""
        return np.repeat(np.arange(len(self)), np.diff(self.face_starts))

    @property
    def global_faces(self) -> Ints:
        """The faces as indices into all `vertices`; of meshes in the memory of the host."""
        starts = np.repeat(self.vertex_starts[:-1], np.diff(self.face_starts))
        return np.asarray(self.faces + starts[:, None], np.int64)

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

    @classmethod
    def named(cls, arrays: Mapping[str, Any]) -> "Meshes":
        """Take the arrays by their names; there may be others."""
        return cls(*(arrays[each.name] for each in fields(cls)))

    def take(self, rows: Any) -> "Meshes":
        """Copy some of the meshes, int64[n], one after the other; in the memory of the host."""
        of_vertices, vertex_starts = spans_of(self.vertex_starts, rows)
        of_faces, face_starts = spans_of(self.face_starts, rows)
        return Meshes(self.vertices[of_vertices], self.faces[of_faces], vertex_starts, face_starts)

    def followed_by(self, other: "Meshes") -> "Meshes":
        """Append other meshes."""
        return Meshes.joined([self, other])

    @classmethod
    def joined(cls, parts: "Sequence[Meshes]") -> "Meshes":
        """Append several groups of meshes; of arrays of a GPU it makes such arrays."""
        sizes = [
            np.concatenate([column[0][:1], *(np.diff(starts) for starts in column)])
            for column in zip(
                *((part.vertex_starts, part.face_starts) for part in parts), strict=True
            )
        ]
        return cls(
            np.concatenate([part.vertices for part in parts]),
            np.concatenate([part.faces for part in parts]),
            *map(np.cumsum, sizes),
        )


def spans_of(starts: Any, rows: Any) -> tuple[Ints, Ints]:
    """Say where the values of some rows are.

    Parameters
    ----------
    starts : int64[k + 1]
        Where the values of each row begin; the last entry is the end.
    rows : int64[n]

    Returns
    -------
    places : int64[m]
        The places of the values of the rows, one row after the other.
    starts : int64[n + 1]
        Where those of each begin.
    """
    lengths = np.diff(starts)[rows]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return np.arange(ends[-1]) + np.repeat(starts[:-1][rows] - ends[:-1], lengths), ends
