"""Small buildings, and scans of them of which the placement is known."""

from math import cos, radians, sin

import numpy as np
from spatialq.udfs.registration import MATRIX

import spatialq
from spatialq.data.meshes import Meshes

from ..element_tables import box

T = 0.2
"""Metres: of a wall or slab."""


def storey(z=0.0):
    """Walls of rooms of different sizes, and the slabs below and above: boxes."""
    walls = [
        ((0, 0), (12, T)), ((0, 8.8), (12, 9)), ((0, 0), (T, 9)), ((11.8, 0), (12, 9)),
        ((4.1, 0), (4.3, 5.3)), ((0, 5.3), (7.6, 5.5)), ((7.4, 2.2), (7.6, 9)),
        ((7.6, 3.7), (10.2, 3.9)),
    ]  # fmt: skip
    boxes = [box((*low, 0), (*high, 2.8)) for low, high in walls]
    boxes += [box((0, 0, -T), (12, 9, 0)), box((0, 0, 2.8), (12, 9, 3))]
    return [(vertices + np.array([0, 0, z]), faces) for vertices, faces in boxes]


HOUSE = Meshes.of(storey())
TOWER = Meshes.of([part for k in range(3) for part in storey(3.0 * k)])
"""The same storey three times."""
HALL = Meshes.of([
    box((0, 0, -T), (10, 6, 0)), box((0, 0, 3), (10, 6, 3.2)),
    box((0, 0, 0), (10, T, 3)), box((0, 5.8, 0), (10, 6, 3)),
    box((0, 0, 0), (T, 6, 3)), box((9.8, 0, 0), (10, 6, 3)),
])  # fmt: skip
"""It is the same after half a turn."""
OTHER = Meshes.of([
    box((0, 0, -T), (15, 5, 0)), box((0, 0, 4.4), (15, 5, 4.6)),
    box((0, 0, 0), (15, T, 4.4)), box((0, 4.8, 0), (15, 5, 4.4)),
    box((0, 0, 0), (T, 5, 4.4)), box((14.8, 0, 0), (15, 5, 4.4)),
    box((2.6, 0, 0), (2.8, 5, 4.4)), box((5.1, 0, 0), (5.3, 5, 4.4)),
    box((11.7, 0, 0), (11.9, 5, 4.4)), box((5.3, 2.5, 0), (11.7, 2.7, 4.4)),
])  # fmt: skip


def surface(meshes, density, rng):
    """Points spread at random over all faces: float64[n, 3]."""
    corners = meshes.vertices[meshes.global_faces]
    one, other = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    area = np.linalg.norm(np.cross(one, other), axis=1) / 2
    face = rng.choice(len(area), int(density * area.sum()), p=area / area.sum())
    s, t = rng.random((2, len(face), 1))
    s, t = np.where(s + t > 1, (1 - s, 1 - t), (s, t))
    return corners[face, 0] + s * one[face] + t * other[face]


def about_z(degrees):
    c, s = cos(radians(degrees)), sin(radians(degrees))
    return np.array([(c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)])


def scan(meshes, seed, *, low=None, high=None, clutter=8, density=400, noise=0.010):
    """Points on the faces within a box, with clutter and noise, in coordinates of the model."""
    rng = np.random.default_rng(seed)
    points = surface(meshes, density, rng)
    for side, limit in ((1, low), (-1, high)):
        if limit is not None:
            points = points[(side * (points - np.asarray(limit)) >= 0).all(axis=1)]
    first, last = points.min(axis=0), points.max(axis=0)
    things = []
    for _ in range(clutter):
        at, size = rng.uniform(first, last), rng.uniform(0.3, 1.2, 3)
        things.append(surface(Meshes.of([box(at, at + size)]), density, rng))
    points = np.concatenate([points, *things])
    return points + rng.normal(0, noise, points.shape)


def pose(seed):
    """A turn about the vertical and a shift to 100 m."""
    rng = np.random.default_rng([seed, 7])
    return about_z(rng.uniform(0, 360)), rng.uniform(-100, 100, 3)


def placements(points, elements, **options):
    """The rows, each with its matrix."""
    rows = spatialq.run(
        "registration", *np.ascontiguousarray(points.T), elements=elements, **options
    )
    matrices = np.stack([rows[name] for name in MATRIX], axis=1).reshape(-1, 4, 4)
    return rows, [text(rows["status"], k) for k in range(len(matrices))], matrices


def text(column, k):
    """A value of a column of text: codes into names, or names."""
    names = getattr(column, "names", None)
    if names is not None:
        return names[column.codes[k]]
    value = column[k]
    return ("found", "ambiguous", "not found")[value] if isinstance(value, np.integer) else value


def empty():
    return np.empty((0, 3))


ROOMS = {"low": (-1, -1, -1), "high": (8, 6, 4)}
"""The part of the house that is scanned."""
CASES = {
    "no points": (empty(), HOUSE, {}),
    "one point": (np.zeros((1, 3)), HOUSE, {}),
    "no elements": (scan(HOUSE, 1, density=50), Meshes.of([]), {}),
    "a part of a house": (scan(HOUSE, 2, **ROOMS, density=200), HOUSE, {"unit": 1.0}),
}


def arguments(case):
    """What the kernel takes of a case."""
    points, elements, options = CASES[case]
    x, y, z = np.ascontiguousarray(points.T)
    return {"x": x, "y": y, "z": z, "point_id": np.arange(len(x)), "elements": elements}, options
