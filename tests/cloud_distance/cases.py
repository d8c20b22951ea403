"""Two clouds; a case: points, those of the reference, options."""

import numpy as np

from spatialq.data.cloud import Cloud

RNG = np.random.default_rng(5)
UTM = np.array([652_000.0, 5_606_000.0, 300.0])
GRID = np.array([(x, y, (x + y) % 3 / 10) for x in range(12) for y in range(12)], float)


def slope(n, lift=0.0):
    """Give points of a rough slope."""
    x, y = RNG.uniform(0, 20, (2, n))
    return np.column_stack((x, y, 0.2 * x + lift + RNG.normal(0, 0.03, n)))


SLOPES = slope(2000, 0.1), slope(1500)
M3C2 = {"method": "m3c2", "radius": 1.0, "normal_radius": 1.5}
NOTHING = np.empty((0, 3))

CASES = {
    "nearest": (*SLOPES, {}),
    "nearest within": (*SLOPES, {"max_distance": 0.2}),
    "m3c2": (*SLOPES, M3C2),
    "m3c2, short cylinders": (*SLOPES, M3C2 | {"max_distance": 0.05, "registration_error": 0.01}),
    "far from the origin": (SLOPES[0] + UTM, SLOPES[1] + UTM, M3C2),
    "equal distances": (GRID, GRID + np.array([0.5, 0.5, 0.0]), {}),
    "the same cloud": (GRID, GRID, M3C2),
    "bounds": (*SLOPES, {"bounds": (2.0, 2.0, 9.0, 11.0)}),
    "no points": (NOTHING, GRID, {}),
    "no reference": (GRID, NOTHING, M3C2),
}


def arguments(case):
    """Look up what the kernel takes, and its options."""
    points, others, options = CASES[case]
    ids = np.random.default_rng(1).permutation(10 * len(points))[: len(points)]
    x, y, z = (np.ascontiguousarray(each) for each in points.T)
    reference = Cloud(*(np.ascontiguousarray(each) for each in others.T))
    return {"x": x, "y": y, "z": z, "point_id": ids, "reference": reference}, options
