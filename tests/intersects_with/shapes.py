"""Closed triangle meshes for tests of elements, and ways to change them.

A mesh is a pair: vertices float64[n, 3] in metres, faces int64[m, 3], counter-clockwise seen from
outside.
"""

from itertools import product
from math import cos, pi, radians, sin

import manifold3d
import numpy as np


def box(low, high):
    """All points between two corners."""
    corners = np.array(list(product(*zip(low, high, strict=True))), float)
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [face for a, b, c, d in sides for face in ((a, b, c), (a, c, d))]
    return corners, np.array(faces)


def cube(size, centre=(0.0, 0.0, 0.0)):
    centre = np.array(centre, float)
    return box(centre - size / 2, centre + size / 2)


def extruded(outlines, low, high):
    """Polygons in the plane, the outer one counter-clockwise and holes clockwise, between z's."""
    lid = manifold3d.triangulate([np.array(outline, float) for outline in outlines])
    plane = np.concatenate([np.array(outline, float) for outline in outlines])
    n = len(plane)
    vertices = np.concatenate([np.column_stack([plane, np.full(n, z)]) for z in (low, high)])
    faces = [*(lid[:, ::-1]), *(lid + n)]
    start = 0
    for outline in outlines:
        for i in range(len(outline)):
            here, there = start + i, start + (i + 1) % len(outline)
            faces += [(here, there, there + n), (here, there + n, here + n)]
        start += len(outline)
    return vertices, np.array(faces)


def circle(radius, n, turn=0.0):
    angles = 2 * pi * (np.arange(n) + turn) / n
    return np.column_stack([radius * np.cos(angles), radius * np.sin(angles)])


def cylinder(radius, low, high, n=32, turn=0.0):
    """Upright around the z axis; its first edge towards +x, or `turn` of a side further."""
    return extruded([circle(radius, n, turn)], low, high)


def pipe(inner, outer, low, high, n=32, turn=0.0):
    return extruded([circle(outer, n, turn), circle(inner, n, turn)[::-1]], low, high)


def sphere(radius, rings=32, sectors=64):
    """Around the origin, with poles on the z axis."""
    rows = [
        [radius * sin(t) * cos(p), radius * sin(t) * sin(p), radius * cos(t)]
        for t in pi * np.arange(1, rings) / rings
        for p in 2 * pi * np.arange(sectors) / sectors
    ]
    north, south = len(rows), len(rows) + 1
    faces = []
    for j in range(sectors):
        k = (j + 1) % sectors
        faces.append((north, j, k))
        for i in range(rings - 2):
            a, b = i * sectors, (i + 1) * sectors
            faces += [(a + j, b + j, b + k), (a + j, b + k, a + k)]
        last = (rings - 2) * sectors
        faces.append((last + j, south, last + k))
    return np.array([*rows, [0, 0, radius], [0, 0, -radius]], float), np.array(faces)


def torus(big, small, n=48, m=24):
    """A ring around the z axis."""
    vertices = [
        [(big + small * cos(q)) * cos(p), (big + small * cos(q)) * sin(p), small * sin(q)]
        for p in 2 * pi * np.arange(n) / n
        for q in 2 * pi * np.arange(m) / m
    ]
    faces = []
    for i, j in product(range(n), range(m)):
        a, b = i * m, (i + 1) % n * m
        k = (j + 1) % m
        faces += [(a + j, b + j, b + k), (a + j, b + k, a + k)]
    return np.array(vertices), np.array(faces)


def tetrahedron(*corners):
    """Four corners in any order."""
    corners = np.array(corners, float)
    faces = np.array([(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)])
    inside_out = np.linalg.det(corners[1:] - corners[0]) < 0
    return corners, faces[:, ::-1] if inside_out else faces


def bar(*, length=3.0):
    """Along x, one metre wide and high."""
    return box((0, 0, 0), (length, 1, 1))


def u_shape():
    """Three metres wide, three deep, one high; the notch is x 1..2, y 1..3."""
    outline = [(0, 0), (3, 0), (3, 3), (2, 3), (2, 1), (1, 1), (1, 3), (0, 3)]
    return extruded([outline], 0, 1)


def l_shape():
    """The square of two metres without its corner x 1..2, y 1..2; one high."""
    return extruded([[(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]], 0, 1)


def wall_with_opening():
    """Four metres along x, 0.2 m along y, three high; the hole is x 1..2, z 1..2."""
    outline = [(0, 0), (4, 0), (4, 3), (0, 3)]
    hole = [(1, 1), (1, 2), (2, 2), (2, 1)]
    upright = turned(extruded([outline, hole], -0.2, 0), (1, 0, 0), 90)
    return np.round(upright[0], 9), upright[1]


def together(*meshes):
    """Several bodies as one element."""
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in meshes)])
    return (
        np.concatenate([vertices for vertices, _ in meshes]),
        np.concatenate([faces + start for (_, faces), start in zip(meshes, starts, strict=False)]),
    )


def flipped(mesh):
    """The same surface seen from the other side."""
    return mesh[0], mesh[1][:, ::-1].copy()


def hollow(outer, inner):
    """A body with a void in it."""
    return together(outer, flipped(inner))


def without(mesh, *faces):
    """An open surface: the mesh without some faces."""
    return mesh[0], np.delete(mesh[1], faces, axis=0)


def subdivided(mesh, times=1):
    """Each triangle in four, `times` times; the surface stays as it is."""
    for _ in range(times):
        corners = mesh[0][mesh[1]]
        a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
        ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
        soup = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
        mesh = welded(np.concatenate([np.stack(each, axis=1) for each in soup]))
    return mesh


def welded(corners):
    """A mesh of float64[m, 3, 3] triangle corners; equal corners become one vertex."""
    vertices, faces = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    return vertices, faces.reshape(-1, 3)


def unwelded(mesh):
    """Every triangle with vertices of its own, as some exporters write them."""
    return mesh[0][mesh[1]].reshape(-1, 3), np.arange(mesh[1].size).reshape(-1, 3)


def shuffled(mesh, seed):
    """The same mesh: vertices, faces and the first corner of each face in another order."""
    rng = np.random.default_rng(seed)
    vertices, faces = mesh
    order = rng.permutation(len(vertices))
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    faces = place[faces[rng.permutation(len(faces))]]
    first = rng.integers(0, 3, len(faces))
    return vertices[order], faces[np.arange(len(faces))[:, None], (first[:, None] + range(3)) % 3]


def moved(mesh, by):
    return mesh[0] + np.asarray(by, float), mesh[1]


def turned(mesh, axis, degrees, about=(0.0, 0.0, 0.0)):
    """Turn around an axis through a point, by the right hand (Rodrigues)."""
    x, y, z = np.array(axis, float) / np.linalg.norm(axis)
    across = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angle = radians(degrees)
    matrix = np.eye(3) + sin(angle) * across + (1 - cos(angle)) * across @ across
    return (mesh[0] - about) @ matrix.T + about, mesh[1]
