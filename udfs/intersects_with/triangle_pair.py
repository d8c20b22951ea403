"""How two triangles meet at a tolerance: the rules on which the relations of elements rest.

All lengths are metres, all normals have length 1. `kernels.cu` has the same rules, operation by
operation.
"""

import numpy as np

from spatialq.geometry.triangles import max3, min3
from spatialq.runtime.compile_cache import njit

APART = 0
CROSS = 1
"""Each passes through the other and sticks out on both sides by more than the tolerance."""
SHALLOW = 2
"""Each reaches behind the other, but by no more than the tolerance, or starting at its face."""
COPLANAR = 3
"""In one plane within the tolerance, and overlapping in it by more."""
NEAR = 4
"""None of these, but possibly within the tolerance of each other."""

PARALLEL = 0.999
"""Cosine of the angle below which planes count as parallel: 2.6 degrees."""
NOISE = 0.05
"""Share of the tolerance within which a point lies in a plane."""


@njit(cache=True, nogil=True, error_model="numpy")
def classify(
    a0x, a0y, a0z, a1x, a1y, a1z, a2x, a2y, a2z, anx, any_, anz,
    b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z, bnx, bny, bnz,
    side, other_side, t, closely,
):  # fmt: skip
    """Classify a pair of triangles: corners and normal of one, then of the other.

    Parameters
    ----------
    a0x ... bnz : float
    side, other_side : int
        Whether normals point out of their bodies, 1, or in, -1; 0 for open surfaces.
    t : float
        The tolerance.
    closely : bool
        Whether `NEAR` and `APART` are distinguished for faces with bodies on opposite sides.

    Returns
    -------
    int
        `APART`, `CROSS`, `SHALLOW`, `COPLANAR` or `NEAR`.
    """
    # distances of b's corners from a's plane, and the other way round
    d0 = anx * (b0x - a0x) + any_ * (b0y - a0y) + anz * (b0z - a0z)
    d1 = anx * (b1x - a0x) + any_ * (b1y - a0y) + anz * (b1z - a0z)
    d2 = anx * (b2x - a0x) + any_ * (b2y - a0y) + anz * (b2z - a0z)
    blow = min3(d0, d1, d2)
    bhigh = max3(d0, d1, d2)
    if blow > t or bhigh < -t:
        return APART
    e0 = bnx * (a0x - b0x) + bny * (a0y - b0y) + bnz * (a0z - b0z)
    e1 = bnx * (a1x - b0x) + bny * (a1y - b0y) + bnz * (a1z - b0z)
    e2 = bnx * (a2x - b0x) + bny * (a2y - b0y) + bnz * (a2z - b0z)
    alow = min3(e0, e1, e2)
    ahigh = max3(e0, e1, e2)
    if alow > t or ahigh < -t:
        return APART
    cosine = anx * bnx + any_ * bny + anz * bnz
    if (cosine > PARALLEL or cosine < -PARALLEL) and (
        (blow >= -t and bhigh <= t) or (alow >= -t and ahigh <= t)
    ):
        if not closely and cosine * side * other_side < 0.0:
            return NEAR
        # Overlap in the plane: the minimum over the six edges as separating axes.
        w = overlap(a0x, a0y, a0z, a1x, a1y, a1z, a2x, a2y, a2z, anx, any_, anz,
                    b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z)  # fmt: skip
        if w < -t:
            return APART
        w = min3(w, w, overlap(a1x, a1y, a1z, a2x, a2y, a2z, a0x, a0y, a0z, anx, any_, anz,
                               b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z))  # fmt: skip
        w = min3(w, w, overlap(a2x, a2y, a2z, a0x, a0y, a0z, a1x, a1y, a1z, anx, any_, anz,
                               b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z))  # fmt: skip
        if w < -t:
            return APART
        w = min3(w, w, overlap(b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z, bnx, bny, bnz,
                               a0x, a0y, a0z, a1x, a1y, a1z, a2x, a2y, a2z))  # fmt: skip
        w = min3(w, w, overlap(b1x, b1y, b1z, b2x, b2y, b2z, b0x, b0y, b0z, bnx, bny, bnz,
                               a0x, a0y, a0z, a1x, a1y, a1z, a2x, a2y, a2z))  # fmt: skip
        w = min3(w, w, overlap(b2x, b2y, b2z, b0x, b0y, b0z, b1x, b1y, b1z, bnx, bny, bnz,
                               a0x, a0y, a0z, a1x, a1y, a1z, a2x, a2y, a2z))  # fmt: skip
        if w < -t:
            return APART
        return COPLANAR if w > t else NEAR
    # What passes through a face reaches behind it. It need not reach in front of it: another
    # triangle of the same surface may, where an edge happens to lie in the face.
    noise = NOISE * t
    e0 = behind(e0, other_side, noise)
    e1 = behind(e1, other_side, noise)
    e2 = behind(e2, other_side, noise)
    d0 = behind(d0, side, noise)
    d1 = behind(d1, side, noise)
    d2 = behind(d2, side, noise)
    if (
        min3(e0, e1, e2) >= 0.0
        or max3(e0, e1, e2) < 0.0
        or min3(d0, d1, d2) >= 0.0
        or max3(d0, d1, d2) < 0.0
    ):
        return NEAR
    # On the line of both planes each triangle covers an interval (Moeller 1997).
    ux = any_ * bnz - anz * bny
    uy = anz * bnx - anx * bnz
    uz = anx * bny - any_ * bnx
    unit = 1.0 / np.sqrt(ux * ux + uy * uy + uz * uz)
    ux *= unit
    uy *= unit
    uz *= unit
    alo, ahi = interval(
        0.0,
        ux * (a1x - a0x) + uy * (a1y - a0y) + uz * (a1z - a0z),
        ux * (a2x - a0x) + uy * (a2y - a0y) + uz * (a2z - a0z),
        e0, e1, e2,
    )  # fmt: skip
    blo, bhi = interval(
        ux * (b0x - a0x) + uy * (b0y - a0y) + uz * (b0z - a0z),
        ux * (b1x - a0x) + uy * (b1y - a0y) + uz * (b1z - a0z),
        ux * (b2x - a0x) + uy * (b2y - a0y) + uz * (b2z - a0z),
        d0, d1, d2,
    )  # fmt: skip
    length = min3(ahi, ahi, bhi) - max3(alo, alo, blo)
    if length <= noise:  # a gap on this line says nothing about the gap beside it
        return NEAR
    if length > t and alow < -t and ahigh > t and blow < -t and bhigh > t:
        return CROSS
    return SHALLOW


