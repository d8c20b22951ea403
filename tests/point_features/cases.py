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
CASES = {
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
}
