"""Elements as (vertices, faces); a case: those of a, those of b or None, options."""

import random
from math import cos, pi, sin

from spatialq.data.meshes import Meshes

SIDES = [
    (0, 2, 1), (1, 2, 3), (4, 5, 6), (5, 7, 6), (0, 1, 4), (1, 5, 4),
    (2, 6, 3), (3, 6, 7), (0, 4, 2), (2, 4, 6), (1, 3, 5), (3, 7, 5),
]  # fmt: skip


def box(west, south, bottom, east, north, top):
    corners = [(x, y, z) for z in (bottom, top) for y in (south, north) for x in (west, east)]
    return corners, SIDES


def cube(x, y, z, size=1.0):
    return box(x, y, z, x + size, y + size, z + size)


def point(x, y, z):
    """A triangle without area."""
    return [(x, y, z)], [(0, 0, 0)]


def joined(*meshes):
    """One element of several parts."""
    vertices, faces = [], []
    for mesh in meshes:
        faces += [tuple(len(vertices) + corner for corner in face) for face in mesh[1]]
        vertices += mesh[0]
    return vertices, faces


def inside_out(mesh):
    return mesh[0], [face[::-1] for face in mesh[1]]


def moved(mesh, x, y, z):
    return [(u + x, v + y, w + z) for u, v, w in mesh[0]], mesh[1]


def ball(x, y, z, radius, rows=6, columns=9):
    """Rows of triangles between two poles: many clusters, and distances off any axis."""
    vertices = [(x, y, z - radius)]
    for i in range(1, rows):
        at = pi * i / rows
        for j in range(columns):
            turn = 2 * pi * (j + 0.3) / columns
            vertices.append((
                x + radius * sin(at) * cos(turn),
                y + radius * sin(at) * sin(turn),
                z - radius * cos(at),
            ))  # fmt: skip
    vertices.append((x, y, z + radius))
    last, faces = len(vertices) - 1, []
    for j in range(columns):
        k = (j + 1) % columns
        faces.append((0, 1 + k, 1 + j))
        for i in range(rows - 2):
            p, q = 1 + i * columns, 1 + (i + 1) * columns
            faces += [(p + j, p + k, q + j), (p + k, q + k, q + j)]
        p = 1 + (rows - 2) * columns
        faces.append((last, p + j, p + k))
    return vertices, faces


def tetrahedra(n, seed, spread):
    draw = random.Random(seed)
    faces, found = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)], []
    for _ in range(n):
        x, y, z = (draw.uniform(0, spread) for _ in range(3))
        corners = [(0, 0, 0), (draw.uniform(0.5, 2), 0, 0), (0, draw.uniform(0.5, 2), 0), (0, 0, 1)]
        found.append(moved((corners, faces), x, y, z))
    return found


NOTHING = ([(0.5, 0.5, 0.5)], [])
LATTICE = [cube(x, y, z, 0.5) for x in (0, 1, 2.5) for y in (0, 0.5) for z in (0, 0.75)]
BEAMS = [box(0, -0.05, -0.1, 10, 0.05, 0), box(4.95, -5, 0.1, 5.05, 5, 0.2)]
HOLLOW = joined(cube(0, 0, 0, 4), inside_out(cube(1, 1, 1, 2)))

CASES = {
    "no elements": ([], None, {}),
    "no elements in b": ([cube(0, 0, 0)], [], {}),
    "no triangles": ([NOTHING, cube(0, 0, 0), NOTHING, cube(3, 0, 0)], None, {}),
    "no triangles, the nearest": ([NOTHING, cube(0, 0, 0)], [cube(3, 0, 0), NOTHING], {"k": 3}),
    "one triangle each": (
        [([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)])],
        [([(0, 0, 1), (1, 0, 1), (0, 1, 2)], [(0, 1, 2)])],
        {},
    ),
    "crossing beams": (BEAMS, None, {}),
    "a lattice": (LATTICE, None, {}),
    "a lattice, near": (LATTICE, None, {"max_distance": 0.5}),
    "a lattice, where they meet": (LATTICE, None, {"max_distance": 0.0}),
    "a lattice, the nearest": (LATTICE, None, {"k": 2}),
    "a lattice, the nearest that are near": (LATTICE, LATTICE[:5], {"k": 4, "max_distance": 0.5}),
    "more nearest than there are": (LATTICE[:3], LATTICE[:2], {"k": 9}),
    "one in another": ([cube(0, 0, 0, 4), cube(1, 1, 1)], None, {"max_distance": 0.1}),
    "one in another, the nearest": ([cube(1, 1, 1)], [cube(2.5, 1, 1), cube(0, 0, 0, 9)], {"k": 1}),
    "in one that is inside out": ([inside_out(cube(0, 0, 0, 4))], [cube(1, 1, 1)], {}),
    "in an open one": ([(cube(0, 0, 0, 4)[0], SIDES[:-1])], [cube(1, 1, 1.5)], {}),
    "in the cavity of another": ([HOLLOW], [cube(1.5, 1.75, 1.5, 0.5)], {}),
    "a part of it inside another": (
        [joined(cube(9, 9, 9), cube(1, 1, 1))],
        [cube(0, 0, 0, 4)],
        {"max_distance": 0.0},
    ),
    "a vertex of no triangle inside": (
        [(cube(9, 9, 9)[0] + [(2.0, 2.0, 2.0)], SIDES)],
        [cube(0, 0, 0, 4)],
        {},
    ),
    "points": (
        [point(2, 2, 0.5), point(9.5, 3, 1), point(2, 2, -0.25), point(1, 0, 0), point(7, 7, 7)],
        [cube(1, 1, 0, 2), cube(9, 0, 0, 3), (cube(6, 6, 6, 3)[0], SIDES[:-1]), point(1, 0, 1)],
        {"max_distance": 2.0},
    ),
    "equal ones": ([cube(0, 0, 0), cube(0, 0, 0)], None, {}),
    "tetrahedra": (tetrahedra(4, 1, 3), None, {}),
    "tetrahedra, the nearest": (tetrahedra(2, 2, 9), tetrahedra(3, 3, 9), {"k": 2}),
    "far from the origin": ([moved(beam, 714947, 4286501, 600) for beam in BEAMS], None, {}),
}


def arguments(case):
    """What the kernel takes of a case."""
    a, b, options = CASES[case]
    return {"a": Meshes.of(a), "b": None if b is None else Meshes.of(b)}, options
