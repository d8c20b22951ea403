"""Sort points, remove duplicates, and triangulate with SciPy's Qhull; for all kernels.

DuckDB does not guarantee an order of rows. The points are sorted, so that the triangulation, and
with it every bit of the result, does not depend on the order of the input.
"""

import numpy as np
from numpy.typing import NDArray

from . import cells
from .grid import SurfaceRaster

Floats = NDArray[np.float64]
Triangles = NDArray[np.int32]

NONE: Triangles = np.empty((0, 3), np.int32)
FLAT = ("QH6013", "QH6154", "QH7089")  # errors of Qhull for points on, or nearly on, one line


def arrange(
    x: Floats, y: Floats, z: Floats, grid: SurfaceRaster, *, thin: bool
) -> tuple[Floats, ...]:
    """Sort points by x and y, relative to the grid's corner, and keep one per place or cell.

    Of several points at one place the lowest is kept; with `thin`, of several points in one cell
    the one nearest to the centre of the cell.
    """
    x0, y0 = grid.origin
    x, y = x - x0, y - y0
    if thin:
        nearest = np.full((grid.rows, grid.columns), -1, np.int64)
        cells.nearest_to_centres(x, y, z, *grid.centres_from(), grid.resolution, nearest)
        kept = nearest[nearest >= 0]
        x, y, z = x[kept], y[kept], z[kept]
    order = np.lexsort((z, y, x))
    x, y, z = x[order], y[order], z[order]
    first = np.ones(x.size, np.bool_)
    first[1:] = (x[1:] != x[:-1]) | (y[1:] != y[:-1])
    return x[first], y[first], z[first]


def triangulate(x: Floats, y: Floats) -> Triangles:
    """Delaunay triangulation: int32[m, 3], counterclockwise; empty for points on one line."""
    from scipy.spatial import Delaunay, QhullError

    if x.size < 3:
        return NONE
    try:
        triangles: Triangles = Delaunay(np.column_stack([x, y])).simplices
    except QhullError as error:
        if not str(error).startswith(FLAT):
            raise
        return NONE
    return triangles


def hull(x: Floats, y: Floats) -> Triangles:
    """Triangles that fill the convex hull, as a fan around one of its corners."""
    from scipy.spatial import ConvexHull, QhullError

    if x.size < 3:
        return NONE
    try:
        corners = ConvexHull(np.column_stack([x, y])).vertices.astype(np.int32)
    except QhullError as error:
        if not str(error).startswith(FLAT):
            raise
        return NONE
    return np.column_stack([np.full(corners.size - 2, corners[0]), corners[1:-1], corners[2:]])
