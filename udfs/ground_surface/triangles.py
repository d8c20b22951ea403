"""From points to triangles: one order, no doubles, and SciPy's Qhull for the triangulation.

Both kernels use it. The order of the rows that DuckDB gives is not fixed; points are sorted, so
that the triangulation, and with it each cell to the last bit, does not depend on that order.
"""

import numpy as np
from numpy.typing import NDArray

from .grid import Grid

Floats = NDArray[np.float64]
Triangles = NDArray[np.int32]

NONE: Triangles = np.empty((0, 3), np.int32)
FLAT = ("QH6013", "QH6154", "QH7089")  # what Qhull says of points on one line, or nearly so


def arrange(x: Floats, y: Floats, z: Floats, grid: Grid, *, thin: bool) -> tuple[Floats, ...]:
    """Sort points by x and y, counted from the grid's corner; one for each place, or each cell.

    Of several points at one place the lowest is kept; of several in one cell (`thin`) the one
    nearest to the cell's centre.
    """
    x0, y0 = grid.origin
    x, y = x - x0, y - y0
    order = np.lexsort((z, y, x))
    x, y, z = x[order], y[order], z[order]
    first = np.ones(x.size, np.bool_)
    first[1:] = (x[1:] != x[:-1]) | (y[1:] != y[:-1])
    kept = np.flatnonzero(first)
    if thin:
        kept = kept[_nearest_to_centre(x[kept], y[kept], grid)]
    return x[kept], y[kept], z[kept]


def _nearest_to_centre(x: Floats, y: Floats, grid: Grid) -> NDArray[np.int64]:
    x0, y0 = grid.origin
    column = np.clip(np.floor(x / grid.resolution), 0, grid.columns - 1).astype(np.int64)
    row = np.clip(np.floor(y / grid.resolution), 0, grid.rows - 1).astype(np.int64)
    dx, dy = x - (grid.x[column] - x0), y - (grid.y[row] - y0)
    cell = row * grid.columns + column
    order = np.lexsort((dx * dx + dy * dy, cell))
    _, first = np.unique(cell[order], return_index=True)
    return np.sort(order[first])


def triangulate(x: Floats, y: Floats) -> Triangles:
    """Delaunay triangulation: int32[m, 3], counterclockwise; none for points on one line."""
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
