"""Named clouds for `classify_noise`, with their options."""

import numpy as np

RNG = np.random.default_rng(5)


def columns(points, ids=None):
    x, y, z = np.ascontiguousarray(np.asarray(points, float).reshape(-1, 3).T)
    ids = np.arange(len(x)) if ids is None else ids
    return {"x": x, "y": y, "z": z, "point_id": ids.astype(np.int64)}


def terrain(n=1500, side=40.0, at=(0.0, 0.0, 0.0)):
    """A rough surface with three points above, two below and a pair far to the side."""
    xy = RNG.random((n, 2)) * side
    ground = np.column_stack([xy, RNG.normal(size=n) * 0.05 + xy[:, 0] / 10])
    odd = [(5, 5, 22), (6, 5, 12), (15, 9, 9.5), (9, 9, -12), (3, 17, -9), (55, 5, 2), (55, 6, 2)]
    return np.concatenate([ground, odd]) + at


def among_strays(points):
    """A cloud with few points that are far from all others."""
    far = [(0, 0, 1e6)] * 3 + [(-1e5, 0, -5)] * 10
    return np.concatenate([points[:99], far, points[99:]])


UTM = terrain(at=(691_000, 5_334_000, 520))
LATTICE = np.stack(np.meshgrid(*[np.arange(7.0)] * 3), -1).reshape(-1, 3)
CLASSES = np.ma.masked_equal(RNG.integers(0, 7, 1507).astype(np.uint8), 5)
COMPARED = {
    "empty": (columns([]), {}),
    "one point": (columns([(1, 2, 3)]), {}),
    "one point, isolated": (columns([(1, 2, 3)]), {"method": "isolated"}),
    "two points": (columns([(1, 2, 3), (1, 2, 9)]), {}),
    "fewer than neighbours": (
        columns([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 50)]), {"multiplier": 1.0},
    ),
    "all equal": (columns(np.full((50, 3), 4.0)), {}),
    "terrain": (columns(terrain()), {}),
    "terrain, another k": (columns(terrain()), {"mean_k": 3, "multiplier": 0.5}),
    "ids, UTM": (columns(UTM, RNG.permutation(len(UTM))), {}),
    "isolated": (columns(terrain()), {"method": "isolated", "voxel_size": 3.0}),
    "isolated, UTM": (columns(UTM), {"method": "isolated", "max_points": 2}),
    "more neighbours than points": (columns(terrain(200)), {"mean_k": 1000}),
}  # fmt: skip
CASES = {
    **COMPARED,
    "a lattice": (columns(LATTICE), {"mean_k": 5, "multiplier": 1.0}),
    "points twice": (columns(np.repeat(terrain(300), 2, axis=0)), {"mean_k": 2}),
    "with classes": ({**columns(terrain()), "classification": CLASSES}, {}),
    "strays": (columns(among_strays(terrain()[:1500])), {}),
    "strays, isolated": (columns(among_strays(terrain()[:1500])), {"method": "isolated"}),
    "strays with classes": (
        {**columns(among_strays(terrain()[:1494])), "classification": CLASSES}, {},
    ),
}  # fmt: skip
"""Those as well that are not for the oracle, which has stray points in its mean, no classes, and
other ones of several equally far neighbours."""
