"""Named pairs of elements and whether the second lies in a direction from the first."""

import numpy as np

from spatialq.data.meshes import Meshes

SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]


def box(low, high):
    """All points between two corners."""
    vertices = np.array(
        [[(low, high)[i][0], (low, high)[j][1], (low, high)[k][2]]
         for i in (0, 1) for j in (0, 1) for k in (0, 1)],
        float,
    )  # fmt: skip
    faces = [face for a, b, c, d in SIDES for face in ((a, b, c), (a, c, d))]
    return vertices, np.array(faces)


def together(*meshes):
    """One element of several bodies."""
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in meshes)])
    return (
        np.concatenate([vertices for vertices, _ in meshes]),
        np.concatenate([faces + n for (_, faces), n in zip(meshes, starts[:-1], strict=True)]),
    )


def sheet(*corners):
    """A polygon in space, as a fan."""
    return np.array(corners, float), np.array([(0, k, k + 1) for k in range(1, len(corners) - 1)])


SLAB = box((0, 0, 0), (4, 4, 0.2))
ON_SLAB = box((1, 1, 0.2), (2, 2, 1))
STICKING_OUT = box((3, 1, 0.2), (5, 2, 1))
BESIDE = box((4, 0, 1), (8, 4, 2))
HALVES = together(box((0, 0, 0), (2, 4, 0.2)), box((2, 0, 0), (4, 4, 0.1)))
GAP = together(box((0, 0, 0), (1.45, 4, 0.2)), box((1.55, 0, 0), (4, 4, 0.2)))
BRIDGE = together(
    box((0, 0, 3), (4, 1, 3.2)), box((0, 0, 0), (0.2, 1, 3)), box((3.8, 0, 0), (4, 1, 3))
)
UPRIGHT = sheet((1, 1, 1), (3, 1, 1), (3, 1, 2), (1, 1, 2))
LEVEL = sheet((1, 1, 1), (3, 1, 1), (3, 3, 1), (1, 3, 1))
RAMP = sheet((0, 0, 0), (4, 0, 4), (4, 4, 4), (0, 4, 0))
HALF_SQUARE = sheet((0, 0, 0), (4, 0, 0), (0, 4, 0))
SQUARES = together(
    *(sheet((i, j, 0), (i + 1, j, 0), (i + 1, j + 1, 0), (i, j + 1, 0))
      for i in range(3) for j in range(3))
)  # fmt: skip
NOTHING = (np.empty((0, 3)), np.empty((0, 3), int))

STRICT = {"strict": True}
HALF = {"model": "halfspace"}
HALF_STRICT = {"model": "halfspace", "strict": True}

CASES = {
    "on top": (SLAB, ON_SLAB, {}, True),
    "on top, all of it": (SLAB, ON_SLAB, STRICT, True),
    "on top, beyond the extreme": (SLAB, ON_SLAB, HALF_STRICT, True),
    "what is below is not above": (ON_SLAB, SLAB, {}, False),
    "sticking out": (SLAB, STICKING_OUT, {}, True),
    "sticking out, not all": (SLAB, STICKING_OUT, STRICT, False),
    "sides that meet have no line in common": (SLAB, BESIDE, {}, False),
    "beside, but higher": (SLAB, BESIDE, HALF, True),
    "beside, but wholly higher": (SLAB, BESIDE, HALF_STRICT, True),
    "two bodies bear together": (HALVES, ON_SLAB, STRICT, True),
    "over a gap of 10 cm": (GAP, ON_SLAB, {}, True),
    "over a gap of 10 cm, not all": (GAP, ON_SLAB, STRICT, False),
    "a gap below the tolerance": (GAP, ON_SLAB, {"strict": True, "tolerance": 0.11}, True),
    "half in a slab": (SLAB, box((1, 1, 0.1), (2, 2, 1)), STRICT, True),
    "half in a slab, not beyond its extreme": (SLAB, box((1, 1, 0.1), (2, 2, 1)), HALF_STRICT,
                                               False),
    "the same place": (SLAB, SLAB, {}, True),
    "the same place, not all": (SLAB, SLAB, STRICT, False),
    "the same place, no extreme": (SLAB, SLAB, HALF, False),
    "under a bridge": (BRIDGE, box((1, 0.2, 1), (2, 0.8, 2)), {}, False),
    "a bridge over": (box((1, 0.2, 1), (2, 0.8, 2)), BRIDGE, {}, True),
    "the feet of a bridge are not over": (box((1, 0.2, 1), (2, 0.8, 2)), BRIDGE, STRICT, False),
    "an overlap of half a millimetre": (SLAB, box((3.9995, 0, 1), (5, 4, 2)), {}, False),
    "an overlap of two millimetres": (SLAB, box((3.998, 0, 1), (5, 4, 2)), {}, True),
    "half a millimetre sticks out": (SLAB, box((3, 0, 1), (4.0005, 4, 2)), STRICT, True),
    "two millimetres stick out": (SLAB, box((3, 0, 1), (4.002, 4, 2)), STRICT, False),
    "half a millimetre higher": (LEVEL, sheet((1, 1, 1.0005), (3, 1, 1.0005), (3, 3, 1.0005)), {},
                                 False),
    "two millimetres higher": (LEVEL, sheet((1, 1, 1.002), (3, 1, 1.002), (3, 3, 1.002)), STRICT,
                               True),
    "a corner on an edge": (HALF_SQUARE, sheet((2, 2, 1), (4, 3, 1), (3, 4, 1)), {}, False),
    "edge on edge": (HALF_SQUARE, sheet((4, 0, 1), (4, 4, 1), (0, 4, 1)), {}, False),
    "a corner on corners": (SQUARES, sheet((1, 1, 1), (2, 1, 1), (2, 2, 1)), STRICT, True),
    "an upright surface is a line": (SLAB, UPRIGHT, {}, False),
    "an upright surface is higher": (SLAB, UPRIGHT, HALF_STRICT, True),
    "an upright surface is seen from the side": (
        box((1, 0, 1), (3, 0.5, 2)), UPRIGHT, {"direction": "north", "strict": True}, True),
    "a surface over a ramp in part": (RAMP, sheet((0, 1, 2), (4, 1, 2), (4, 3, 2), (0, 3, 2)), {},
                                      True),
    "a surface under a ramp in part": (RAMP, sheet((0, 1, 2), (4, 1, 2), (4, 3, 2), (0, 3, 2)),
                                       STRICT, False),
    "no triangles in a": (NOTHING, SLAB, HALF, False),
    "no triangles in b": (SLAB, NOTHING, HALF_STRICT, False),
    "no triangles, strict": (SLAB, NOTHING, STRICT, False),
}  # fmt: skip


def arguments(case):
    """What the kernel takes of a case."""
    a, b, options, _ = CASES[case]
    return {"a": Meshes.of([a]), "b": Meshes.of([b])}, options
