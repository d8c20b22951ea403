"""Exact distance of two triangles, and of a point and a triangle, with the closest points.

Two triangles in space are nearest at an edge of each, or at a corner of one and the face of the
other, unless an edge of one passes through the other. The edges come first: where the third
corners lie on the far sides of the two planes perpendicular to the shortest connection, nothing of
either triangle lies between these planes, and the search ends (Larsen et al. 1999).

Every candidate is the distance of two points that are on the triangles, so rounding may miss the
minimum by some units in the last place but never invents one, however thin a triangle is. Only
+ - * / and comparisons in a fixed order are used: `triangles.cuh` gives the same bits.

References
----------
E. Larsen, S. Gottschalk, M. Lin, D. Manocha: Fast proximity queries with swept sphere volumes,
UNC Chapel Hill TR99-018 (1999), section 5; the closest points of two segments as in C. Ericson:
Real-time collision detection (2005), section 5.1.9, with cross products where it has
differences of dot products, for edges that are nearly parallel.
"""

from spatialq.runtime.compile_cache import njit

ROUNDING = 1e-24
"""Squared distances below this share of the squared edges may come from rounding alone."""

THIN = 1e-10
"""Squared sine of the angle between edges below which a triangle is treated as segments."""


@njit(cache=True, nogil=True, error_model="numpy")
def min3(a, b, c):  # type: ignore[no-untyped-def]
    """Give the smallest of three numbers."""
    m = a if a < b else b
    return m if m < c else c


@njit(cache=True, nogil=True, error_model="numpy")
def max3(a, b, c):  # type: ignore[no-untyped-def]
    """Give the largest of three numbers."""
    m = a if a > b else b
    return m if m > c else c


@njit(cache=True, nogil=True, error_model="numpy")
def squared_distance(  # type: ignore[no-untyped-def]
    a0x, a0y, a0z, a1x, a1y, a1z, a2x, a2y, a2z,
    b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z,
):  # fmt: skip
    """Measure the minimum distance of two triangles.

    Parameters
    ----------
    a0x ... a2z, b0x ... b2z : float, metres
        The corners; a triangle may be a segment or a point.

    Returns
    -------
    d2 : float, square metres
        The squared distance, 0 where the triangles cross.
    pax, pay, paz, pbx, pby, pbz : float, metres
        A point of a and a point of b at this distance; one point where they cross.
    """
    best = float("inf")
    pax = pay = paz = pbx = pby = pbz = 0.0
    for _ in range(3):
        dax, day, daz = a1x - a0x, a1y - a0y, a1z - a0z
        da2 = dax * dax + day * day + daz * daz
        for _ in range(3):
            dbx, dby, dbz = b1x - b0x, b1y - b0y, b1z - b0z
            db2 = dbx * dbx + dby * dby + dbz * dbz
            rx, ry, rz = b0x - a0x, b0y - a0y, b0z - a0z
            s, t = _nearest_of_segments(dax, day, daz, da2, dbx, dby, dbz, db2, rx, ry, rz)
            sx, sy, sz = s * dax, s * day, s * daz
            tx, ty, tz = t * dbx, t * dby, t * dbz
            wx, wy, wz = rx + tx - sx, ry + ty - sy, rz + tz - sz
            d2 = wx * wx + wy * wy + wz * wz
            if d2 <= best:
                best = d2
                pax, pay, paz = a0x + sx, a0y + sy, a0z + sz
                pbx, pby, pbz = b0x + tx, b0y + ty, b0z + tz
                # how far the third corners reach from the nearest points towards each other
                of_a = (a2x - pax) * wx + (a2y - pay) * wy + (a2z - paz) * wz
                of_b = (b2x - pbx) * wx + (b2y - pby) * wy + (b2z - pbz) * wz
                if of_a <= 0.0 and of_b >= 0.0 and d2 > ROUNDING * (da2 + db2):
                    return best, pax, pay, paz, pbx, pby, pbz
            b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z = (
                b1x, b1y, b1z, b2x, b2y, b2z, b0x, b0y, b0z,
            )  # fmt: skip
        a0x, a0y, a0z, a1x, a1y, a1z, a2x, a2y, a2z = (
            a1x, a1y, a1z, a2x, a2y, a2z, a0x, a0y, a0z,
        )  # fmt: skip
    best, pax, pay, paz, pbx, pby, pbz = _over_face(
        a0x, a0y, a0z, a1x, a1y, a1z, a2x, a2y, a2z, b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z,
        best, pax, pay, paz, pbx, pby, pbz,
    )  # fmt: skip
    best, pbx, pby, pbz, pax, pay, paz = _over_face(
        b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z, a0x, a0y, a0z, a1x, a1y, a1z, a2x, a2y, a2z,
        best, pbx, pby, pbz, pax, pay, paz,
    )  # fmt: skip
    return best, pax, pay, paz, pbx, pby, pbz


