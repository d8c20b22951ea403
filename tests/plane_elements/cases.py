"""Planes as (points, normal); a case: planes, elements as (vertices, faces), options."""

from math import cos, radians, sin

import numpy as np

from spatialq.data.meshes import Meshes

SIDES = [
    (0, 2, 1), (1, 2, 3), (4, 5, 6), (5, 7, 6), (0, 1, 4), (1, 5, 4),
    (2, 6, 3), (3, 6, 7), (0, 4, 2), (2, 4, 6), (1, 3, 5), (3, 7, 5),
]  # fmt: skip
"""Of a box, counter-clockwise seen from outside."""


def box(west, south, bottom, east, north, top):
    corners = [(x, y, z) for z in (bottom, top) for y in (south, north) for x in (west, east)]
    return np.array(corners, float), SIDES


def inside_out(mesh):
    return mesh[0], [face[::-1] for face in mesh[1]]


def moved(mesh, by):
    return mesh[0] + by, mesh[1]


def patch(origin, one, other, *, n=600, noise=0.0, seed=1):
    """Make points spread over a parallelogram, and its normal."""
    rng = np.random.default_rng(seed)
    one, other = np.array(one, float), np.array(other, float)
    normal = np.cross(one, other)
    normal /= np.linalg.norm(normal)
    s, t, height = rng.random((n, 1)), rng.random((n, 1)), rng.normal(0.0, noise, (n, 1))
    return origin + s * one + t * other + height * normal, normal


def turned(plane, degrees):
    """Tilt a plane of the points' middle around x."""
    points, normal = plane
    c, s = cos(radians(degrees)), sin(radians(degrees))
    turn = np.array([(1, 0, 0), (0, c, -s), (0, s, c)])
    middle = points.mean(axis=0)
    return (points - middle) @ turn.T + middle, normal @ turn.T


def joined(*meshes):
    """One element of several parts."""
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in meshes)])
    faces = [
        tuple(int(start) + corner for corner in face)
        for start, (_, faces) in zip(starts, meshes, strict=False)
        for face in faces
    ]
    return np.concatenate([vertices for vertices, _ in meshes]), faces


ROOM = [
    box(-0.2, -0.2, 0, 4.2, 0, 2.5),  # four walls
    box(-0.2, 3, 0, 4.2, 3.2, 2.5),
    box(-0.2, 0, 0, 0, 3, 2.5),
    box(4, 0, 0, 4.2, 3, 2.5),
    box(-0.2, -0.2, -0.3, 4.2, 3.2, 0),  # slabs
    box(-0.2, -0.2, 2.5, 4.2, 3.2, 2.8),
]
ROOM_PLANES = [
    patch((0, 0, 0), (4, 0, 0), (0, 0, 2.5), noise=0.004, seed=1),
    patch((0, 3, 0), (4, 0, 0), (0, 0, 2.5), noise=0.004, seed=2),
    patch((0, 0, 0), (0, 3, 0), (0, 0, 2.5), noise=0.004, seed=3),
    patch((4, 0, 0), (0, 3, 0), (0, 0, 2.5), noise=0.004, seed=4),
    patch((0, 0, 0), (4, 0, 0), (0, 3, 0), noise=0.004, seed=5),
    patch((0, 0, 2.5), (4, 0, 0), (0, 3, 0), noise=0.004, seed=6),
]
WALL = box(0, 0, 0, 4, 0.25, 2.5)
FRONT = patch((0, 0, 0), (4, 0, 0), (0, 0, 2.5))
SMALL = patch((1, 0, 1), (0.5, 0, 0), (0, 0, 0.5))
UTM = np.array([691_000.0, 5_334_000.0, 520.0])
NOTHING = (np.array([(0.5, 0.0, 0.5)]), [])


def off(plane, by):
    return plane[0] + by, plane[1]


