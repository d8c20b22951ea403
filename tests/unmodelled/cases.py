"""Points beside elements, whose clusters are known."""

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.demo.scanner import box

WALL = box((0, 0, 0), (4, 0.2, 2.5))
FLOOR = box((0, -4, -0.2), (4, 0.2, 0))
RNG = np.random.default_rng(1)


def sheet(low, high, count=400, noise=0.003, seed=1):
    """Points in a box along the axes, with noise."""
    rng = np.random.default_rng(seed)
    return rng.uniform(low, high, (count, 3)) + rng.normal(0, noise, (count, 3))


ON_WALL = sheet((0, 0, 0), (4, 0, 2.5), seed=2)
DOOR = sheet((1, -1, 0.3), (1.9, -1, 1.2), 800, seed=3)
HEAP = sheet((3, -3, 0.3), (3.4, -2.6, 0.7), 600, seed=4)
POLE = sheet((0.5, -3, 0.2), (0.5, -3, 2.2), 300, seed=5)
UTM = np.array([4e5, 5.5e6, 300.0])
CASES = {
    "nothing but the model": ([ON_WALL], [WALL, FLOOR], {}),
    "a door leaf, a heap and a pole": ([ON_WALL, DOOR, HEAP, POLE], [WALL, FLOOR], {"gap": 0.2}),
    "at UTM": ([DOOR + UTM, HEAP + UTM], [(WALL[0] + UTM, WALL[1])], {"gap": 0.2}),
    "in feet": ([DOOR / 0.3048, POLE / 0.3048], [WALL], {"gap": 0.2, "unit": 0.3048}),
    "cubes that touch by corners": (
        [9 + np.array([(0.05,) * 3, (0.15,) * 3, (0.35, 0, 0), (-0.05,) * 3])],
        [WALL], {"min_points": 1},
    ),
    "scattered": ([RNG.uniform(-2, 6, (600, 3))], [WALL, FLOOR], {"min_points": 1, "gap": 0.4}),
    "few points": ([HEAP[:20]], [WALL], {}),
    "one point": ([np.array([(9.0, 9.0, 9.0)])], [WALL], {"min_points": 1}),
    "points at one place": ([np.tile((9.0, 9.0, 9.0), (60, 1))], [WALL], {}),
    "no elements": ([HEAP], [], {"gap": 0.2}),
    "an element without faces": ([HEAP], [(np.zeros((1, 3)), [])], {"gap": 0.2}),
    "no points": ([np.empty((0, 3))], [WALL], {}),
}  # fmt: skip


def arguments(name):
    """Make of a case what the kernel takes, and the options."""
    points, elements, options = CASES[name]
    x, y, z = np.ascontiguousarray(np.concatenate(points).T)
    columns = {"x": x, "y": y, "z": z, "point_id": np.arange(len(x)) + 7}
    return {**columns, "elements": Meshes.of(elements)}, options