@njit(cache=True, nogil=True, error_model="numpy")
def behind(d, side, noise):
    """Give a distance from a face the sign that is negative behind it; within the noise it is 0."""
    if -noise <= d <= noise:
        return 0.0
    return -d if side < 0 else d


@njit(cache=True, nogil=True, error_model="numpy")
def overlap(
    ux, uy, uz, vx, vy, vz, wx, wy, wz, nx, ny, nz,
    b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z,
):  # fmt: skip
    """Measure how far triangles u, v, w and b overlap across the edge u, v; negative is a gap."""
    mx = (vy - uy) * nz - (vz - uz) * ny
    my = (vz - uz) * nx - (vx - ux) * nz
    mz = (vx - ux) * ny - (vy - uy) * nx
    unit = 1.0 / np.sqrt(mx * mx + my * my + mz * mz)
    mx *= unit
    my *= unit
    mz *= unit
    far = mx * (wx - ux) + my * (wy - uy) + mz * (wz - uz)  # < 0: m points out of the triangle
    p0 = mx * (b0x - ux) + my * (b0y - uy) + mz * (b0z - uz)
    p1 = mx * (b1x - ux) + my * (b1y - uy) + mz * (b1z - uz)
    p2 = mx * (b2x - ux) + my * (b2y - uy) + mz * (b2z - uz)
    low = min3(p0, p1, p2)
    high = max3(p0, p1, p2)
    return (0.0 if high > 0.0 else high) - (far if far > low else low)


@njit(cache=True, nogil=True, error_model="numpy")
def interval(p0, p1, p2, d0, d1, d2):
    """Give the ends of the section of a triangle that has corners on both sides of a plane.

    Parameters
    ----------
    p0, p1, p2 : float
        Where the corners lie along the line of the cut.
    d0, d1, d2 : float
        Their distances from the plane; the minimum is < 0, the maximum >= 0.
    """
    low = np.inf
    high = -np.inf
    if (d0 < 0.0) != (d1 < 0.0):
        p = p0 + (p1 - p0) * (d0 / (d0 - d1))
        low = p if p < low else low
        high = p if p > high else high
    if (d1 < 0.0) != (d2 < 0.0):
        p = p1 + (p2 - p1) * (d1 / (d1 - d2))
        low = p if p < low else low
        high = p if p > high else high
    if (d2 < 0.0) != (d0 < 0.0):
        p = p2 + (p0 - p2) * (d2 / (d2 - d0))
        low = p if p < low else low
        high = p if p > high else high
    return low, high


@njit(cache=True, nogil=True, error_model="numpy")
def coplanar_centre(one, i, other, j, polygon, spare):
    """Give a point inside the overlap of two coplanar triangles.

    Parameters
    ----------
    one, other : float64[:, >= 12]
        Rows of corners and normal.
    i, j : int
        The rows.
    polygon, spare : float64[9, 3]
        Scratch.

    Returns
    -------
    x, y, z : float
        Mean of the corners of the second triangle clipped by the edges of the first.
    """
    n = 3
    for corner in range(3):
        for axis in range(3):
            polygon[corner, axis] = other[j, 3 * corner + axis]
    for edge in range(3):
        u = 3 * edge
        v = 3 * ((edge + 1) % 3)
        ex = one[i, v] - one[i, u]
        ey = one[i, v + 1] - one[i, u + 1]
        ez = one[i, v + 2] - one[i, u + 2]
        mx = ey * one[i, 11] - ez * one[i, 10]
        my = ez * one[i, 9] - ex * one[i, 11]
        mz = ex * one[i, 10] - ey * one[i, 9]
        kept = 0
        for k in range(n):
            m = k + 1 if k + 1 < n else 0
            p = (
                mx * (polygon[k, 0] - one[i, u])
                + my * (polygon[k, 1] - one[i, u + 1])
                + mz * (polygon[k, 2] - one[i, u + 2])
            )
            q = (
                mx * (polygon[m, 0] - one[i, u])
                + my * (polygon[m, 1] - one[i, u + 1])
                + mz * (polygon[m, 2] - one[i, u + 2])
            )
            if p <= 0.0:
                for axis in range(3):
                    spare[kept, axis] = polygon[k, axis]
                kept += 1
            if (p <= 0.0) != (q <= 0.0):
                for axis in range(3):
                    spare[kept, axis] = polygon[k, axis] + (polygon[m, axis] - polygon[k, axis]) * (
                        p / (p - q)
                    )
                kept += 1
        n = kept
        for k in range(n):
            for axis in range(3):
                polygon[k, axis] = spare[k, axis]
    x = 0.0
    y = 0.0
    z = 0.0
    for k in range(n):
        x += polygon[k, 0]
        y += polygon[k, 1]
        z += polygon[k, 2]
    return x / n, y / n, z / n


