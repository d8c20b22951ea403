"""Named clouds for `classify_ground`, as lists of (point_id, x, y, z); used on every device."""

import math
import random


def scene(seed, *, side=24.0, n=500, terrain=lambda x, y: 0.0, x0=0.0, y0=0.0, noise=0.03):
    """Terrain with a house of 8 x 6 m, a tree and a bush; ids in no order."""
    rng = random.Random(seed)
    points = []
    for point_id in rng.sample(range(10 * n), n):
        x, y = rng.uniform(0, side), rng.uniform(0, side)
        z = terrain(x, y)
        if 8 < x < 16 and 9 < y < 15:
            z = terrain(12, 12) + 5 + 0.4 * abs(y - 12)
        elif math.hypot(x - 19, y - 5) < 3 and rng.random() < 0.8:
            z += rng.uniform(2, 7)
        elif math.hypot(x - 4, y - 19) < 2:
            z += rng.uniform(0, 1.5)
        points.append((point_id, x0 + x, y0 + y, z + rng.gauss(0, noise)))
    return points


def hill(x, y):
    return 0.3 * x + 2 * math.sin(y / 7)


def terrace(x, y):
    return 4.0 if x + 0.3 * y > 9 else 0.0


def dam(x, y):
    return max(0.0, 3.5 - 0.7 * max(0.0, abs(x - 4 - 0.2 * y) - 2))


SMALL = {"object_width": 16.0}  # brute force is slow where discs are large

CASES = {
    "empty": ([], {}),
    "one point": ([(7, 3.0, 4.0, 5.0)], {}),
    "two points at one place": ([(7, 3.0, 4.0, 5.0), (8, 3.0, 4.0, 9.0)], {}),
    "all the same": ([(i, 3.0, 4.0, 5.0) for i in range(9)], {}),
    "a line along x": ([(i, 0.9 * i, 4.0, 0.1 * (i % 3)) for i in range(40)], SMALL),
    "a diagonal": ([(i, 0.7 * i, 0.9 * i, 0.1 * (i % 5)) for i in range(30)], SMALL),
    "flat": (scene(1), SMALL),
    "flat, all radii": (scene(1, side=18.0, n=250), {}),
    "a hill": (scene(2, terrain=hill), SMALL),
    "a terrace": (scene(3, terrain=terrace), SMALL),
    "a dam": (scene(4, terrain=dam), SMALL),
    "a cliff": (scene(5, terrain=lambda x, y: 12.0 if x > 6 else 0.0, n=700), SMALL),
    "sparse": (scene(6, side=60.0, n=250, terrain=hill), SMALL),
    "very sparse": (scene(20, side=900.0, n=100, terrain=hill), {"object_width": 400.0}),
    "far from the origin": (scene(7, terrain=hill, x0=714947.98, y0=4286501.93), SMALL),
    "negative": (scene(8, terrain=hill, x0=-30.0, y0=-500000.0), SMALL),
    "a low outlier": ([*scene(9), (99999, 5.5, 5.5, -400.0)], SMALL),
    "low and high outliers": (
        [*scene(10, terrain=hill), (99998, 20.5, 20.5, -30.0), (99999, 3.5, 3.5, 900.0)],
        SMALL,
    ),
    "beyond single precision": (
        [*scene(11), (99998, 20.5, 20.5, -1e300), (99999, 5.5, 5.5, 1e300)],
        SMALL,
    ),
    "every point twice": (
        [(q, x, y, z) for p, x, y, z in scene(12, n=250) for q in (2 * p, 2 * p + 1)],
        SMALL,
    ),
    "heights that tie": (
        [(p, x, y, round(8 * z) / 8) for p, x, y, z in scene(19, terrain=hill)],
        SMALL,
    ),
    "two islands": (
        [*scene(13, n=200, side=12.0), *((p + 9999, x + 60, y + 20, z) for p, x, y, z in
                                         scene(14, n=200, side=12.0))],
        SMALL,
    ),
    "feet": ([(p, x / 0.3048, y / 0.3048, z / 0.3048) for p, x, y, z in scene(2, terrain=hill)],
             {**SMALL, "unit": 0.3048}),
    "other seeds": (
        scene(15, terrain=hill),
        {**SMALL, "window_size": 6.0, "overlap": 0.5, "min_points": 3, "cell_size": 0.0},
    ),
    "no seeds": (scene(16), {**SMALL, "min_points": 10**6, "cell_size": 0.0}),
    "no objects": (scene(17), {"object_width": 0.0}),
    "strict": (scene(18, terrain=hill), {**SMALL, "max_distance": 0.1, "distance_per_slope": 0.0}),
}  # fmt: skip
