"""Whether points, and parts of an element, are inside another one, and how far from its surface."""

from typing import Any

import numpy as np

from spatialq.geometry.clusters import CLUSTER
from spatialq.geometry.solids import Solids
from spatialq.geometry.triangles import squared_distance_point_triangle
from spatialq.geometry.winding import open_winding, winding
from spatialq.runtime.compile_cache import njit

UNDECIDED, OUT, IN = range(3)
"""Where a connected part, or a point, is: outside or inside of the other element, or not known."""


@njit(cache=True, nogil=True, error_model="numpy")
def is_inside(px: float, py: float, pz: float, e: int, solids: Solids) -> Any:
    """Tell whether a point is inside an element, by the winding number also where it is open."""
    v0 = solids.vertex_starts[e]
    f0 = solids.face_starts[e]
    f1 = solids.face_starts[e + 1]
    if solids.side[e] == 0:
        number = open_winding(px, py, pz, solids.vertices, solids.faces, v0, f0, f1)
        return abs(number) > 0.5
    clusters = solids.clusters
    first = solids.cluster_starts[e]
    turns = 0
    for c in range(first, solids.cluster_starts[e + 1]):
        if (  # the ray upwards passes the box
            clusters[c, 0] <= px <= clusters[c, 3]
            and clusters[c, 1] <= py <= clusters[c, 4]
            and pz <= clusters[c, 5]
        ):
            begin = f0 + (c - first) * CLUSTER
            end = min(begin + CLUSTER, f1)
            turns += winding(px, py, pz, solids.vertices, solids.faces, v0, begin, end)
    return solids.side[e] * turns > 0


@njit(cache=True, nogil=True, error_model="numpy")
def in_both(px: float, py: float, pz: float, a: int, b: int, solids: Solids) -> Any:
    """Tell whether a point is inside two elements."""
    return is_inside(px, py, pz, a, solids) and is_inside(px, py, pz, b, solids)


@njit(cache=True, nogil=True, error_model="numpy")
def nearest(px: float, py: float, pz: float, bound: float, e: int, solids: Solids) -> Any:
    """Find the point of an element's surface that is nearest to p.

    Parameters
    ----------
    px, py, pz : float
    bound : float
        Square of the distance from which on nothing is looked for.
    e : int
    solids : Solids

    Returns
    -------
    d2 : float
        Squared distance; `bound` where nothing is nearer.
    qx, qy, qz : float
        The point; of several that of the first face.
    face : int
        On which it is.
    """
    vertices = solids.vertices
    faces = solids.faces
    clusters = solids.clusters
    v0 = solids.vertex_starts[e]
    first = solids.cluster_starts[e]
    best = bound
    face = solids.face_starts[e + 1]
    qx = px
    qy = py
    qz = pz
    for c in range(first, solids.cluster_starts[e + 1]):
        dx = gap(px, clusters[c, 0], clusters[c, 3])
        dy = gap(py, clusters[c, 1], clusters[c, 4])
        dz = gap(pz, clusters[c, 2], clusters[c, 5])
        if (dx * dx + dy * dy + dz * dz) * (1.0 - 1e-12) >= best:
            continue
        begin = solids.face_starts[e] + (c - first) * CLUSTER
        for f in range(begin, min(begin + CLUSTER, solids.face_starts[e + 1])):
            i = v0 + faces[f, 0]
            j = v0 + faces[f, 1]
            k = v0 + faces[f, 2]
            d2, x, y, z = squared_distance_point_triangle(
                px, py, pz,
                vertices[i, 0], vertices[i, 1], vertices[i, 2],
                vertices[j, 0], vertices[j, 1], vertices[j, 2],
                vertices[k, 0], vertices[k, 1], vertices[k, 2],
            )  # fmt: skip
            if d2 < best:
                best = d2
                face = f
                qx = x
                qy = y
                qz = z
    return best, qx, qy, qz, face