@njit(cache=True, nogil=True, error_model="numpy")
def squared_distance_point_triangle(px, py, pz, b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z):  # type: ignore[no-untyped-def]
    """Measure the minimum distance of a point and a triangle (Ericson 2005, section 5.1.5).

    Parameters
    ----------
    px, py, pz, b0x ... b2z : float, metres
        The point, and the corners of a triangle, which may be a segment or a point.

    Returns
    -------
    d2 : float, square metres
    qx, qy, qz : float, metres
        The nearest point of the triangle.
    """
    ux, uy, uz = b1x - b0x, b1y - b0y, b1z - b0z
    vx, vy, vz = b2x - b0x, b2y - b0y, b2z - b0z
    rx, ry, rz = px - b0x, py - b0y, pz - b0z
    d1 = ux * rx + uy * ry + uz * rz
    d2 = vx * rx + vy * ry + vz * rz
    rx, ry, rz = px - b1x, py - b1y, pz - b1z
    d3 = ux * rx + uy * ry + uz * rz
    d4 = vx * rx + vy * ry + vz * rz
    rx, ry, rz = px - b2x, py - b2y, pz - b2z
    d5 = ux * rx + uy * ry + uz * rz
    d6 = vx * rx + vy * ry + vz * rz
    va = d3 * d6 - d5 * d4
    vb = d5 * d2 - d1 * d6
    vc = d1 * d4 - d3 * d2
    whole = va + vb + vc  # the square of the normal
    if not whole > THIN * (ux * ux + uy * uy + uz * uz) * (vx * vx + vy * vy + vz * vz):
        d2, _, _, _, rx, ry, rz = squared_distance(
            px, py, pz, px, py, pz, px, py, pz, b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z
        )
        return d2, rx, ry, rz
    u = v = 0.0
    if d1 <= 0.0 and d2 <= 0.0:
        pass
    elif d3 >= 0.0 and d4 <= d3:
        u = 1.0
    elif d6 >= 0.0 and d5 <= d6:
        v = 1.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        u = _share(d1, d1 - d3)
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        v = _share(d2, d2 - d6)
    elif va <= 0.0 and d4 >= d3 and d5 >= d6:
        v = _share(d4 - d3, (d4 - d3) + (d5 - d6))
        u = 1.0 - v
    else:
        u = _share(vb, whole)
        v = _share(vc, whole)
    qx, qy, qz = b0x + u * ux + v * vx, b0y + u * uy + v * vy, b0z + u * uz + v * vz
    rx, ry, rz = px - qx, py - qy, pz - qz
    return rx * rx + ry * ry + rz * rz, qx, qy, qz


@njit(cache=True, nogil=True, error_model="numpy")
def _nearest_of_segments(dax, day, daz, da2, dbx, dby, dbz, db2, rx, ry, rz):  # type: ignore[no-untyped-def]
    """Where along two segments they are nearest: shares of da and db; r from start to start."""
    along_a = dax * rx + day * ry + daz * rz
    if not db2 > 0.0:
        return _share(along_a, da2), 0.0
    nx, ny, nz = day * dbz - daz * dby, daz * dbx - dax * dbz, dax * dby - day * dbx
    s = _share(
        (ry * dbz - rz * dby) * nx + (rz * dbx - rx * dbz) * ny + (rx * dby - ry * dbx) * nz,
        nx * nx + ny * ny + nz * nz,
    )
    of_both = dax * dbx + day * dby + daz * dbz
    t = s * of_both - (dbx * rx + dby * ry + dbz * rz)
    if t <= 0.0:
        return _share(along_a, da2), 0.0
    if t >= db2:
        return _share(along_a + of_both, da2), 1.0
    return s, t / db2


