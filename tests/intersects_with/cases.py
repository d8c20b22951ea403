"""Named pairs of elements, how they stand to each other and why; for every device.

Each case is (a, b, relation, depth): depth is the diameter of the largest ball in the common
part, None where no formula gives it.
"""

from math import atan, cos, degrees, pi, sqrt

import numpy as np

from spatialq.data.meshes import Meshes

from .shapes import (
    bar,
    box,
    cube,
    cylinder,
    extruded,
    hollow,
    l_shape,
    moved,
    pipe,
    sphere,
    subdivided,
    tetrahedron,
    together,
    torus,
    turned,
    u_shape,
    wall_with_opening,
)

BEAM = box((-2, -0.05, -0.05), (2, 0.05, 0.05))
WALL = box((0, 0, 0), (3, 0.2, 2.5))
SLAB = box((-2, -2, -0.2), (2, 2, 0))
BLOCK = cube(2.0)
SHELL = hollow(cube(4.0), cube(3.0))
SLEEVE = pipe(0.06, 0.08, 0, 1)
RING = torus(1.0, 0.2)
ON_EDGE = turned(cube(1.0), (0, 1, 0), 45)
ON_CORNER = turned(turned(cube(1.0), (0, 0, 1), 45), (0, 1, 0), degrees(atan(sqrt(0.5))))
"""Two opposite corners on the x axis, sqrt(3) apart."""

IN_A_CORNER = 2 * sqrt(2) / (1 + sqrt(2))
IN_A_SOLID_CORNER = 2 * sqrt(3) / (1 + sqrt(3))
"""How much larger than a layer's thickness a ball may be where the layer turns around a convex
edge or corner."""

BRICK = np.array([
    [0.15, 0.7, 1.5], [0.15, 0.7, 2.25], [-0.65, 1.3, 1.5], [-0.65, 1.3, 2.25],
    [1.05, 1.9, 1.5], [1.05, 1.9, 2.25], [0.25, 2.5, 1.5], [0.25, 2.5, 2.25],
])  # fmt: skip
STICK = np.array([
    [0.87748888, 2.04593828, 0.32657284], [0.98675775, 1.94412326, 1.81911899],
    [0.86051971, 2.29469597, 0.34478432], [0.96978858, 2.19288095, 1.83733047],
    [1.12624657, 2.06414976, 0.30960367], [1.23551545, 1.96233473, 1.80214982],
    [1.10927740, 2.31290745, 0.32781515], [1.21854628, 2.21109243, 1.82036130],
])  # fmt: skip
"""Corners of two boxes: an edge of the second is 2 mm deep in the first, beside an edge of that."""

