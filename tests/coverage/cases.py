"""Small scenes: points and elements as (vertices, faces), and options."""

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.demo.scanner import box

WALL = box((0, 0, 0), (4, 0.2, 2.5))
FLOOR = box((0, -4, -0.2), (4, 0.2, 0))
STATION = (2.0, -2.0, 1.5)


def grid(origin, one, other, step=0.03, noise=0.002, seed=1):
    """Make points all over a parallelogram."""
    one, other = np.array(one, float), np.array(other, float)
    a, b = (int(np.linalg.norm(each) / step) for each in (one, other))
    s, t = np.meshgrid((np.arange(a) + 0.5) / a, (np.arange(b) + 0.5) / b)
    points = origin + s.reshape(-1, 1) * one + t.reshape(-1, 1) * other
    return points + np.random.default_rng(seed).normal(0.0, noise, points.shape)


FRONT = grid((0, 0, 0), (4, 0, 0), (0, 0, 2.5))
GROUND = grid((0, -4, 0), (4, 0, 0), (0, 4, 0), seed=2)
BEYOND = grid((0, 3, 0), (4, 0, 0), (0, 0, 2.5), seed=3)
SCREEN = grid((-1, -1, 0), (6, 0, 0), (0, 0, 2.5), seed=4)
NOTHING = (np.array([(0.5, 0.0, 0.5)]), [])


def off(points, by):
    return points + np.array(by, float)


SEEN = {"scanner": STATION}
CASES = {
    "in its place": ([FRONT, GROUND], [WALL, FLOOR], SEEN),
    "moved by 30 mm": ([off(FRONT, (0, -0.03, 0)), GROUND], [WALL, FLOOR], SEEN),
    "moved back by 120 mm": ([off(FRONT, (0, 0.12, 0)), GROUND], [WALL, FLOOR], SEEN),
    "within the tolerance": ([off(FRONT, (0, -0.03, 0)), GROUND], [WALL, FLOOR],
                             {**SEEN, "tolerance": 0.04}),
    "missing, with a wall beyond": ([BEYOND, GROUND], [WALL, FLOOR], SEEN),
    "behind what is in no model": ([SCREEN, GROUND], [WALL, FLOOR], SEEN),
    "behind another element": ([SCREEN], [WALL, box((-1, -1, 0), (5, -0.9, 2.5))], SEEN),
    "far from the scan": ([GROUND], [box((50, 0, 0), (54, 0.2, 2.5)), FLOOR], SEEN),
    "no positions of the scanner": ([FRONT, GROUND], [WALL, FLOOR, box((1, 9, 0), (3, 9.2, 2))],
                                    {}),
    "in feet": (
        [FRONT / 0.3048, GROUND / 0.3048],
        [WALL, FLOOR],
        {"scanner": tuple(k / 0.3048 for k in STATION), "unit": 0.3048},
    ),
    "a row for each face": ([FRONT, GROUND], [WALL, FLOOR], {**SEEN, "faces": True}),
    "no triangles": ([FRONT], [NOTHING, WALL], SEEN),
    "no elements": ([FRONT], [], SEEN),
    "no points": ([], [WALL], SEEN),
    "one point": ([FRONT[:1]], [WALL], SEEN),
}  # fmt: skip


def arguments(case):
    """What the kernel takes of a case."""
    parts, elements, options = CASES[case]
    x, y, z = np.concatenate([np.empty((0, 3)), *parts]).T.copy()
    columns = {"x": x, "y": y, "z": z, "point_id": np.arange(len(x))}
    return {**columns, "elements": Meshes.of(elements)}, options