@njit(cache=True, nogil=True, error_model="numpy")
def _share(part, whole):  # type: ignore[no-untyped-def]
    if part >= whole:
        return 1.0 if whole > 0.0 else 0.0
    return part / whole if part > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _over_face(  # type: ignore[no-untyped-def]
    a0x, a0y, a0z, a1x, a1y, a1z, a2x, a2y, a2z,
    b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z,
    best, pax, pay, paz, pbx, pby, pbz,
):  # fmt: skip
    """Improve on the best by corners of a above the face of b, and edges of a through it."""
    ux, uy, uz = b1x - b0x, b1y - b0y, b1z - b0z
    vx, vy, vz = b2x - b0x, b2y - b0y, b2z - b0z
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    n2 = nx * nx + ny * ny + nz * nz
    if not n2 > 0.0:
        return best, pax, pay, paz, pbx, pby, pbz
    size2 = ux * ux + uy * uy + uz * uz + vx * vx + vy * vy + vz * vz
    h0 = (a0x - b0x) * nx + (a0y - b0y) * ny + (a0z - b0z) * nz
    h1 = (a1x - b0x) * nx + (a1y - b0y) * ny + (a1z - b0z) * nz
    h2 = (a2x - b0x) * nx + (a2y - b0y) * ny + (a2z - b0z) * nz
    for _ in range(3):
        rx, ry, rz = a0x - b0x, a0y - b0y, a0z - b0z
        d2, qx, qy, qz = _foot(rx, ry, rz, ux, uy, uz, vx, vy, vz, nx, ny, nz, n2)
        if d2 < best:
            best = d2
            pax, pay, paz = a0x, a0y, a0z
            pbx, pby, pbz = b0x + qx, b0y + qy, b0z + qz
        if (h0 < 0.0) != (h1 < 0.0):
            ex, ey, ez = a1x - a0x, a1y - a0y, a1z - a0z
            share = h0 / (h0 - h1)
            sx, sy, sz = share * ex, share * ey, share * ez
            d2, qx, qy, qz = _foot(
                rx + sx, ry + sy, rz + sz, ux, uy, uz, vx, vy, vz, nx, ny, nz, n2
            )  # fmt: skip
            if d2 <= ROUNDING * (size2 + ex * ex + ey * ey + ez * ez):
                x, y, z = a0x + sx, a0y + sy, a0z + sz
                return 0.0, x, y, z, x, y, z
        a0x, a0y, a0z, a1x, a1y, a1z, a2x, a2y, a2z = (
            a1x, a1y, a1z, a2x, a2y, a2z, a0x, a0y, a0z,
        )  # fmt: skip
        h0, h1, h2 = h1, h2, h0
    return best, pax, pay, paz, pbx, pby, pbz


@njit(cache=True, nogil=True, error_model="numpy")
def _foot(rx, ry, rz, ux, uy, uz, vx, vy, vz, nx, ny, nz, n2):  # type: ignore[no-untyped-def]
    """Where the perpendicular of a point meets a face, with its square: infinite if outside."""
    u = (ry * vz - rz * vy) * nx + (rz * vx - rx * vz) * ny + (rx * vy - ry * vx) * nz
    v = (uy * rz - uz * ry) * nx + (uz * rx - ux * rz) * ny + (ux * ry - uy * rx) * nz
    if not (u >= 0.0 and v >= 0.0 and u + v <= n2):
        return float("inf"), 0.0, 0.0, 0.0
    u, v = u / n2, v / n2
    qx, qy, qz = u * ux + v * vx, u * uy + v * vy, u * uz + v * vz
    dx, dy, dz = rx - qx, ry - qy, rz - qz
    return dx * dx + dy * dy + dz * dz, qx, qy, qz
