"""Named clouds for `point_features`, with their options."""

import numpy as np

from ..classify_noise.cases import columns

RNG = np.random.default_rng(8)
CUBE = RNG.random((400, 3))
UTM = np.array([691_000.0, 5_334_000.0, 520.0])
SCENE = np.concatenate(
    [
        np.column_stack([RNG.random((200, 2)) * 5, np.zeros(200)]),
        np.column_stack([np.zeros(200), RNG.random((200, 2)) * 5]),
        np.column_stack([np.full((50, 2), 2.5), np.linspace(0, 5, 50)]),
    ]
)
"""A floor, a wall and a pole."""
LATTICE = np.stack(np.meshgrid(*[np.arange(6.0)] * 3), -1).reshape(-1, 3)
"""Many points are as far from a point as others."""
TWICE = np.repeat(RNG.integers(0, 4, (150, 3)) * 0.5, 2, axis=0)
COMPARED = {
    "empty": (columns([]), {}),
    "one point": (columns([(1, 2, 3)]), {}),
    "two points": (columns([(1, 2, 3), (1, 2, 4)]), {"k": 20}),
    "three points": (columns([(1, 2, 3), (1, 2, 4), (2, 2, 4)]), {"k": 20}),
    "all equal": (columns(np.full((30, 3), 4.0)), {}),
    "all equal, radius": (columns(np.full((30, 3), 4.0)), {"radius": 1.0}),
    "a line": (columns(np.outer(np.arange(30.0), [1, 2, 0.5])), {"k": 4}),
    "a cube": (columns(CUBE), {}),
    "raw": (columns(CUBE), {"mode": "raw", "k": 25}),
    "normalized, UTM": (columns(CUBE + UTM, RNG.permutation(400)), {"mode": "normalized"}),
    "a radius": (columns(CUBE), {"radius": 0.15, "min_k": 4}),
    "a scene": (columns(SCENE), {"k": 12}),
    "a scene, radius": (columns(SCENE), {"radius": 0.4}),
    "fewer than neighbours": (columns(CUBE[:40]), {"k": 1000, "mode": "normalized"}),
    "a leaf": (columns(CUBE[:13]), {"radius": 0.5}),
    "min_k": (columns(CUBE), {"radius": 0.12, "min_k": 9}),
    "many": (columns(RNG.random((1500, 3)) * [5, 5, 0.5]), {"k": 8}),
    "many, radius": (columns(RNG.random((1500, 3)) * [5, 5, 0.5]), {"radius": 0.5}),
}
CASES = {
    **COMPARED,
    "a lattice": (columns(LATTICE[RNG.permutation(len(LATTICE))]), {"k": 6}),
    "a lattice, radius": (columns(LATTICE), {"radius": 1.0}),
    "points twice": (columns(TWICE), {"k": 7, "mode": "raw"}),
    "points twice, radius": (columns(TWICE), {"radius": 0.75}),
    "dense and sparse": (columns(np.exp(RNG.normal(size=(600, 3)) * 4)), {"k": 9}),
    "far apart": (columns(RNG.normal(size=(200, 3)) * 1e60), {"k": 5}),
    "far apart, raw": (columns(RNG.normal(size=(200, 3)) * 1e120), {"k": 5, "mode": "raw"}),
    "close together": (columns(RNG.normal(size=(200, 3)) * 1e-110), {"k": 5}),
    "close together, radius": (columns(RNG.normal(size=(200, 3)) * 1e-80), {"radius": 1e-80}),
    "both zeros": (columns(np.where(RNG.random((60, 3)) < 0.5, 0.0, -0.0)), {"k": 3}),
}
"""Those as well that are not for the oracle: SciPy takes other ones of several equally far
neighbours, or eigenvalues are rounding errors."""
