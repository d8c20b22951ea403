"""`deviation` on the CPU: the nearest face of each point, and what it says of the point."""

from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.data.points import all_finite, ids_of, in_parts, normals_of, not_finite
from spatialq.geometry.nearest_faces import NearestFaces
from spatialq.geometry.winding import arc_tangent
from spatialq.runtime import buffers, progress
from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit

from . import NO_FACE, Options


def run(
    x: Floats, y: Floats, z: Floats, point_id: Ints | None, elements: Meshes, options: Options,
    nx: Floats | None = None, ny: Floats | None = None, nz: Floats | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Find the nearest face of each point of a cloud.

    Parameters
    ----------
    x, y, z : float64[n]
    point_id : int64[n] or None
        None for 0, 1, 2 ...
    elements : Meshes
        In metres.
    options : Options
    nx, ny, nz : float64[n] or None
        Normals of the points, of any length; masked where there is none.

    Returns
    -------
    dict of arrays
        `point_id`; `element` (int64, the row; -1 where no face is near), `face` (int64, of those
        of the element; -1), `distance` (float64, metres, positive outside; NaN), `angle` (float64,
        degrees between the normal of the point and that of the face outwards; NaN without one of
        the two), `orientation` (int8, as in `ORIENTATIONS`; -1). In the order of the points.

    Raises
    ------
    ValueError
        If coordinates are not finite.
    """
    progress.stage("faces", 0.2)
    if not all_finite(x, y, z):
        raise ValueError(not_finite(options.function, x, y, z, point_id))
    n = len(x)
    nearest = NearestFaces(elements, options.max_distance)
    progress.stage("distances", 0.9)
    found = nearest.find(x, y, z, options.metres)
    progress.stage("rows", 1.0)
    element, angle = buffers.empty(n, np.int64), buffers.empty(n)
    orientation = buffers.empty(n, np.int8)
    normals = normals_of(nx, ny, nz)
    known = nearest.topology

    def describe(first: int, stop: int) -> None:
        _describe(
            found.face, *normals, first, stop, nearest.mesh_of, elements.face_starts, known.side,
            known.normals, element, angle, orientation,
        )  # fmt: skip

    in_parts(describe, n)
    return {
        "point_id": ids_of(point_id, n),
        "element": element,
        "face": found.face,
        "distance": found.distance,
        "angle": angle,
        "orientation": orientation,
    }


@njit(cache=True, nogil=True, error_model="numpy")
def _describe(  # type: ignore[no-untyped-def]
    face, nx, ny, nz, first, stop, mesh_of, face_starts, side, normals, element, angle, orientation
):
    """Make the rows of the points first to stop; faces become those of their element."""
    for i in range(first, stop):
        f = face[i]
        element[i] = orientation[i] = NO_FACE
        angle[i] = np.nan
        if f < 0:
            continue
        e = mesh_of[f]
        element[i] = e
        face[i] = f - face_starts[e]
        turn = side[e]
        orientation[i] = 0 if turn > 0 else (1 if turn == 0 else 2)
        if nx.size > 0:
            outwards = -1.0 if turn < 0 else 1.0
            ax = outwards * normals[f, 0, 0]
            ay = outwards * normals[f, 0, 1]
            az = outwards * normals[f, 0, 2]
            bx, by, bz = nx[i], ny[i], nz[i]
            cx, cy, cz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
            across = np.sqrt(cx * cx + cy * cy + cz * cz)
            along = ax * bx + ay * by + az * bz
            angle[i] = abs(arc_tangent(across, along)) * (180.0 / np.pi)