@njit(cache=True, nogil=True, error_model="numpy")
def gap(x: float, low: float, high: float) -> float:
    """Give the distance of x from an interval."""
    if x < low:
        return low - x
    return x - high if x > high else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def near_surface(px: float, py: float, pz: float, e: int, t: float, solids: Solids) -> Any:
    """Tell whether a point is at most t from the surface of an element."""
    d2, _, _, _, _ = nearest(px, py, pz, t * t * (1.0 + 1e-9), e, solids)
    return d2 <= t * t


@njit(cache=True, nogil=True, error_model="numpy")
def outside_box(px: float, py: float, pz: float, boxes: Any, e: int, t: float) -> Any:
    """Tell whether a point is farther than t from the box of an element, along one of the axes."""
    return (
        px < boxes[e, 0] - t
        or px > boxes[e, 3] + t
        or py < boxes[e, 1] - t
        or py > boxes[e, 4] + t
        or pz < boxes[e, 2] - t
        or pz > boxes[e, 5] + t
    )


@njit(cache=True, nogil=True, error_model="numpy")
def place_of(px: float, py: float, pz: float, e: int, t: float, solids: Solids) -> int:
    """Tell whether a point is outside or inside an element; `UNDECIDED` within t of its surface."""
    if outside_box(px, py, pz, solids.boxes, e, t):
        return OUT
    if near_surface(px, py, pz, e, t, solids):
        return UNDECIDED
    return IN if is_inside(px, py, pz, e, solids) else OUT


@njit(cache=True, nogil=True, error_model="numpy")
def parts_inside(b: int, a: int, t: float, state: Any, solids: Solids) -> Any:
    """Tell where the connected parts of b are, none of which crosses the surface of a.

    One point of a part that is farther than t from a's surface decides for the whole part.

    Parameters
    ----------
    b, a : int
    t : float
        The tolerance.
    state : int8[]
        Scratch, as long as any element has vertices.
    solids : Solids

    Returns
    -------
    inside, outside : bool
        Whether there are parts inside and outside.
    x, y, z : float
        A point in the first part inside, a little below its surface.
    """
    vertices = solids.vertices
    faces = solids.faces
    label = solids.label
    v0 = solids.vertex_starts[b]
    n = solids.vertex_starts[b + 1] - v0
    f0 = solids.face_starts[b]
    inside = False
    x = np.nan
    y = np.nan
    z = np.nan
    outside = parts_outside_box(b, a, t, state, solids)
    # the corners, then the centres of the faces: a face may lie deep whose corners are all near
    for k in range(n + solids.face_starts[b + 1] - f0):
        if k < n:
            r = label[v0 + k]
            if r < 0 or state[r] != UNDECIDED:
                continue
            px = vertices[v0 + k, 0]
            py = vertices[v0 + k, 1]
            pz = vertices[v0 + k, 2]
        else:
            r = label[v0 + faces[f0 + k - n, 0]]
            if state[r] != UNDECIDED:
                continue
            px, py, pz, _, _, _ = face_centre(f0 + k - n, v0, vertices, faces)
        if near_surface(px, py, pz, a, t, solids):
            continue
        if not is_inside(px, py, pz, a, solids):
            state[r] = OUT
            outside = True
            continue
        state[r] = IN
        if not inside:
            f = f0
            while k < n and faces[f, 0] != k and faces[f, 1] != k and faces[f, 2] != k:
                f += 1
            px, py, pz, nx, ny, nz = face_centre(f if k < n else f0 + k - n, v0, vertices, faces)
            x = px - 0.25 * t * solids.side[b] * nx
            y = py - 0.25 * t * solids.side[b] * ny
            z = pz - 0.25 * t * solids.side[b] * nz
        inside = True
    return inside, outside, x, y, z


