"""Points that decide: inside or outside of a body, how far from its surface, how deep in both."""

from typing import Any

import numpy as np
from numba import njit

from ..distance.triangles import squared_distance_point_triangle
from .winding import open_winding, winding

CLUSTER = 8
"""So many faces, one after the other, share a box."""

TRIES = 48
"""Steps of the search for the deepest point, at most."""


@njit(cache=True, nogil=True, error_model="numpy")
def is_inside(
    px, py, pz, e, vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters
):
    """Tell whether a point is inside an element; an open one is closed in thought."""
    v0 = vertex_starts[e]
    f0 = face_starts[e]
    f1 = face_starts[e + 1]
    if side[e] == 0:
        return abs(open_winding(px, py, pz, vertices, faces, v0, f0, f1)) > 0.5
    turns = 0
    for c in range(cluster_starts[e], cluster_starts[e + 1]):
        if (  # the ray upwards passes the box
            clusters[c, 0] <= px <= clusters[c, 3]
            and clusters[c, 1] <= py <= clusters[c, 4]
            and pz <= clusters[c, 5]
        ):
            begin = f0 + (c - cluster_starts[e]) * CLUSTER
            end = min(begin + CLUSTER, f1)
            turns += winding(px, py, pz, vertices, faces, v0, begin, end)
    return side[e] * turns > 0


@njit(cache=True, nogil=True, error_model="numpy")
def nearest(
    px, py, pz, bound, e,
    vertices, faces, vertex_starts, face_starts, cluster_starts, clusters,
):  # fmt: skip
    """Find the point of an element's surface that is nearest to p.

    Parameters
    ----------
    bound : float
        Square of the distance from which on nothing is looked for.

    Returns
    -------
    d2 : float
        Squared distance; `bound` where nothing is nearer.
    qx, qy, qz : float
        The point; of several that of the first face.
    """
    v0 = vertex_starts[e]
    best = bound
    qx = px
    qy = py
    qz = pz
    for c in range(cluster_starts[e], cluster_starts[e + 1]):
        dx = gap(px, clusters[c, 0], clusters[c, 3])
        dy = gap(py, clusters[c, 1], clusters[c, 4])
        dz = gap(pz, clusters[c, 2], clusters[c, 5])
        if (dx * dx + dy * dy + dz * dz) * (1.0 - 1e-12) >= best:
            continue
        begin = face_starts[e] + (c - cluster_starts[e]) * CLUSTER
        for f in range(begin, min(begin + CLUSTER, face_starts[e + 1])):
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
                qx = x
                qy = y
                qz = z
    return best, qx, qy, qz


@njit(cache=True, nogil=True, error_model="numpy")
def gap(x, low, high):
    """Give the distance of x from an interval."""
    if x < low:
        return low - x
    return x - high if x > high else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def sides(
    b, a, box, t, whole, state,
    vertices, faces, vertex_starts, face_starts, side, label, cluster_starts, clusters,
):  # fmt: skip
    """Tell where the surface of b is, seen from a: points farther than t from a's surface count.

    Parameters
    ----------
    b, a : int
    box : float64[6]
        Of a.
    t : float
    whole : bool
        Each connected part of b lies on one side as a whole, so that one point of it will do.
    state : int8[]
        Scratch, as long as any element has vertices.

    Returns
    -------
    inside, outside : bool
        Whether there is a part, or a point, inside and outside.
    x, y, z : float
        The first point inside.
    """
    v0 = vertex_starts[b]
    n = vertex_starts[b + 1] - v0
    f0 = face_starts[b]
    inside = False
    outside = False
    x = np.nan
    y = np.nan
    z = np.nan
    for v in range(n):
        state[v] = 0
    for v in range(n):
        r = label[v0 + v]
        if r >= 0 and not (whole and state[r] != 0):
            px = vertices[v0 + v, 0]
            py = vertices[v0 + v, 1]
            pz = vertices[v0 + v, 2]
            if (
                px < box[0] - t
                or px > box[3] + t
                or py < box[1] - t
                or py > box[4] + t
                or pz < box[2] - t
                or pz > box[5] + t
            ):
                state[r] = 1
                outside = True
    # the corners, then the middles of the faces: a face may lie deep whose corners are all near
    for k in range(n + face_starts[b + 1] - f0):
        if inside and outside and not whole:
            break
        if k < n:
            r = label[v0 + k]
            if r < 0:
                continue
            px = vertices[v0 + k, 0]
            py = vertices[v0 + k, 1]
            pz = vertices[v0 + k, 2]
        else:
            f = f0 + k - n
            i = v0 + faces[f, 0]
            r = label[i]
            px = (vertices[i, 0] + vertices[v0 + faces[f, 1], 0] + vertices[v0 + faces[f, 2], 0]) / 3.0
            py = (vertices[i, 1] + vertices[v0 + faces[f, 1], 1] + vertices[v0 + faces[f, 2], 1]) / 3.0
            pz = (vertices[i, 2] + vertices[v0 + faces[f, 1], 2] + vertices[v0 + faces[f, 2], 2]) / 3.0
        if whole and state[r] != 0:
            continue
        if (
            px < box[0] - t
            or px > box[3] + t
            or py < box[1] - t
            or py > box[4] + t
            or pz < box[2] - t
            or pz > box[5] + t
        ):
            continue
        d2, _, _, _ = nearest(
            px, py, pz, t * t * (1.0 + 1e-9), a,
            vertices, faces, vertex_starts, face_starts, cluster_starts, clusters,
        )  # fmt: skip
        if d2 <= t * t:
            continue
        if is_inside(
            px, py, pz, a, vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters
        ):
            state[r] = 2
            if not inside:
                x = px
                y = py
                z = pz
            inside = True
        else:
            state[r] = 1
            outside = True
    return inside, outside, x, y, z


