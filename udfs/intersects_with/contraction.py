"""What of a box is inside an element: boxes of a search shrink before they are divided."""

from typing import Any

import numpy as np

from spatialq.geometry.clusters import CLUSTER
from spatialq.geometry.solids import Solids
from spatialq.runtime.arrays import Floats
from spatialq.runtime.compile_cache import njit

from .cells import STACK
from .point_in_solid import is_inside, unit_normal

FLAT = 1e-6
"""Metres by which faces may differ from one plane."""

SHORT = 1e-5
"""Metres: what is shorter has no direction in spite of rounding."""

NONE, SEVERAL = -1, -2
"""No face passes through a box; faces of several planes do."""


@njit(cache=True, nogil=True, error_model="numpy")
def contract(e: int, at: int, solids: Solids, work: Any) -> bool:
    """Make a box smaller where a part of it is outside of an element.

    Where one plane has all the faces that pass through the box, either side of the plane is wholly
    inside of e or outside.

    Parameters
    ----------
    e : int
    at : int
        The box: `work[at]` has its low and high ends along the axes `work[STACK]`.
    solids, work
        See `penetration`.

    Returns
    -------
    bool
        Whether something of the box may be inside.
    """
    frame = work[STACK]
    middle = work[STACK + 20]
    half = work[STACK + 21]
    for k in range(3):
        middle[k] = 0.5 * (work[at, k] + work[at, 3 + k])
        half[k] = 0.5 * (work[at, 3 + k] - work[at, k])
    px = middle[0] * frame[0] + middle[1] * frame[3] + middle[2] * frame[6]
    py = middle[0] * frame[1] + middle[1] * frame[4] + middle[2] * frame[7]
    pz = middle[0] * frame[2] + middle[1] * frame[5] + middle[2] * frame[8]
    f, away = face_through(px, py, pz, half, e, solids, frame)
    if f == NONE:
        return bool(is_inside(px, py, pz, e, solids))
    if f == SEVERAL:
        return True
    v0 = solids.vertex_starts[e]
    i = v0 + solids.faces[f, 0]
    nx, ny, nz = unit_normal(i, v0 + solids.faces[f, 1], v0 + solids.faces[f, 2], solids.vertices)
    height = (
        nx * (px - solids.vertices[i, 0])
        + ny * (py - solids.vertices[i, 1])
        + nz * (pz - solids.vertices[i, 2])
    )
    slope = work[STACK + 19]
    reach = 0.0
    for k in range(3):
        slope[k] = nx * frame[3 * k] + ny * frame[3 * k + 1] + nz * frame[3 * k + 2]
        reach += abs(slope[k]) * half[k]
    for side in (1.0, -1.0):
        beyond = side * height + reach - away
        if beyond <= away:
            continue
        # half way from the plane to the corner that is farthest from it
        share = side * (1.0 - 0.5 * beyond / reach)
        for k in range(3):
            step = share * half[k] if slope[k] >= 0.0 else -share * half[k]
            slope[3 + k] = middle[k] + step
        qx = slope[3] * frame[0] + slope[4] * frame[3] + slope[5] * frame[6]
        qy = slope[3] * frame[1] + slope[4] * frame[4] + slope[5] * frame[7]
        qz = slope[3] * frame[2] + slope[4] * frame[5] + slope[5] * frame[8]
        if is_inside(qx, qy, qz, e, solids):
            continue
        for k in range(3):
            steep = side * slope[k]
            room = away - side * height + reach - abs(steep) * half[k]
            if steep > 1e-6:
                end = middle[k] + room / steep
                work[at, 3 + k] = end if end < work[at, 3 + k] else work[at, 3 + k]
            elif steep < -1e-6:
                end = middle[k] + room / steep
                work[at, k] = end if end > work[at, k] else work[at, k]
            if work[at, 3 + k] < work[at, k]:
                return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def face_through(
    px: float, py: float, pz: float, half: Floats, e: int, solids: Solids, frame: Floats
) -> Any:
    """Find a face of e whose plane has all the faces that pass through the inside of a box.

    Parameters
    ----------
    px, py, pz : float
        The centre of the box.
    half : float64[>=3]
        Half its sizes along the axes of the frame.
    e, solids
        See `contract`.
    frame : float64[9]

    Returns
    -------
    face : int
        `NONE` only if surely no face does: what merely touches a side does not pass through.
    away : float
        How far the faces, and what rounding does, are from the plane of that face, at most.
    """
    faces = solids.faces
    vertices = solids.vertices
    clusters = solids.clusters
    hx = half[0] * abs(frame[0]) + half[1] * abs(frame[3]) + half[2] * abs(frame[6])
    hy = half[0] * abs(frame[1]) + half[1] * abs(frame[4]) + half[2] * abs(frame[7])
    hz = half[0] * abs(frame[2]) + half[1] * abs(frame[5]) + half[2] * abs(frame[8])
    slack = 1e-9 + 1e-14 * (abs(px) + abs(py) + abs(pz))
    found = NONE
    away = slack
    first_high = 0.0
    mu = 0.0
    mv = 0.0
    mw = 0.0
    v0 = solids.vertex_starts[e]
    first = solids.cluster_starts[e]
    for c in range(first, solids.cluster_starts[e + 1]):
        if (
            clusters[c, 0] - px > hx
            or px - clusters[c, 3] > hx
            or clusters[c, 1] - py > hy
            or py - clusters[c, 4] > hy
            or clusters[c, 2] - pz > hz
            or pz - clusters[c, 5] > hz
        ):
            continue
        begin = solids.face_starts[e] + (c - first) * CLUSTER
        for f in range(begin, min(begin + CLUSTER, solids.face_starts[e + 1])):
            i = v0 + faces[f, 0]
            j = v0 + faces[f, 1]
            k = v0 + faces[f, 2]
            u1, v1, w1 = in_frame(i, px, py, pz, vertices, frame)
            u2, v2, w2 = in_frame(j, px, py, pz, vertices, frame)
            u3, v3, w3 = in_frame(k, px, py, pz, vertices, frame)
            if (
                beyond(u1, u2, u3, half[0] - slack)
                or beyond(v1, v2, v3, half[1] - slack)
                or beyond(w1, w2, w3, half[2] - slack)
            ):
                continue
            nx, ny, nz = unit_normal(i, j, k, vertices)
            nu = frame[0] * nx + frame[1] * ny + frame[2] * nz
            nv = frame[3] * nx + frame[4] * ny + frame[5] * nz
            nw = frame[6] * nx + frame[7] * ny + frame[8] * nz
            high = nu * u1 + nv * v1 + nw * w1
            size = half[0] * abs(nu) + half[1] * abs(nv) + half[2] * abs(nw)
            if (
                abs(high) >= size - slack
                or edge_apart(u1, v1, w1, u2, v2, w2, u3, v3, w3, half, slack)
                or edge_apart(u2, v2, w2, u3, v3, w3, u1, v1, w1, half, slack)
                or edge_apart(u3, v3, w3, u1, v1, w1, u2, v2, w2, half, slack)
            ):
                continue
            if found == NONE:
                found = f
                first_high = high
                mu = nu
                mv = nv
                mw = nw
                continue
            one = abs(mu * u1 + mv * v1 + mw * w1 - first_high)
            two = abs(mu * u2 + mv * v2 + mw * w2 - first_high)
            three = abs(mu * u3 + mv * v3 + mw * w3 - first_high)
            far = max(one, two, three)
            if far > FLAT:
                return SEVERAL, away
            away = far + slack if far + slack > away else away
    return found, away


