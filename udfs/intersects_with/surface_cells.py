"""The search for the penetration in triangles of a surface."""

from typing import Any

from spatialq.geometry.solids import Solids
from spatialq.runtime.arrays import Floats
from spatialq.runtime.compile_cache import njit

from .cell_bounds import bound_in_cell, forget
from .cell_crossings import cut_triangle, divide_triangle, longest_crossing
from .cell_frames import cut, enlarge
from .cells import STACK, accurate


@njit(cache=True, nogil=True, error_model="numpy")
def over_surface(
    e: int, o: int, own: Floats, reach: float, upper: float, left: int, solids: Solids, work: Any
) -> Any:
    """Search the largest distance from the surface of e over the part of o's surface inside e.

    Parameters
    ----------
    e, o : int
    own : float64[2, 9]
        The axes of e, and its box.
    reach, upper : float
        The largest distance so far; the largest bound of cells that were given up.
    left : int
        How many cells may be looked at before the search is given up.
    solids, work
        See `penetration`.

    Returns
    -------
    reach, upper, left
    """
    forget(work)
    frame = work[STACK : STACK + 2]
    polygon = work[STACK + 54 : STACK + 64]
    spare = work[STACK + 6 : STACK + 16]
    corners = work[STACK + 22 : STACK + 25]
    vertices = solids.vertices
    v0 = solids.vertex_starts[o]
    for f in range(solids.face_starts[o], solids.face_starts[o + 1]):
        for corner in range(3):
            v = v0 + solids.faces[f, corner]
            for k in range(3):
                polygon[corner, k] = vertices[v, k]
        n = len(corners)
        for side in range(6):
            n = cut(polygon, n, spare, frame, side)
            if n < 3:
                break
        # a fan of triangles
        for last in range(n - 1, 1, -1):
            count = 1
            for k in range(3):
                work[0, k] = polygon[0, k]
                work[0, 3 + k] = polygon[last - 1, k]
                work[0, 6 + k] = polygon[last, k]
            while count > 0:
                count -= 1
                for corner in range(3):
                    for k in range(3):
                        corners[corner, k] = work[count, 3 * corner + k]
                reach, bound = bound_in_cell(corners, e, o, own, reach, solids, work)
                left -= 1
                if bound > accurate(reach):
                    face = longest_crossing(e, solids, work)
                    if left > 0 and count + 3 <= STACK:
                        if face >= 0:
                            count = cut_triangle(face, e, corners, solids, work, count)
                        else:
                            count = divide_triangle(corners, work, count)
                        continue
                    upper = bound if bound > upper else upper
                if bound >= 0.0:
                    enlarge(frame, corners, work[STACK + 16])
    return reach, upper, left
