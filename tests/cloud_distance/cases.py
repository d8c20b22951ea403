"""Two clouds; a case: points, those of the reference, options, and normals where it has them."""

import numpy as np

from spatialq.data.cloud import Cloud

RNG = np.random.default_rng(5)
UTM = np.array([652_000.0, 5_606_000.0, 300.0])
GRID = np.array([(x, y, (x + y) % 3 / 10) for x in range(12) for y in range(12)], float)

FLAT, HALF_UP = GRID * np.array([1, 1, 0]), np.array([0, 0, 0.5])


def slope(n, lift=0.0):
    """Give points of a rough slope."""
    x, y = RNG.uniform(0, 20, (2, n))
    return np.column_stack((x, y, 0.2 * x + lift + RNG.normal(0, 0.03, n)))


SLOPES = slope(2000, 0.1), slope(1500)
M3C2 = {"method": "m3c2", "radius": 1.0, "normal_radius": 1.5}
NOTHING = np.empty((0, 3))
TWICE = np.repeat(RNG.integers(0, 4, (200, 3)) * 0.5, 2, axis=0)
LINE = np.outer(np.arange(30.0), (0.1, 0.2, 0.3))
TURN = np.array([(1, 1, 0), (1, -1, 0), (0, 0, 1)]) / 2
WALLS = np.concatenate([GRID[:, :2] @ TURN[[0, 2]], GRID[:, :2] @ TURN[[1, 2]] + [9, 0, 0]])
"""Two vertical planes, whose normals are level."""
ODD = RNG.normal(size=(2000, 3)) * 10.0 ** RNG.integers(-300, 300, (2000, 1))
ODD[3:8] = np.diag([np.nan, np.inf, 0.0])[[0, 1, 2, 0, 1]]
NORMALS = np.ma.array(ODD, mask=RNG.random((2000, 1)).repeat(3, axis=1) < 0.1)
"""Of any length; some are masked, and some are none."""

CASES = {
    "nearest": (*SLOPES, {}),
    "nearest within": (*SLOPES, {"max_distance": 0.2}),
    "m3c2": (*SLOPES, M3C2),
    "m3c2, short cylinders": (*SLOPES, M3C2 | {"max_distance": 0.05, "registration_error": 0.01}),
    "far from the origin": (SLOPES[0] + UTM, SLOPES[1] + UTM, M3C2),
    "as far as the limit": (FLAT, FLAT + HALF_UP, {"max_distance": 0.5}),
    "walls": (WALLS, WALLS + HALF_UP, M3C2),
    "equal distances": (GRID, GRID + np.array([0.5, 0.5, 0.0]), {}),
    "the same cloud": (GRID, GRID, M3C2),
    "bounds": (*SLOPES, {"bounds": (2.0, 2.0, 9.0, 11.0)}),
    "no points": (NOTHING, GRID, {}),
    "no reference": (GRID, NOTHING, M3C2),
    "no reference, nearest": (GRID, NOTHING, {}),
    "neither, m3c2": (NOTHING, NOTHING, M3C2),
    "one point each": (GRID[:1], GRID[1:2], {}),
    "three points, m3c2": (
        GRID[[0, 1, 12]], GRID[:1], M3C2 | {"radius": 9.0, "normal_radius": 9.0},
    ),
    "given normals": (*SLOPES, M3C2, NORMALS),
    "points on the cylinders": (FLAT, FLAT + HALF_UP, M3C2 | {"max_distance": 0.5}),
    "points twice": (TWICE, TWICE[::-1], {"max_distance": 0.5}),
    "points twice, m3c2": (TWICE, TWICE[::-1], M3C2 | {"radius": 0.5, "normal_radius": 0.75}),
    "points on a line": (LINE, LINE + 0.1, M3C2),
    "few in the cylinders": (*SLOPES, M3C2 | {"radius": 0.3, "normal_radius": 0.6}),
    "all in the cylinders": (
        SLOPES[0][:99], SLOPES[1], M3C2 | {"radius": 1e6, "normal_radius": 9.0},
    ),
    "far apart": (ODD[10:300] * 1e-150, ODD[300:700] * 1e-150, {}),
    "both zeros": (
        np.where(RNG.random((60, 3)) < 0.5, 0.0, -0.0),
        np.where(RNG.random((50, 3)) < 0.5, 0.0, -0.0),
        {},
    ),
    "many": (slope(6000, 0.1), slope(7000), {"max_distance": 0.5}),
    "many, m3c2": (slope(6000, 0.1), slope(7000), M3C2 | {"radius": 0.5}),
}  # fmt: skip


def arguments(case):
    """Look up what the kernel takes, and its options."""
    points, others, options, *normals = CASES[case]
    ids = np.random.default_rng(1).permutation(10 * len(points))[: len(points)]
    x, y, z = (np.ascontiguousarray(each) for each in points.T)
    reference = Cloud(*(np.ascontiguousarray(each) for each in others.T))
    given = {"x": x, "y": y, "z": z, "point_id": ids, "reference": reference}
    for of_points in normals:
        given |= dict(zip(("nx", "ny", "nz"), of_points.T, strict=True))
    return given, options
