"""Winding numbers of meshes round points: 0 outside, 1 inside.

For a closed mesh the crossings of a ray are counted: the number is an integer and exact, also
where the ray meets edges and vertices, because the two faces of an edge evaluate the same
expression on the same operands. For an open mesh the solid angles of its faces are added, which
needs no closed surface (generalised winding number, Jacobson et al. 2013).
"""

import numpy as np

from spatialq.geometry.triangles import max3, min3
from spatialq.runtime.arrays import Floats, Int32s
from spatialq.runtime.compile_cache import njit

TURN = float(1 << 44)
"""Units of a full turn in which solid angles are added: the order of integers does not matter."""


@njit(cache=True, nogil=True, error_model="numpy")
def winding(
    px: float, py: float, pz: float, vertices: Floats, faces: Int32s, v0: int, f0: int, f1: int
):
    """Count how often a closed mesh winds round a point that is not on its surface.

    Parameters
    ----------
    px, py, pz : float
    vertices : float64[n, 3]
    faces : int32[m, 3]
        Indices counted from vertex `v0`.
    v0, f0, f1 : int
        The mesh: its first vertex, its first face and the end of its faces.

    Returns
    -------
    int
        1 within a mesh whose faces are counter-clockwise seen from outside, -1 if clockwise.
    """
    total = 0
    for f in range(f0, f1):
        a = v0 + faces[f, 0]
        b = v0 + faces[f, 1]
        c = v0 + faces[f, 2]
        total += crossings(px, py, pz, vertices, a, b, c)
    return total


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def crossings(px, py, pz, vertices, a, b, c):
    """Count how often the ray upwards from p crosses a face with three corners; signed."""
    ay, by, cy = vertices[a, 1], vertices[b, 1], vertices[c, 1]
    above_a, above_b, above_c = ay > py, by > py, cy > py
    if above_a == above_b and above_b == above_c:
        return 0
    ax, bx, cx = vertices[a, 0], vertices[b, 0], vertices[c, 0]
    if (ax < px and bx < px and cx < px) or (ax > px and bx > px and cx > px):
        return 0
    az, bz, cz = vertices[a, 2], vertices[b, 2], vertices[c, 2]
    if az < pz and bz < pz and cz < pz:
        return 0
    found = 0
    if above_a != above_b:
        found += crossing(px, py, ax, ay, bx, by)
    if above_b != above_c:
        found += crossing(px, py, bx, by, cx, cy)
    if above_c != above_a:
        found += crossing(px, py, cx, cy, ax, ay)
    if found != 0 and height(px, py, ax, ay, az, bx, by, bz, cx, cy, cz) > pz:
        return found
    return 0


@njit(cache=True, nogil=True, error_model="numpy")
def crossing(px, py, ux, uy, vx, vy):
    """Give +1 or -1 if the edge from u up or down to v passes to the right of p, else 0."""
    if uy < vy:
        return 1 if (vx - ux) * (py - uy) - (vy - uy) * (px - ux) > 0.0 else 0
    return -1 if (ux - vx) * (py - vy) - (uy - vy) * (px - vx) > 0.0 else 0


@njit(cache=True, nogil=True, error_model="numpy")
def height(px, py, ax, ay, az, bx, by, bz, cx, cy, cz):
    """Give z of a triangle above or below p, which its projection contains."""
    ux = bx - ax
    uy = by - ay
    uz = bz - az
    vx = cx - ax
    vy = cy - ay
    vz = cz - az
    nx = uy * vz - uz * vy
    ny = uz * vx - ux * vz
    nz = ux * vy - uy * vx
    low = min3(az, bz, cz)
    high = max3(az, bz, cz)
    if nz == 0.0:
        return high
    z = az - (nx * (px - ax) + ny * (py - ay)) / nz
    # of a nearly vertical triangle the division says little
    return low if z < low else (high if z > high else z)


@njit(cache=True, nogil=True, error_model="numpy")
def open_winding(px, py, pz, vertices, faces, v0, f0, f1):
    """Give the generalised winding number of a mesh that need not be closed.

    Parameters
    ----------
    px, py, pz, vertices, faces, v0, f0, f1
        As for `winding`.

    Returns
    -------
    float
        Near 1 within a mesh with small holes, near 0 outside.
    """
    total = np.int64(0)
    for f in range(f0, f1):
        a = v0 + faces[f, 0]
        b = v0 + faces[f, 1]
        c = v0 + faces[f, 2]
        total += solid_angle(
            vertices[a, 0] - px,
            vertices[a, 1] - py,
            vertices[a, 2] - pz,
            vertices[b, 0] - px,
            vertices[b, 1] - py,
            vertices[b, 2] - pz,
            vertices[c, 0] - px,
            vertices[c, 1] - py,
            vertices[c, 2] - pz,
        )
    return total / TURN


@njit(cache=True, nogil=True, error_model="numpy")
def solid_angle(ax, ay, az, bx, by, bz, cx, cy, cz):
    """Give the solid angle of a triangle seen from the origin (Van Oosterom, Strackee 1983).

    Returns
    -------
    int
        Units of a full turn, see `TURN`.
    """
    a = np.sqrt(ax * ax + ay * ay + az * az)
    b = np.sqrt(bx * bx + by * by + bz * bz)
    c = np.sqrt(cx * cx + cy * cy + cz * cz)
    above = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
    below = (
        a * b * c
        + (ax * bx + ay * by + az * bz) * c
        + (bx * cx + by * cy + bz * cz) * a
        + (cx * ax + cy * ay + cz * az) * b
    )
    if above == 0.0:
        return np.int64(0)  # the origin is in the triangle's plane
    return np.int64(np.floor(arc_tangent(above, below) / (2.0 * np.pi) * TURN + 0.5))


@njit(cache=True, nogil=True, error_model="numpy")
def arc_tangent(y, x):
    """Give the angle of (x, y) to 2e-8, from operations that every device rounds alike.

    The polynomial is Abramowitz and Stegun 4.4.49.
    """
    up = abs(y)
    along = abs(x)
    t = up / along if up < along else along / up
    s = t * t
    r = 0.0028662257
    r = r * s - 0.0161657367
    r = r * s + 0.0429096138
    r = r * s - 0.0752896400
    r = r * s + 0.1065626393
    r = r * s - 0.1420889944
    r = r * s + 0.1999355085
    r = r * s - 0.3333314528
    angle = t + t * s * r
    if up >= along:
        angle = 0.5 * np.pi - angle
    if x < 0.0:
        angle = np.pi - angle
    return angle if y > 0.0 else -angle
