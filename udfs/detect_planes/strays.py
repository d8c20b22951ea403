"""Stray points, such as echoes of birds: few points that are far from all others.

They would make the root cube so large that the octree ends before its cells are small enough. So
the cube is laid around the other points only, and stray points belong to no plane.
"""

from functools import cache
from typing import Any

import numpy as np

from .cells import BITS, GRID
from .octree import Cube, corners_of

MAX_STRAYS, MAX_SHARE_OF_STRAYS = 10, 1e-5
"""Points, and share of all points, that may be stray on each side of the others: fewer than the
points of three nodes, which a plane needs."""

NARROW = 8
"""Stray points are left out if the others fit into as many cells of the first grid along each axis:
the octree then needs two levels less."""

BESIDE = np.array([-1, 2])
"""Borders of a box from its first and last cells, and a cell more on each side: nothing is cut off
at the border of a cell."""


def without_strays(cloud: Any, cube: Cube) -> tuple[Any, Cube, Any]:
    """Leave out stray points.

    Returns
    -------
    cloud, cube
        Of the other points.
    inside : bool[n] or None
        Which points are in the new cloud, on the device of the cloud; None for all.
    """
    inside = None
    while (box := _crowd(cloud)) is not None:
        cell = cube.side / (1 << GRID)
        lows, highs = np.array(cube.low) + (box + BESIDE).T * cell
        here = cloud.within(lows.tolist(), highs.tolist())
        points = cloud.some(here)
        ends = [(float(values.min()), float(values.max())) for values in points]
        cube = Cube.around(*zip(*ends, strict=True))
        if inside is None:
            inside = here
        else:
            inside[inside] = here
        cloud = cloud.of(points, cube)
        if not cube.side > 0:
            break
    return cloud, cube, inside


def _crowd(cloud: Any) -> Any:
    """Find the first and last cell of the first grid with most points: int64[3, 2].

    None if these cells are many, so that the grid is as it should be.
    """
    few = max(MAX_STRAYS, int(MAX_SHARE_OF_STRAYS * cloud.size))
    if cloud.size < 10 * few:
        return None
    moments = cloud.moments(1 << 3 * GRID, GRID)
    counts = cloud.download(cloud.xp.ascontiguousarray(moments[:, 0]))
    box = np.empty((3, 2), np.int64)
    for axis, cells in enumerate(_axes()):
        along = np.bincount(cells, counts, 1 << GRID).cumsum()
        box[axis] = np.searchsorted(along, [few, along[-1] - few - 1], side="right")
    widths = box[:, 1] - box[:, 0] + 1
    return box if widths.max() <= NARROW else None


@cache
def _axes() -> Any:
    """Position of each cell of the first grid along x, y and z: int64[3, cells]."""
    code = np.arange(1 << 3 * GRID)
    corners = corners_of(np.full(code.size, GRID), code)
    return np.ascontiguousarray(corners[:, :3].T >> (BITS - GRID))