@njit(cache=True, nogil=True, error_model="numpy")
def crossing_centre(one, i, other, j, side, other_side, t):
    """Give the centre of the line along which two triangles cross.

    Parameters
    ----------
    one, other : float64[:, >= 12]
        Rows of corners and normal.
    i, j : int
        The rows.
    side, other_side : int
    t : float
        See `classify`.
    """
    ux = one[i, 10] * other[j, 11] - one[i, 11] * other[j, 10]
    uy = one[i, 11] * other[j, 9] - one[i, 9] * other[j, 11]
    uz = one[i, 9] * other[j, 10] - one[i, 10] * other[j, 9]
    low = -np.inf
    high = np.inf
    for which in range(2):
        cut, m = (one, i) if which == 0 else (other, j)
        by, n = (other, j) if which == 0 else (one, i)
        out = other_side if which == 0 else side
        first = np.inf
        last = -np.inf
        for corner in range(3):
            k = 3 * corner
            h = 3 * ((corner + 1) % 3)
            d = behind(side_of(by, n, cut, m, k), out, NOISE * t)
            e = behind(side_of(by, n, cut, m, h), out, NOISE * t)
            if (d < 0.0) != (e < 0.0):
                s = d / (d - e)
                x = cut[m, k] + (cut[m, h] - cut[m, k]) * s
                y = cut[m, k + 1] + (cut[m, h + 1] - cut[m, k + 1]) * s
                z = cut[m, k + 2] + (cut[m, h + 2] - cut[m, k + 2]) * s
                along = ux * (x - one[i, 0]) + uy * (y - one[i, 1]) + uz * (z - one[i, 2])
                if along < first:
                    first = along
                    fx = x
                    fy = y
                    fz = z
                if along > last:
                    last = along
                    lx = x
                    ly = y
                    lz = z
        if first > low:
            low = first
            ax = fx
            ay = fy
            az = fz
        if last < high:
            high = last
            bx = lx
            by_ = ly
            bz = lz
    return 0.5 * (ax + bx), 0.5 * (ay + by_), 0.5 * (az + bz)


@njit(cache=True, nogil=True, error_model="numpy")
def side_of(plane, n, points, m, k):
    """Give the distance of a corner from the plane of a triangle."""
    return (
        plane[n, 9] * (points[m, k] - plane[n, 0])
        + plane[n, 10] * (points[m, k + 1] - plane[n, 1])
        + plane[n, 11] * (points[m, k + 2] - plane[n, 2])
    )


@njit(cache=True, nogil=True, error_model="numpy")
def point_below(one, i, other, j, side, other_side, t, polygon, spare):
    """Give a point that is in both bodies if these lie on the same side of coplanar faces.

    It lies t below the lower one of the faces, under the centre of their overlap; NaN, which is
    in no body, where the bodies lie on opposite sides.
    """
    cosine = one[i, 9] * other[j, 9] + one[i, 10] * other[j, 10] + one[i, 11] * other[j, 11]
    if cosine * side * other_side < 0.0:
        return np.nan, np.nan, np.nan
    x, y, z = coplanar_centre(one, i, other, j, polygon, spare)
    d = one[i, 9] * (x - one[i, 0]) + one[i, 10] * (y - one[i, 1]) + one[i, 11] * (z - one[i, 2])
    down = -side * (t + abs(d))
    return x + down * one[i, 9], y + down * one[i, 10], z + down * one[i, 11]


@njit(cache=True, nogil=True, error_model="numpy")
def point_behind(x, y, z, one, i, other, j, side, other_side, step):
    """Step from a point of the line in which two faces cross to a point behind both."""
    ux = -side * one[i, 9] - other_side * other[j, 9]
    uy = -side * one[i, 10] - other_side * other[j, 10]
    uz = -side * one[i, 11] - other_side * other[j, 11]
    size = np.sqrt(ux * ux + uy * uy + uz * uz)
    if size == 0.0:
        return x, y, z
    return x + step * ux / size, y + step * uy / size, z + step * uz / size
