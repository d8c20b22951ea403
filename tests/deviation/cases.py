"""Points and elements as (vertices, faces); a case: points, normals or None, elements, options."""

import numpy as np

from spatialq.data.meshes import Meshes

from ..plane_elements.cases import SIDES, box, inside_out, joined, moved

WALL = box(0, 0, 0, 4, 0.25, 2.5)
UTM = np.array([691_000.0, 5_334_000.0, 520.0])
NOTHING = (np.array([(0.5, 0.0, 0.5)]), [])
OPEN = (WALL[0], SIDES[:-1])
RNG = np.random.default_rng(7)
AROUND = np.array([-0.5, -0.5, -0.5]) + RNG.random((400, 3)) * [5.0, 1.25, 3.5]
NORMALS = RNG.normal(size=(400, 3))
NEEDLE = (
    np.array([(0, 0, 0), (1, 0, 0), (0.5, 1e-9, 0), (2, 0, 0), (2, 0, 0), (2, 1, 0)], float),
    [(0, 1, 2), (3, 4, 5), (3, 3, 3)],
)
"""Triangles without an area: a needle, a segment and a point."""


def star(spikes=5, seed=3):
    """Make a closed body with sharp edges, inwards and outwards: fans from two tips."""
    rng = np.random.default_rng(seed)
    turns = np.linspace(0, 2 * np.pi, 2 * spikes, endpoint=False)
    sizes = np.where(np.arange(2 * spikes) % 2, 0.15, 1.0) + rng.random(2 * spikes) * 0.05
    ring = np.column_stack([sizes * np.cos(turns), sizes * np.sin(turns), np.zeros(2 * spikes)])
    vertices = np.concatenate([ring, [(0, 0, 0.2), (0, 0, -0.1)]])
    high, low, faces = 2 * spikes, 2 * spikes + 1, []
    for i in range(2 * spikes):
        j = (i + 1) % (2 * spikes)
        faces += [(i, j, high), (j, i, low)]
    return vertices, faces


def layers():
    """Make one element of two layers that touch in a face and share its edges."""
    return joined(box(0, 0, 0, 4, 0.125, 2.5), box(0, 0.125, 0, 4, 0.25, 2.5))


def hollow():
    """Make a box with a cavity, whose wall is inside out."""
    return joined(box(0, 0, 0, 4, 1, 2.5), inside_out(box(0.25, 0.25, 0.25, 3.75, 0.75, 2.25)))


FAR = {"max_distance": 10.0}
CASES = {
    "no points": (AROUND[:0], None, [WALL], {}),
    "no elements": (AROUND[:9], None, [], {}),
    "no triangles": (AROUND[:9], None, [NOTHING], {}),
    "a wall": (AROUND, None, [NOTHING, WALL, NOTHING], {}),
    "a wall, and normals": (AROUND, NORMALS, [WALL], {"max_distance": 1.0}),
    "inside out": (AROUND, NORMALS, [inside_out(WALL)], FAR),
    "open": (AROUND, NORMALS, [OPEN], FAR),
    "open and closed": (AROUND, NORMALS, [OPEN, moved(WALL, (0, 0.5, 0))], FAR),
    "one element twice": (AROUND, None, [WALL, WALL], FAR),
    "two that touch": (
        AROUND, None, [box(0, 0, 0, 1.5, 0.25, 2.5), box(1.5, 0, 0, 4, 0.25, 2.5)], FAR,
    ),
    "layers": (AROUND, NORMALS, [layers()], FAR),
    "a cavity": (AROUND + np.array([0, 0.4, 0]), NORMALS, [hollow()], FAR),
    "parts that overlap": (
        AROUND, None, [joined(WALL, moved(WALL, (0.1, 0.1, 0.1)), moved(WALL, (1, 0.2, -1)))], FAR,
    ),
    "sharp edges": (AROUND * [0.5, 2, 0.3] - [0.5, 0, 0], NORMALS, [star()], FAR),
    "triangles without an area": (AROUND, NORMALS, [NEEDLE, moved(WALL, (0, 1, 0))], FAR),
    "at UTM coordinates": (
        AROUND + UTM, NORMALS, [moved(WALL, UTM), moved(star(), UTM)], {"max_distance": 1.0},
    ),
    "in feet": (AROUND / 0.3048, NORMALS, [WALL], {"unit": 0.3048, "max_distance": 0.3}),
    "at the bound": (
        np.array([(1.0, -0.125, 1.0), (1.0, -0.1250001, 1.0)]), None, [WALL],
        {"max_distance": 0.125},
    ),
    "on faces, edges and corners": (
        np.array([(x, y, z) for x in (0, 1, 4) for y in (0, 0.125, 0.25) for z in (0, 1, 2.5)]),
        None, [WALL, OPEN], {},
    ),
    "a far element": (AROUND, None, [WALL, moved(WALL, (1e5, 0, 0))], {}),
    "many elements": (
        AROUND, NORMALS,
        [moved(star(seed=k), (0.2 * (k % 20), 0.1 * (k % 7), 0.3 * (k % 9))) for k in range(40)],
        {"max_distance": 0.3},
    ),
}  # fmt: skip


def arguments(name):
    """Make of a case what the kernel takes, and the options."""
    points, normals, elements, options = CASES[name]
    columns = dict(zip("xyz", np.ascontiguousarray(points.T), strict=True))
    if normals is not None:
        of_points = zip(("nx", "ny", "nz"), np.ascontiguousarray(normals.T), strict=True)
        columns.update(of_points)
    ids = np.arange(len(points)) + 100
    return {**columns, "point_id": ids, "elements": Meshes.of(elements)}, options


def triangles_of(mesh):
    """Give the corners of the faces of a mesh: float64[m, 3, 3]."""
    vertices, faces = mesh
    return np.asarray(vertices, float)[np.array(faces, int).reshape(-1, 3)]