@njit(cache=True, nogil=True, error_model="numpy")
def depth_at(
    px, py, pz, a, b,
    vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters, toward,
):  # fmt: skip
    """Give the radius of the largest ball round p that lies in both bodies; negative if none.

    Parameters
    ----------
    toward : float64[6]
        Out: from the nearest point of a's surface to p, from that of b's to p.
    """
    if not is_inside(
            px, py, pz, a, vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters
        ):
        return -1.0
    if not is_inside(
        px, py, pz, b, vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters
    ):
        return -1.0
    da, qx, qy, qz = nearest(
        px, py, pz, np.inf, a,
        vertices, faces, vertex_starts, face_starts, cluster_starts, clusters,
    )  # fmt: skip
    toward[0] = px - qx
    toward[1] = py - qy
    toward[2] = pz - qz
    db, qx, qy, qz = nearest(
        px, py, pz, np.inf, b,
        vertices, faces, vertex_starts, face_starts, cluster_starts, clusters,
    )  # fmt: skip
    toward[3] = px - qx
    toward[4] = py - qy
    toward[5] = pz - qz
    return np.sqrt(da if da < db else db)


@njit(cache=True, nogil=True, error_model="numpy")
def climb(
    px, py, pz, step, enough, a, b,
    vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters,
):  # fmt: skip
    """Look for the largest ball in both bodies, from p uphill.

    Parameters
    ----------
    px, py, pz : float
    step : float, > 0
        Length of the first steps.
    enough : float
        A radius that will do.

    Returns
    -------
    radius : float
        Negative if p is not in both.
    x, y, z : float
        The middle of the ball.

    Notes
    -----
    A ball grows where its middle moves away from the surface that it touches: first from the
    nearer of the two, then from both, then along the axes. A step that gains less than a tenth
    of its length is halved instead.
    """
    toward = np.empty(6)
    there = np.empty(6)
    radius = depth_at(
        px, py, pz, a, b,
        vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters, toward,
    )  # fmt: skip
    if radius < 0.0:
        return radius, px, py, pz
    least = 0.02 * step
    tries = 0
    while tries < TRIES and radius < enough and step > least and step > 0.05 * radius:
        moved = False
        la = np.sqrt(toward[0] * toward[0] + toward[1] * toward[1] + toward[2] * toward[2])
        lb = np.sqrt(toward[3] * toward[3] + toward[4] * toward[4] + toward[5] * toward[5])
        for way in range(8):
            ux = 0.0
            uy = 0.0
            uz = 0.0
            if way < 2:
                if (way == 1 or la <= lb) and la > 0.0:
                    ux += toward[0] / la
                    uy += toward[1] / la
                    uz += toward[2] / la
                if (way == 1 or lb < la) and lb > 0.0:
                    ux += toward[3] / lb
                    uy += toward[4] / lb
                    uz += toward[5] / lb
                size = np.sqrt(ux * ux + uy * uy + uz * uz)
                if size < 0.1:
                    continue
                ux /= size
                uy /= size
                uz /= size
            else:
                sign = 1.0 if way % 2 == 0 else -1.0
                ux = sign if way < 4 else 0.0
                uy = sign if 4 <= way < 6 else 0.0
                uz = sign if way >= 6 else 0.0
            qx = px + step * ux
            qy = py + step * uy
            qz = pz + step * uz
            tries += 1
            found = depth_at(
                qx, qy, qz, a, b,
                vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters, there,
            )  # fmt: skip
            if found > radius + 0.1 * step:
                px = qx
                py = qy
                pz = qz
                radius = found
                for k in range(6):
                    toward[k] = there[k]
                moved = True
                break
        if not moved:
            step *= 0.5
    return radius, px, py, pz
