"""The faces of models that lie along their walls and floors: what is compared of them."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spatialq.data.meshes import Meshes

QUARTER = math.pi / 2
BINS = 9000
"""Of directions of walls, in a quarter of a turn: a hundredth of a degree each."""
UPRIGHT = 1e-4
"""The z of the unit normal of a vertical face is less."""
ALONG = 1e-6
"""How much less than 1 a component of the unit normal of a face along an axis may be."""
SAME_PLANE = 5e-4
"""Metres: triangles of an element that are in one plane."""
MIN_AREA = 0.01
"""Square metres of a face: smaller ones are many, and say little."""


@dataclass(frozen=True)
class Facets:
    """Rectangles around faces that are perpendicular to an axis, one entry for each axis.

    Parameters
    ----------
    element : tuple of int64[n]
        The number of the element that has the face.
    low, high : tuple of float64[n, 3]
        Corners, metres, sorted by the coordinate along the axis.
    """

    element: "tuple[NDArray[np.int64], ...]"
    low: "tuple[NDArray[np.float64], ...]"
    high: "tuple[NDArray[np.float64], ...]"

    @classmethod
    def of(cls, element: Any, axis: Any, low: Any, high: Any) -> "Facets":
        """Divide faces by their axes, and sort them."""
        rows = []
        for k in range(3):
            (there,) = np.nonzero(axis == k)
            rows.append(there[np.argsort(low[there, k], kind="stable")])
        return cls(*(tuple(values[each] for each in rows) for values in (element, low, high)))

    @classmethod
    def joined(cls, parts: "list[Facets]") -> "Facets":
        """Take the faces of several models together."""
        if len(parts) == 1:
            return parts[0]
        axis = [np.full(len(rows), k) for part in parts for k, rows in enumerate(part.element)]
        return cls.of(
            np.concatenate([rows for part in parts for rows in part.element]),
            np.concatenate(axis),
            np.concatenate([rows for part in parts for rows in part.low]),
            np.concatenate([rows for part in parts for rows in part.high]),
        )

    def largest(self, most: int) -> "Facets":
        """Take the largest faces along each axis, at most so many."""
        rows = []
        for k, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            width, height = (np.delete(high - low, k, axis=1)).T
            rows.append(np.sort(np.argsort(-width * height, kind="stable")[:most]))
        return Facets(
            tuple(each[chosen] for each, chosen in zip(self.element, rows, strict=True)),
            tuple(each[chosen] for each, chosen in zip(self.low, rows, strict=True)),
            tuple(each[chosen] for each, chosen in zip(self.high, rows, strict=True)),
        )

    def turned(self, quarters: int) -> "Facets":
        """Turn the faces by quarters about z, counter-clockwise seen from above."""
        found = self
        for _ in range(quarters % 4):
            (x, y, z), low, high = found.element, found.low, found.high
            axis = np.repeat([1, 0, 2], [len(x), len(y), len(z)])
            below, above = np.concatenate(low), np.concatenate(high)
            found = Facets.of(
                np.concatenate([x, y, z]),
                axis,
                np.column_stack([-above[:, 1], below[:, 0], below[:, 2]]),
                np.column_stack([-below[:, 1], above[:, 0], above[:, 2]]),
            )
        return found

    @cached_property
    def corners(self) -> "NDArray[np.float64]":
        """The ends of vertical faces seen from above, each once, sorted by x: float64[n, 2]."""
        ends = [
            np.column_stack([side[k][:, 0], side[k][:, 1]])
            for k in (0, 1)
            for side in (self.low, self.high)
        ]
        return np.unique(np.round(np.concatenate(ends), 4), axis=0)


@dataclass(frozen=True)
class Triangles:
    """The triangles of a model.

    Parameters
    ----------
    vertices : float64[n, 3]
    faces : int64[m, 3]
    element : int64[m]
        The number of the element that each belongs to.
    normal : float64[m, 3]
        Unit normals.
    area : float64[m]
        Square metres.
    """

    vertices: Any
    faces: Any
    element: Any
    normal: Any
    area: Any

    @classmethod
    def of(cls, meshes: "Meshes") -> "Triangles":
        """Measure the triangles of a model; those without area are left out."""
        faces = meshes.global_faces
        a, b, c = (meshes.vertices[faces[:, k]] for k in range(3))
        normal = np.cross(b - a, c - a)
        twice = np.sqrt((normal * normal).sum(axis=1))
        there = twice > 2 * UPRIGHT * MIN_AREA
        unit = normal[there] / twice[there, None]
        element = meshes.face_mesh[there]
        return cls(meshes.vertices, faces[there], element, unit, twice[there] / 2)

    def direction(self) -> float | None:
        """Find the direction of most walls, in radians from x, within a quarter of a turn."""
        upright = np.abs(self.normal[:, 2]) < UPRIGHT
        if not upright.any():
            return None
        normal, area = self.normal[upright], self.area[upright]
        angle = np.arctan2(normal[:, 1], normal[:, 0]) % QUARTER
        step = QUARTER / BINS
        bins = np.round(angle / step).astype(np.int64) % BINS
        most = np.bincount(bins, area, BINS).argmax() * step
        off = (angle - most + QUARTER / 2) % QUARTER - QUARTER / 2
        near = np.abs(off) <= step
        return float(most + np.average(off[near], weights=area[near]))

    def facets(self, direction: float, first: int) -> Facets:
        """Take the faces along the axes, if the x-axis has a direction, one for each plane.

        The elements are numbered from `first`.
        """
        turn = turning(-direction)
        vertices, normal = self.vertices @ turn.T, self.normal @ turn.T
        axis = np.abs(normal).argmax(axis=1)
        along = np.take_along_axis(normal, axis[:, None], axis=1)[:, 0]
        there = np.abs(along) > 1 - ALONG
        axis, element, area = axis[there], self.element[there] + first, self.area[there]
        corners = vertices[self.faces[there]]
        low, high = corners.min(axis=1), corners.max(axis=1)
        at = np.take_along_axis(low, axis[:, None], axis=1)[:, 0]
        plane = np.round(at / SAME_PLANE).astype(np.int64)
        key = np.stack([plane, 2 * axis + (along[there] > 0), element])
        order = np.lexsort(key)
        is_new = (np.diff(key[:, order], axis=1) != 0).any(axis=0)
        starts = np.flatnonzero(np.concatenate([np.ones(min(len(order), 1), bool), is_new]))
        if not len(starts):
            return Facets.of(element, axis, low, high)
        large = np.add.reduceat(area[order], starts) >= MIN_AREA
        kept = order[starts][large]
        return Facets.of(
            element[kept],
            axis[kept],
            np.minimum.reduceat(low[order], starts)[large],
            np.maximum.reduceat(high[order], starts)[large],
        )


def turning(angle: float) -> "NDArray[np.float64]":
    """Give the matrix that turns about z, counter-clockwise seen from above."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