CASES = {
    "no planes": ([], [WALL], {}),
    "no elements": ([FRONT], [], {}),
    "no triangles": ([FRONT], [NOTHING, WALL, NOTHING], {}),
    "no triangles anywhere": ([FRONT], [NOTHING], {}),
    "a room": (ROOM_PLANES, ROOM, {}),
    "a room, all that lies on anything": (ROOM_PLANES, ROOM, {"min_overlap": 0.0}),
    "a room at UTM coordinates": (
        [off(plane, UTM) for plane in ROOM_PLANES],
        [moved(mesh, UTM) for mesh in ROOM],
        {},
    ),
    "a room in feet": (
        [(points / 0.3048, normal) for points, normal in ROOM_PLANES],
        ROOM,
        {"unit": 0.3048},
    ),
    "outside all": ([off(FRONT, (0, -1, 0)), off(FRONT, (9, 0, 0))], [WALL], {}),
    "a deviation outwards and one inwards": (
        [off(FRONT, (0, -0.03, 0)), off(FRONT, (0, 0.02, 0))],
        [WALL],
        {},
    ),
    "inside out": ([off(FRONT, (0, -0.03, 0))], [inside_out(WALL)], {}),
    "an open mesh": ([off(FRONT, (0, -0.03, 0))], [(WALL[0], SIDES[:-1])], {}),
    "at the bound": ([off(FRONT, (0, -0.0625, 0))], [WALL], {"max_offset": 0.0625}),
    "beyond the bound": ([off(FRONT, (0, -0.0626, 0))], [WALL], {"max_offset": 0.0625}),
    "tilted by 4.9 degrees": ([turned(SMALL, 4.9)], [WALL], {}),
    "tilted by 5.1 degrees": ([turned(SMALL, 5.1)], [WALL], {}),
    "parallel, no angle allowed": ([FRONT], [WALL], {"max_angle": 0.0}),
    "tilted so that its ends are off": ([turned(FRONT, 3)], [WALL], {}),
    "one element twice": ([FRONT], [WALL, WALL], {}),
    "two elements with one face": (
        [FRONT],
        [box(0, 0, 0, 1.5, 0.25, 2.5), box(1.5, 0, 0, 4, 0.1, 2.5)],
        {},
    ),
    "a covering in front": (
        [off(FRONT, (0, -0.01, 0))],
        [WALL, box(0, -0.01, 0.02, 4, 0, 2.5)],
        {},
    ),
    "a covering behind what was scanned": (
        [FRONT],
        [WALL, box(0, -0.01, 0, 4, 0, 2.5)],
        {},
    ),
    "a thin wall, both faces": (
        [off(FRONT, (0, 0.002, 0)), off(FRONT, (0, 0.039, 0))],
        [box(0, 0, 0, 4, 0.04, 2.5)],
        {},
    ),
    "two faces of one element behind each other": (
        [off(FRONT, (0, -0.018, 0))],
        [joined(box(0, -0.02, 0, 4, -0.01, 2.5), WALL)],
        {},
    ),
    "between the faces of a thin wall": (
        [patch((0, 0.021, 0), (4, 0, 0), (0, 0, 2.5), noise=0.006)],
        [box(0, 0, 0, 4, 0.04, 2.5)],
        {},
    ),
    "both faces of a thin wall as one plane": (
        [(np.concatenate([FRONT[0], FRONT[0][:500] + np.array((0, 0.03, 0))]), FRONT[1])],
        [box(0, 0, 0, 4, 0.03, 2.5)],
        {},
    ),
    "a steep face, far off": (
        [turned(patch((1, 0, 1), (0.4, 0, 0), (0, 0, 0.4), n=5000), 40)],
        [box(1.1, 0, 1.1, 1.3, 0.2, 1.3)],
        {"max_angle": 45.0, "max_offset": 0.15, "min_overlap": 0.0},
    ),
    "a tall wall, tilted": (
        [turned(patch((0, 0, 0), (4, 0, 0), (0, 0, 10)), 4.5)],
        [box(0, 0, 0, 4, 0.25, 10)],
        {"min_overlap": 0.0},
    ),
    "one of two parts, in feet": (
        [(patch((0, 5, 0), (4, 0, 0), (0, 0, 2.5))[0] / 0.3048, FRONT[1])],
        [joined(box(0, 5, 0, 4, 5.3, 2.5), box(6, 5, 0, 10, 5.3, 2.5))],
        {"unit": 0.3048},
    ),
    "something small, coplanar": ([FRONT], [box(1, 0, 1, 1.25, 0.03, 1.25)], {}),
    "walls that meet": (
        [FRONT],
        [WALL, box(4, -3, 0, 4.2, 3, 2.5), box(-0.2, -3, 0, 0, 3, 2.5)],
        {"min_overlap": 0.0},
    ),
    "a long facade of short walls": (
        [patch((0, 0, 0), (20, 0, 0), (0, 0, 2.5), n=5000)],
        [box(2 * i, 0, 0, 2 * i + 2, 0.3, 2.5) for i in range(10)],
        {},
    ),
    "half on it": ([off(FRONT, (2, 0, 0))], [WALL], {"min_overlap": 0.4}),
    "too little on it": ([off(FRONT, (3.5, 0, 0))], [WALL], {}),
    "needles and points": (
        [FRONT],
        [(np.vstack([WALL[0], (2, 0, 0)]), [*SIDES, (0, 0, 1), (0, 1, 8), (3, 3, 3)])],
        {},
    ),
    "a roof": (
        [patch((0, 0, 3), (8, 0, 0), (0, 3, 2.5), n=900, noise=0.01)],
        [
            (
                np.array([(0, 0, 3), (8, 0, 3), (8, 3, 5.5), (0, 3, 5.5),
                          (0, 0, 2.8), (8, 0, 2.8), (8, 3, 5.3), (0, 3, 5.3)], float),
                [(0, 1, 2), (0, 2, 3), (4, 6, 5), (4, 7, 6), (0, 4, 5), (0, 5, 1),
                 (1, 5, 6), (1, 6, 2), (2, 6, 7), (2, 7, 3), (3, 7, 4), (3, 4, 0)],
            ),
            box(0, 0, 0, 8, 0.3, 3),
        ],
        {},
    ),
}  # fmt: skip


def arguments(case):
    """What the kernel takes of a case: the points of all its planes."""
    planes, elements, options = CASES[case]
    x, y, z = np.concatenate([np.empty((0, 3)), *(points for points, _ in planes)]).T.copy()
    columns = {"x": x, "y": y, "z": z, "point_id": np.arange(len(x))}
    return {**columns, "elements": Meshes.of(elements)}, options