@njit(cache=True, nogil=True, error_model="numpy")
def in_frame(v: int, px: float, py: float, pz: float, vertices: Any, frame: Any) -> Any:
    """Give a vertex along the axes of a frame, from p."""
    x = vertices[v, 0] - px
    y = vertices[v, 1] - py
    z = vertices[v, 2] - pz
    return (
        frame[0] * x + frame[1] * y + frame[2] * z,
        frame[3] * x + frame[4] * y + frame[5] * z,
        frame[6] * x + frame[7] * y + frame[8] * z,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def beyond(one: float, two: float, three: float, limit: float) -> Any:
    """Tell whether three numbers are all beyond the same end of the interval from -limit to it."""
    return (one >= limit and two >= limit and three >= limit) or (
        one <= -limit and two <= -limit and three <= -limit
    )


@njit(cache=True, nogil=True, error_model="numpy")
def edge_apart(
    pu: float, pv: float, pw: float, qu: float, qv: float, qw: float, ru: float, rv: float,
    rw: float, half: Any, slack: float,
) -> Any:  # fmt: skip
    """Tell whether a plane along the edge from p to q and along a side separates box and face."""
    du = qu - pu
    dv = qv - pv
    dw = qw - pw
    return (
        line_apart(pv, pw, rv, rw, dv, dw, half[1], half[2], slack)
        or line_apart(pw, pu, rw, ru, dw, du, half[2], half[0], slack)
        or line_apart(pu, pv, ru, rv, du, dv, half[0], half[1], slack)
    )


@njit(cache=True, nogil=True, error_model="numpy")
def line_apart(
    px: float, py: float, rx: float, ry: float, dx: float, dy: float, hx: float, hy: float,
    slack: float,
) -> Any:  # fmt: skip
    """Tell whether lines along d separate a rectangle of half sizes h from p and r."""
    length = np.sqrt(dx * dx + dy * dy)
    if length < SHORT:
        return False
    at = dx * py - dy * px
    other = dx * ry - dy * rx
    limit = abs(dx) * hy + abs(dy) * hx - slack * length
    return (at >= limit and other >= limit) or (at <= -limit and other <= -limit)