@njit(cache=True, nogil=True, error_model="numpy")
def parts_outside_box(b: int, a: int, t: float, state: Any, solids: Solids) -> bool:
    """Mark the parts of b that reach out of the box of a; the others are `UNDECIDED`.

    Returns
    -------
    bool
        Whether there are such parts.
    """
    vertices = solids.vertices
    v0 = solids.vertex_starts[b]
    n = solids.vertex_starts[b + 1] - v0
    found = False
    for v in range(n):
        state[v] = UNDECIDED
    for v in range(n):
        r = solids.label[v0 + v]
        if (
            r >= 0
            and state[r] == UNDECIDED
            and outside_box(
                vertices[v0 + v, 0], vertices[v0 + v, 1], vertices[v0 + v, 2], solids.boxes, a, t
            )
        ):
            state[r] = OUT
            found = True
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def faces_inside(b: int, a: int, t: float, solids: Solids) -> Any:
    """Tell whether faces of b are inside and outside of a, farther than t from its surface.

    The centre and the corners of each face are tested, and of a corner within t of the surface a
    point near it. A face inside counts only if b ends there: one between two bodies of b says
    nothing.

    Parameters
    ----------
    b, a, t, solids
        See `parts_inside`.

    Returns
    -------
    inside, outside : bool
    """
    vertices = solids.vertices
    faces = solids.faces
    v0 = solids.vertex_starts[b]
    inside = False
    outside = False
    for f in range(solids.face_starts[b], solids.face_starts[b + 1]):
        mx, my, mz, nx, ny, nz = face_centre(f, v0, vertices, faces)
        for corner in range(4):
            if inside and outside:
                return inside, outside
            px = mx
            py = my
            pz = mz
            place = UNDECIDED
            if corner < 3:
                v = v0 + faces[f, corner]
                place = place_of(vertices[v, 0], vertices[v, 1], vertices[v, 2], a, t, solids)
                px = 0.9 * vertices[v, 0] + 0.1 * mx
                py = 0.9 * vertices[v, 1] + 0.1 * my
                pz = 0.9 * vertices[v, 2] + 0.1 * mz
            if place == UNDECIDED:
                place = place_of(px, py, pz, a, t, solids)
            if place == OUT:
                outside = True
            elif place == IN and not inside:
                step = 0.5 * t * solids.side[b]
                inside = not is_inside(px + step * nx, py + step * ny, pz + step * nz, b, solids)
    return inside, outside


@njit(cache=True, nogil=True, error_model="numpy")
def unit_normal(i: int, j: int, k: int, vertices: Any) -> Any:
    """Give the normal of a face, of length 1; 0 if it has no area."""
    ux = vertices[j, 0] - vertices[i, 0]
    uy = vertices[j, 1] - vertices[i, 1]
    uz = vertices[j, 2] - vertices[i, 2]
    vx = vertices[k, 0] - vertices[i, 0]
    vy = vertices[k, 1] - vertices[i, 1]
    vz = vertices[k, 2] - vertices[i, 2]
    nx = uy * vz - uz * vy
    ny = uz * vx - ux * vz
    nz = ux * vy - uy * vx
    size = np.sqrt(nx * nx + ny * ny + nz * nz)
    unit = 1.0 / size if size > 0.0 else 0.0
    return nx * unit, ny * unit, nz * unit


@njit(cache=True, nogil=True, error_model="numpy")
def face_centre(f: int, v0: int, vertices: Any, faces: Any) -> Any:
    """Give the centre of a face and its normal, of length 1."""
    i = v0 + faces[f, 0]
    j = v0 + faces[f, 1]
    k = v0 + faces[f, 2]
    nx, ny, nz = unit_normal(i, j, k, vertices)
    return (
        (vertices[i, 0] + vertices[j, 0] + vertices[k, 0]) / 3.0,
        (vertices[i, 1] + vertices[j, 1] + vertices[k, 1]) / 3.0,
        (vertices[i, 2] + vertices[j, 2] + vertices[k, 2]) / 3.0,
        nx,
        ny,
        nz,
    )