CASES = {
    # apart and at the surface
    "a metre apart": (cube(1.0), cube(1.0, (2, 0, 0)), "disjoint", 0),
    "walls with a gap of 50 mm": (WALL, moved(WALL, (3.05, 0, 0)), "disjoint", 0),
    "walls with a gap of 3 mm": (WALL, moved(WALL, (3.003, 0, 0)), "disjoint", 0),
    "walls with a gap of 0.5 mm": (WALL, moved(WALL, (3.0005, 0, 0)), "touch", 0),
    "abutting walls": (WALL, moved(WALL, (3, 0, 0)), "touch", 0),
    "walls face to face": (WALL, moved(WALL, (0, 0.2, 0)), "touch", 0),
    "walls face to face, one shifted": (WALL, moved(WALL, (1.3, 0.2, 0.7)), "touch", 0),
    "a corner of two walls": (WALL, box((-0.2, 0, 0), (0, 3, 2.5)), "touch", 0),
    "a wall on a slab": (SLAB, box((-1, -1, 0), (1, -0.8, 2.5)), "touch", 0),
    "edge on edge": (cube(1.0), cube(1.0, (1, 1, 0)), "touch", 0),
    "corner on corner": (cube(1.0), cube(1.0, (1, 1, 1)), "touch", 0),
    "crossing edges": (
        turned(box((-2, -0.5, -0.5), (2, 0.5, 0.5)), (1, 0, 0), 45),
        moved(turned(box((-0.5, -2, -0.5), (0.5, 2, 0.5)), (0, 1, 0), 45), (0, 0, sqrt(2))),
        "touch",
        0,
    ),
    "crossing edges with a gap of 50 mm": (
        turned(box((-2, -0.5, -0.5), (2, 0.5, 0.5)), (1, 0, 0), 45),
        moved(turned(box((-0.5, -2, -0.5), (0.5, 2, 0.5)), (0, 1, 0), 45), (0, 0, 1.05 * sqrt(2))),
        "disjoint",
        0,
    ),
    "standing on an edge": (SLAB, moved(ON_EDGE, (0, 0, sqrt(0.5))), "touch", 0),
    "standing on a corner": (
        SLAB,
        moved(turned(ON_CORNER, (0, 1, 0), 90), (0.1, 0.2, sqrt(3) / 2)),
        "touch",
        0,
    ),
    "L and the block in its corner": (l_shape(), box((1, 1, 0), (2, 2, 1)), "touch", 0),
    "two L as one square": (
        l_shape(),
        moved(turned(l_shape(), (0, 0, 1), 180), (3, 3, 0)),
        "touch",
        0,
    ),
    "U and the block that fills its notch": (u_shape(), box((1, 1, 0), (2, 3, 1)), "touch", 0),
    "U and a bar along its arms' ends": (u_shape(), moved(bar(), (0, 3, 0)), "touch", 0),
    "U and a post standing free in its notch": (
        u_shape(),
        box((1.4, 1.4, 0), (1.6, 1.6, 1)),
        "disjoint",
        0,
    ),
    "a window in its opening": (
        wall_with_opening(),
        box((1, 0.05, 1), (2, 0.15, 2)),
        "touch",
        0,
    ),
    "a window as thick as the wall": (wall_with_opening(), box((1, 0, 1), (2, 0.2, 2)), "touch", 0),
    "a window with a joint of 10 mm": (
        wall_with_opening(),
        box((1.01, 0.05, 1.01), (1.99, 0.15, 1.99)),
        "disjoint",
        0,
    ),
    "a core that fills the void": (SHELL, cube(3.0), "touch", 0),
    "a cube free in the void": (SHELL, cube(1.0), "disjoint", 0),
    "a cube on the floor of the void": (SHELL, cube(1.0, (0, 0, -1)), "touch", 0),
    "tetrahedra face to face": (
        tetrahedron((0, 0, 0), (1, 0, 0), (0, 1, 0), (0.2, 0.2, 1)),
        tetrahedron((0, 0, 0), (1, 0, 0), (0, 1, 0), (0.3, 0.1, -1)),
        "touch",
        0,
    ),
    "tetrahedra corner on corner": (
        tetrahedron((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)),
        tetrahedron((0, 0, 0), (-1, 0, 0), (0, -1, 0), (0, 0, -1)),
        "touch",
        0,
    ),
    "a pipe with 5 mm of air in its sleeve": (SLEEVE, pipe(0.05, 0.055, -1, 2), "disjoint", 0),
    "a pipe that fits its sleeve": (SLEEVE, cylinder(0.06, -1, 2), "touch", 0),
    "cylinders 3 mm apart": (
        cylinder(0.5, 0, 2, 128),
        moved(cylinder(0.5, 0, 2, 128), (1.003, 0, 0)),
        "disjoint",
        0,
    ),
    "cylinders edge to edge": (
        cylinder(0.5, 0, 2, 128),
        moved(cylinder(0.5, 0, 2, 128), (1, 0, 0)),
        "touch",
        0,
    ),
    "spheres 3 mm apart": (sphere(1.0), moved(sphere(1.0), (0, 0, 2.003)), "disjoint", 0),
    "spheres pole on pole": (sphere(1.0), moved(sphere(1.0), (0, 0, 2)), "touch", 0),
    "a rod through a ring": (RING, cylinder(0.5, -1, 1), "disjoint", 0),
    "linked rings": (RING, moved(turned(RING, (1, 0, 0), 90), (1, 0, 0)), "disjoint", 0),
    "a sliver of 0.4 mm": (WALL, moved(WALL, (2.9996, 0, 0)), "touch", 0),
    "a plate of 0.5 mm laid into a slab's top": (
        SLAB,
        box((-1, -1, -0.0005), (1, 1, 0.0)),
        "touch",
        0,
    ),
    # a common part of both, and a part of each outside the other
    "crossing beams": (BEAM, turned(BEAM, (0, 0, 1), 90), "overlap", 0.1),
    "beams crossing askew": (BEAM, turned(BEAM, (0, 0, 1), 37), "overlap", 0.1),
    "an edge in a face beside its edge": (
        (BRICK, cube(1.0)[1]),
        (STICK, cube(1.0)[1]),
        "overlap",
        0.002186,
    ),
    "aligned walls, 5 cm in common": (WALL, moved(WALL, (2.95, 0, 0)), "overlap", 0.05),
    "aligned walls, 3 mm in common": (WALL, moved(WALL, (2.997, 0, 0)), "overlap", 0.003),
    "walls side by side, 5 cm in common": (WALL, moved(WALL, (0, 0.15, 0)), "overlap", 0.05),
    "aligned walls, one cut elsewhere": (
        subdivided(WALL, 2),
        moved(WALL, (2.95, 0, 0)),
        "overlap",
        0.05,
    ),
    "a corner of two walls, mitre forgotten": (
        WALL,
        box((0, 0, 0), (0.2, 3, 2.5)),
        "overlap",
        0.2,
    ),
    "a wall 3 mm in a slab": (SLAB, box((-1, -1, -0.003), (1, -0.8, 2.5)), "overlap", 0.003),
    "a corner in a corner": (cube(1.0), cube(1.0, (0.75, 0.75, 0.75)), "overlap", 0.25),
    "a window 3 mm too large": (
        wall_with_opening(),
        box((0.997, 0.05, 0.997), (2.003, 0.15, 2.003)),
        "overlap",
        0.003 * IN_A_CORNER,
    ),
    "U and a block 3 mm too wide for its notch": (
        u_shape(),
        box((1, 1, 0), (2.003, 3, 1)),
        "overlap",
        0.003,
    ),
    "U and a bar across its arms": (u_shape(), moved(bar(), (0, 1.5, 0)), "overlap", 1.0),
    "two L, one turned": (
        l_shape(),
        moved(turned(l_shape(), (0, 0, 1), 180), (2, 2, 0)),
        "overlap",
        1.0,
    ),
    "a bar through the shell": (SHELL, box((-3, -0.1, -0.1), (3, 0.1, 0.1)), "overlap", 0.2),
    "a core 3 mm too large for the void": (
        SHELL,
        cube(3.006),
        "overlap",
        0.003 * IN_A_SOLID_CORNER,
    ),
    "two bodies, one of them inside": (
        together(cube(0.5), cube(0.5, (3, 0, 0))),
        BLOCK,
        "overlap",
        0.5,
    ),
    "two bodies, one of them inside, the other touching outside": (
        together(cube(0.5), cube(0.5, (1.25, 0, 0))),
        BLOCK,
        "overlap",
        0.5,
    ),
    "two bodies, one of them covered, the other apart": (
        together(cube(0.5, (0.75, 0, 0)), cube(0.5, (3, 0, 0))),
        BLOCK,
        "overlap",
        0.5,
    ),
    "two bodies, of which one is the other element": (
        together(BLOCK, cube(0.5, (3, 0, 0))),
        BLOCK,
        "covers",
        2.0,
    ),
    "plates of 3 mm crossing": (
        box((-1, -1, -0.0015), (1, 1, 0.0015)),
        box((-0.0015, -0.5, -2), (0.0015, 0.5, 2)),
        "overlap",
        0.003,
    ),
    "plates of 3 mm, one shifted in its plane": (
        box((-1, -1, 0), (1, 1, 0.003)),
        box((0, -0.5, 0), (2, 0.5, 0.003)),
        "overlap",
        0.003,
    ),
    "a tetrahedron's tip in a slab": (
        SLAB,
        tetrahedron((0.1, 0.2, -0.05), (1, 0, 1), (-1, 1, 1), (-1, -1, 1)),
        "overlap",
        None,
    ),
    "a pipe 3 mm too thick for its sleeve": (SLEEVE, cylinder(0.063, -1, 2), "overlap", None),
    "a pipe through a slab": (SLAB, cylinder(0.05, -1, 1), "overlap", 0.1 * cos(pi / 32)),
    "cylinders with 3 mm in common": (
        cylinder(0.5, 0, 2, 128),
        moved(cylinder(0.5, 0, 2, 128), (0.997, 0, 0)),
        "overlap",
        0.003 * cos(pi / 128),
    ),
    "spheres with 3 mm in common": (
        sphere(1.0),
        moved(sphere(1.0), (0, 0, 1.997)),
        "overlap",
        0.003 * cos(pi / 64),
    ),
    "a fine sphere and a box on its side": (
        sphere(1.0, 64, 128),
        box((0.9, -1, -1), (2, 1, 1)),
        "overlap",
        None,
    ),
    "rings side by side, 3 mm in common": (RING, moved(RING, (2.397, 0, 0)), "overlap", None),
    "a rod through the tube of a ring": (
        RING,
        moved(cylinder(0.05, -1, 1), (1, 0.0, 0)),
        "overlap",
        0.1 * cos(pi / 32),
    ),
    # b wholly in a
    "a cube in a cube": (BLOCK, cube(1.0), "contains", 1.0),
    "a cube 3 mm below the surface": (BLOCK, cube(1.0, (0.497, 0, 0)), "contains", 1.0),
    "a plate of 3 mm in a slab": (SLAB, box((-1, -1, -0.1), (1, 1, -0.097)), "contains", 0.003),
    "a cylinder in a slab": (SLAB, cylinder(0.05, -0.15, -0.05), "contains", 0.1 * cos(pi / 32)),
    "a sphere in a sphere": (sphere(1.0), sphere(0.5, 12, 24), "contains", None),
    "two bodies inside": (
        BLOCK,
        together(cube(0.5, (0.6, 0, 0)), cube(0.3, (-0.6, 0, 0))),
        "contains",
        0.5,
    ),
    "a cube in the wall of the shell": (SHELL, cube(0.2, (1.75, 0, 0)), "contains", 0.2),
    "a shell in a larger cube": (cube(5.0), SHELL, "contains", 0.5 * IN_A_SOLID_CORNER),
    "inside one of two bodies": (together(BLOCK, cube(2.0, (5, 0, 0))), cube(1.0), "contains", 1.0),
    "U and a bar in one of its arms": (
        u_shape(),
        box((0.25, 0.25, 0.25), (0.75, 2.75, 0.75)),
        "contains",
        0.5,
    ),
    "a cube with one face in common": (BLOCK, cube(1.0, (0.5, 0, 0)), "covers", 1.0),
    "a cube 0.5 mm below the surface": (BLOCK, cube(1.0, (0.4995, 0, 0)), "covers", 1.0),
    "a cube with one edge in common": (BLOCK, cube(1.0, (0.5, 0.5, 0)), "covers", 1.0),
    "a cube with one corner in common": (BLOCK, cube(1.0, (0.5, 0.5, 0.5)), "covers", 1.0),
    "a turned cube with an edge at the surface": (
        BLOCK,
        moved(ON_EDGE, (1 - sqrt(0.5), 0, 0)),
        "covers",
        1.0,
    ),
    "a turned cube with a corner at the surface": (
        BLOCK,
        moved(ON_CORNER, (1 - sqrt(3) / 2, 0.1, 0.05)),
        "covers",
        1.0,
    ),
    "a bar and the block at its end": (bar(), cube(1.0, (0.5, 0.5, 0.5)), "covers", 1.0),
    "a bar and the block at its other end": (bar(), cube(1.0, (2.5, 0.5, 0.5)), "covers", 1.0),
    "a bar and the block in its middle": (bar(), cube(1.0, (1.5, 0.5, 0.5)), "covers", 1.0),
    "U and its base": (u_shape(), bar(), "covers", 1.0),
    "U and one arm": (u_shape(), box((0, 1, 0), (1, 3, 1)), "covers", 1.0),
    "U and the box around it": (box((0, 0, 0), (3, 3, 1)), u_shape(), "covers", 1.0),
    "the block around the shell": (cube(4.0), SHELL, "covers", 0.5 * IN_A_SOLID_CORNER),
    "two bodies inside, one of them at the surface": (
        BLOCK,
        together(cube(0.5, (0.75, 0, 0)), cube(0.3, (-0.6, 0, 0))),
        "covers",
        0.5,
    ),
    "a layer of a slab": (SLAB, box((-2, -2, -0.05), (2, 2, 0)), "covers", 0.05),
    "a layer of 3 mm of a slab": (SLAB, box((-2, -2, -0.003), (2, 2, 0)), "covers", 0.003),
    "half a cylinder": (
        cylinder(0.5, 0, 2),
        cylinder(0.5, 0, 1),
        "covers",
        cos(pi / 32),
    ),
    # the same place
    "a cube and itself": (cube(1.0), cube(1.0), "equals", 1.0),
    "a cube cut finer": (cube(1.0), subdivided(cube(1.0), 2), "equals", 1.0),
    "a cube with other diagonals": (cube(1.0), turned(cube(1.0), (0, 0, 1), 90), "equals", 1.0),
    "a turned cube and itself": (ON_CORNER, ON_CORNER, "equals", 1.0),
    "a cube 0.8 mm larger": (cube(1.0), cube(1.0008), "equals", 1.0),
    "U and itself": (u_shape(), u_shape(), "equals", 1.0),
    "a shell and itself": (SHELL, SHELL, "equals", 0.5 * IN_A_SOLID_CORNER),
    "a cylinder and itself": (cylinder(0.5, 0, 2), cylinder(0.5, 0, 2), "equals", cos(pi / 32)),
    "a sphere and itself, cut finer": (sphere(1.0), subdivided(sphere(1.0)), "equals", None),
    "a plate of 3 mm and itself": (
        box((-1, -1, 0), (1, 1, 0.003)),
        box((-1, -1, 0), (1, 1, 0.003)),
        "equals",
        0.003,
    ),
    "a prism of two triangles and a box": (
        together(
            extruded([[(0, 0), (1, 0), (1, 1)]], 0, 1), extruded([[(0, 0), (1, 1), (0, 1)]], 0, 1)
        ),
        box((0, 0, 0), (1, 1, 1)),
        "equals",
        None,
    ),
}

CLOSE_CALLS = {
    "walls with a gap of 0.5 mm",
    "a sliver of 0.4 mm",
    "a plate of 0.5 mm laid into a slab's top",
    "a cube 0.5 mm below the surface",
    "a cube 0.8 mm larger",
    "spheres with 3 mm in common",
    "rings side by side, 3 mm in common",
    "an edge in a face beside its edge",
}
"""Cases of which volumes alone do not tell the relation, as the golden labels say ambiguous."""

PARITY = [name for name, (a, b, *_) in CASES.items() if len(a[1]) + len(b[1]) <= 60]
"""Cases of few triangles: the host takes long for many."""


def arguments(case):
    """What the kernel takes of a case."""
    a, b, *_ = CASES[case]
    return {"a": Meshes.of([a]), "b": Meshes.of([b])}, {"relations": True}
