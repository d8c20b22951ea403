"""How one mesh came to be where another is: whether they are one shape, and what moved it.

What looks the same is the same: a square column that was turned by 90 degrees did not move.
Vertices are compared as a set, so their order does not matter, nor does that of the faces.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from spatialq.geometry import broad_phase
from spatialq.runtime.arrays import Floats, Int32s

AREA = 1e-3
"""By which part of it the area of one shape may differ between two meshes of it."""
DISTINCT = 1e-6
"""By which part the moments of a shape must differ for its axes to be known."""


@dataclass(frozen=True)
class Motion:
    """A rigid motion: what it did to the centre of the surface, and how far it turned.

    Parameters
    ----------
    shift : float64[3]
        Metres.
    turn : float
        Degrees, 0 to 180, counter-clockwise about the axis.
    axis : float64[3], optional
        Unit vector; None where nothing turned.
    """

    shift: Floats
    turn: float = 0.0
    axis: Floats | None = None


@dataclass(frozen=True)
class Shape:
    """One mesh: vertices, float64[n, 3], and faces, int32[m, 3]."""

    vertices: Floats
    faces: Int32s

    def surface(self) -> tuple[float, Floats, Floats]:
        """Give the area, the centre of the surface, and its second moments about that."""
        corners = self.vertices[self.faces]
        sides = corners[:, 1:] - corners[:, :1]
        areas = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1) / 2
        area = float(areas.sum())
        middles = corners.mean(axis=1)
        weights = areas if area > 0 else np.ones(len(areas))
        centre = weights @ middles / weights.sum()
        out = corners - centre
        whole = out.sum(axis=1)
        moments = np.einsum("f,fki,fkj->ij", weights, out, out)
        moments += np.einsum("f,fi,fj->ij", weights, whole, whole)
        return area, centre, moments / 12


def is_in_place(a: Shape, b: Shape, tolerance: float) -> bool:
    """Whether two meshes are one shape at one place, to a tolerance in metres."""
    return _meet(a.vertices, b.vertices, tolerance) and _have_one_area(a, b)


def motion(a: Shape, b: Shape, tolerance: float) -> Motion | None:
    """Find what moved one mesh to where another is; None if they are not one shape."""
    if not _have_one_area(a, b):
        return None
    (_, from_centre, moments), (_, to_centre, other) = a.surface(), b.surface()
    shift = to_centre - from_centre
    here, there = a.vertices - from_centre, b.vertices - to_centre
    if _meet(here, there, tolerance):
        return Motion(shift)
    for turn in _turns(here, there, moments, other):
        if _meet(here @ turn.T, there, tolerance):
            return Motion(shift, *_angle_and_axis(turn))
    return None


def _have_one_area(a: Shape, b: Shape) -> bool:
    one, other = a.surface()[0], b.surface()[0]
    return abs(one - other) <= AREA * max(one, other)


def _meet(a: Floats, b: Floats, tolerance: float) -> bool:
    """Whether each of two sets of points has one of the other near it, along each axis."""
    if a.shape == b.shape and (np.abs(a - b) <= tolerance).all():
        return True
    ends = [(points.min(axis=0), points.max(axis=0)) for points in (a, b)]
    if not all((np.abs(p - q) <= tolerance).all() for p, q in zip(*ends, strict=True)):
        return False
    rows_a, rows_b = broad_phase.pairs(np.hstack([a, a]), np.hstack([b, b]), tolerance)
    return len(np.unique(rows_a)) == len(a) and len(np.unique(rows_b)) == len(b)


def _turns(here: Floats, there: Floats, moments: Floats, other: Floats) -> Iterator[Floats]:
    """Give the turns that may lead from points to others, both about their centre."""
    if here.shape == there.shape:  # vertex by vertex
        left, _, right = np.linalg.svd(there.T @ here)
        left[:, 2] *= np.linalg.det(left @ right)
        yield left @ right
    (sizes, axes), (_, others) = np.linalg.eigh(moments), np.linalg.eigh(other)
    if np.diff(sizes).min() <= DISTINCT * sizes.max():
        return
    for signs in product((1.0, -1.0), repeat=3):
        turn = (others * signs) @ axes.T
        if np.linalg.det(turn) > 0:
            yield turn


def _angle_and_axis(turn: Floats) -> tuple[float, Floats]:
    """Give the angle of a turn in degrees, and its axis; of half a turn that which points up."""
    skew = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    sine, cosine = np.linalg.norm(skew) / 2, (np.trace(turn) - 1) / 2
    angle = float(np.degrees(np.arctan2(sine, cosine)))
    _, vectors = np.linalg.eigh((turn + turn.T) / 2)
    axis = vectors[:, 2]  # of the largest eigenvalue, which is 1
    leading = axis @ skew if sine > 1e-9 else axis[np.flatnonzero(np.abs(axis) > 1e-9)[-1]]
    return angle, axis if leading >= 0 else -axis
