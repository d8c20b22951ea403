"""Named clouds for `thin`, with their options."""

import numpy as np

from ..classify_noise.cases import columns

RNG = np.random.default_rng(4)
CUBE = RNG.random((700, 3)) * 4
UTM = np.array([691_000.0, 5_334_000.0, 520.0])
LATTICE = np.stack(np.meshgrid(*[np.arange(8) / 4.0] * 3), -1).reshape(-1, 3)
CLOUDS = {
    "empty": columns([]),
    "one point": columns([(1, 2, 3)]),
    "all equal": columns(np.full((30, 3), 4.0), RNG.permutation(30)),
    "a cube": columns(CUBE - 2, RNG.permutation(700)),
    "UTM": columns(np.round(CUBE, 2) + UTM, RNG.permutation(700) - 350),
    "a lattice": columns(LATTICE, RNG.permutation(512)),
    "far apart": columns([(-1e12, 0, 0), (1e12, 1e12, -1e12), (1e12, 1e12, -1e12)]),
}
CASES = {
    f"{name}, {method}, {distance}": (cloud, {"method": method, "distance": distance})
    for name, cloud in CLOUDS.items()
    for method in ("voxel", "nearest_to_mean", "poisson")
    for distance in (0.5, 1.1)
}
