"""Cells of a search for the penetration: how many there may be, when they are good enough."""

from typing import Any

import numpy as np

from spatialq.runtime.compile_cache import njit

ACCURATE = 0.9e-4
"""Metres that the result may be too small."""

ACCURATE_SHARE = 0.9e-2
"""The same as a share of the result; the larger one counts."""

STACK = 256
"""Cells that wait, at most."""

ROWS = 7
"""Faces of a mean of distances, at most."""

SLIGHT = 1.0 / 64.0
"""Share of the size of a cell that counts as a difference of distances at its ends."""

WORK = (STACK + 64, 9)
"""Numbers of scratch."""


@njit(cache=True, nogil=True, error_model="numpy")
def accurate(reach: float) -> float:
    """Give the bound from above at which a search ends."""
    share = ACCURATE_SHARE * reach
    return reach + (share if share > ACCURATE else ACCURATE)


@njit(cache=True, nogil=True, error_model="numpy")
def centre_of(corners: Any) -> Any:
    """Give the mean of the corners of a cell, and the largest distance from it."""
    n = len(corners)
    px = 0.0
    py = 0.0
    pz = 0.0
    for k in range(n):
        px += corners[k, 0]
        py += corners[k, 1]
        pz += corners[k, 2]
    px /= n
    py /= n
    pz /= n
    radius = 0.0
    for k in range(n):
        x = corners[k, 0] - px
        y = corners[k, 1] - py
        z = corners[k, 2] - pz
        size = x * x + y * y + z * z
        radius = size if size > radius else radius
    return px, py, pz, np.sqrt(radius)
