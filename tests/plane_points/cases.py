"""Named clouds for `plane_points`, as lists of (point_id, x, y, z); used on every device.

All surfaces are parallelograms, evenly covered: what is found of one should be convex.
"""

import random

NEAR = {"max_distance": 0.05}


def surfaces(seed, *patches, n=1500, noise=0.004, clutter=0, origin=(0.0, 0.0, 0.0)):
    """Points on parallelograms, each (corner, side, side); ids in no order."""
    rng = random.Random(seed)
    ids = iter(rng.sample(range(10 * (len(patches) * n + clutter)), len(patches) * n + clutter))
    points = []
    for corner, a, b in patches:
        normal = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
        length = sum(c * c for c in normal) ** 0.5
        axes = list(zip(origin, corner, a, b, normal, strict=True))
        for _ in range(n):
            s, t, off = rng.random(), rng.random(), rng.gauss(0, noise) / length
            place = (o + c + s * p + t * q + off * m for o, c, p, q, m in axes)
            points.append((next(ids), *place))
    stray = (tuple(o + rng.uniform(0.3, 2.7) for o in origin) for _ in range(clutter))
    points.extend((point_id, *place) for point_id, place in zip(ids, stray, strict=True))
    return points


FLOOR = ((0, 0, 0), (6, 0, 0), (0, 5, 0))
CEILING = ((0, 0, 3), (6, 0, 0), (0, 5, 0))
WALLS = (
    ((0, 0, 0), (6, 0, 0), (0, 0, 3)),
    ((0, 5, 0), (6, 0, 0), (0, 0, 3)),
    ((0, 0, 0), (0, 5, 0), (0, 0, 3)),
    ((6, 0, 0), (0, 5, 0), (0, 0, 3)),
)
ROOM = (FLOOR, CEILING, *WALLS)
ROOF = (((0, 0, 3), (8, 0, 0), (0, 3, 2)), ((0, 6, 3), (8, 0, 0), (0, -3, 2)))
CROSSED = (((-2, -2, 0), (4, 0, 0), (0, 4, 0)), ((-2, 0, -2), (4, 0, 0), (0, 0, 4)))
TABLES = (((0, 0, 0.7), (1.5, 0, 0), (0, 1, 0)), ((4, 3, 0.7), (1.5, 0, 0), (0, 1, 0)))

CASES = {
    "empty": ([], {}),
    "one point": ([(7, 3.0, 4.0, 5.0)], {}),
    "two points": ([(7, 3.0, 4.0, 5.0), (8, 3.0, 6.0, 9.0)], {}),
    "all the same": ([(i, 3.0, 4.0, 5.0) for i in range(500)], {}),
    "on one line": ([(i, 0.01 * i, 0.02 * i, 0.03 * i) for i in range(500)], {}),
    "a wall": (surfaces(1, WALLS[0]), NEAR),
    "a room": (surfaces(2, *ROOM), NEAR),
    "a room with clutter": (surfaces(3, *ROOM, clutter=600), NEAR),
    "a room, perfectly flat": (surfaces(4, *ROOM, noise=0.0), NEAR),
    "a room, distances by its noise": (surfaces(5, *ROOM), {}),
    "a roof": (surfaces(6, *ROOF), NEAR),
    "crossed at the centroid": (surfaces(7, *CROSSED, n=4000), NEAR),
    "the published kernel": (surfaces(8, *ROOM), {**NEAR, "kernel": "paper"}),
    "tables together": (surfaces(9, *TABLES, FLOOR), NEAR),
    "tables apart": (surfaces(9, *TABLES, FLOOR), {**NEAR, "split": True}),
    "far from the origin": (surfaces(10, *ROOM, origin=(714947.98, 5286501.93, 612.4)), NEAR),
}
