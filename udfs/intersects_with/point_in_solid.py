"""Points that decide: inside or outside of a body, how far from its surface, how deep in both."""

import numpy as np

from spatialq.geometry.clusters import CLUSTER
from spatialq.geometry.triangles import squared_distance_point_triangle
from spatialq.geometry.winding import open_winding, winding
from spatialq.runtime.compile_cache import njit

TRIES = 128
"""Steps of the search for the deepest point, at most."""

SURFACES = 8
"""So many surfaces, at most, a step leads away from."""


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
def in_both(
    px, py, pz, a, b,
    vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters,
):  # fmt: skip
    """Tell whether a point is inside two elements."""
    return is_inside(
        px, py, pz, a, vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters
    ) and is_inside(
        px, py, pz, b, vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters
    )


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
def parts_inside(
    b, a, box, t, state,
    vertices, faces, vertex_starts, face_starts, side, label, cluster_starts, clusters,
):  # fmt: skip
    """Tell where the connected parts of b are, none of which goes through the surface of a.

    A point of a part that is farther than t from a's surface tells for the whole.

    Parameters
    ----------
    b, a : int
    box : float64[6]
        Of a.
    t : float
    state : int8[]
        Scratch, as long as any element has vertices.

    Returns
    -------
    inside, outside : bool
        Whether there are parts inside and outside.
    x, y, z : float
        A point in the first part inside, a little below its surface.
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
        if (
            r >= 0
            and state[r] == 0
            and beyond(vertices[v0 + v, 0], vertices[v0 + v, 1], vertices[v0 + v, 2], box, t)
        ):
            state[r] = 1
            outside = True
    # the corners, then the middles of the faces: a face may lie deep whose corners are all near
    for k in range(n + face_starts[b + 1] - f0):
        if k < n:
            r = label[v0 + k]
            if r < 0 or state[r] != 0:
                continue
            px = vertices[v0 + k, 0]
            py = vertices[v0 + k, 1]
            pz = vertices[v0 + k, 2]
        else:
            r = label[v0 + faces[f0 + k - n, 0]]
            if state[r] != 0:
                continue
            px, py, pz, _, _, _ = middle(f0 + k - n, v0, vertices, faces)
        d2, _, _, _ = nearest(
            px, py, pz, t * t * (1.0 + 1e-9), a,
            vertices, faces, vertex_starts, face_starts, cluster_starts, clusters,
        )  # fmt: skip
        if d2 <= t * t:
            continue
        if not is_inside(
            px,
            py,
            pz,
            a,
            vertices,
            faces,
            vertex_starts,
            face_starts,
            side,
            cluster_starts,
            clusters,
        ):
            state[r] = 1
            outside = True
            continue
        state[r] = 2
        if not inside:
            f = f0
            while k < n and faces[f, 0] != k and faces[f, 1] != k and faces[f, 2] != k:
                f += 1
            px, py, pz, nx, ny, nz = middle(f if k < n else f0 + k - n, v0, vertices, faces)
            x = px - 0.25 * t * side[b] * nx
            y = py - 0.25 * t * side[b] * ny
            z = pz - 0.25 * t * side[b] * nz
        inside = True
    return inside, outside, x, y, z


@njit(cache=True, nogil=True, error_model="numpy")
def faces_inside(
    b, a, box, t,
    vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters,
):  # fmt: skip
    """Tell whether faces of b are inside and outside of a, farther than t from its surface.

    Looked at are the middle of each face and a point near each corner. A face inside counts only
    if b ends there: one between two bodies of b says nothing.

    Parameters
    ----------
    b, a, box, t
        See `parts_inside`.

    Returns
    -------
    inside, outside : bool
    """
    v0 = vertex_starts[b]
    inside = False
    outside = False
    for f in range(face_starts[b], face_starts[b + 1]):
        mx, my, mz, nx, ny, nz = middle(f, v0, vertices, faces)
        for corner in range(4):
            if inside and outside:
                return inside, outside
            px = mx
            py = my
            pz = mz
            if corner < 3:
                v = v0 + faces[f, corner]
                px = 0.9 * vertices[v, 0] + 0.1 * mx
                py = 0.9 * vertices[v, 1] + 0.1 * my
                pz = 0.9 * vertices[v, 2] + 0.1 * mz
            if beyond(px, py, pz, box, t):
                outside = True
                continue
            d2, _, _, _ = nearest(
                px, py, pz, t * t * (1.0 + 1e-9), a,
                vertices, faces, vertex_starts, face_starts, cluster_starts, clusters,
            )  # fmt: skip
            if d2 <= t * t:
                continue
            if not is_inside(
                px, py, pz, a,
                vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters,
            ):  # fmt: skip
                outside = True
            elif not inside:
                step = 0.5 * t * side[b]
                inside = not is_inside(
                    px + step * nx, py + step * ny, pz + step * nz, b,
                    vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters,
                )  # fmt: skip
    return inside, outside


@njit(cache=True, nogil=True, error_model="numpy")
def middle(f, v0, vertices, faces):
    """Give the middle of a face and its normal, of length 1."""
    i = v0 + faces[f, 0]
    j = v0 + faces[f, 1]
    k = v0 + faces[f, 2]
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
    return (
        (vertices[i, 0] + vertices[j, 0] + vertices[k, 0]) / 3.0,
        (vertices[i, 1] + vertices[j, 1] + vertices[k, 1]) / 3.0,
        (vertices[i, 2] + vertices[j, 2] + vertices[k, 2]) / 3.0,
        nx * unit,
        ny * unit,
        nz * unit,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def beyond(px, py, pz, box, t):
    """Tell whether a point is farther than t from a box, along one of the axes."""
    return (
        px < box[0] - t
        or px > box[3] + t
        or py < box[1] - t
        or py > box[4] + t
        or pz < box[2] - t
        or pz > box[5] + t
    )


@njit(cache=True, nogil=True, error_model="numpy")
def depth_at(
    px, py, pz, a, b,
    vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters, toward,
):  # fmt: skip
    """Give the radius of the largest ball round p that lies in both bodies; negative if none.

    Parameters
    ----------
    toward : float64[3]
        Out: from the nearest point of both surfaces to p, of length 1.
    """
    if not in_both(
        px, py, pz, a, b,
        vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters,
    ):  # fmt: skip
        return -1.0
    da, qx, qy, qz = nearest(
        px, py, pz, np.inf, a,
        vertices, faces, vertex_starts, face_starts, cluster_starts, clusters,
    )  # fmt: skip
    db, rx, ry, rz = nearest(
        px, py, pz, np.inf, b,
        vertices, faces, vertex_starts, face_starts, cluster_starts, clusters,
    )  # fmt: skip
    if db < da:
        qx = rx
        qy = ry
        qz = rz
    radius = np.sqrt(da if da < db else db)
    unit = 1.0 / radius if radius > 0.0 else 0.0
    toward[0] = (px - qx) * unit
    toward[1] = (py - qy) * unit
    toward[2] = (pz - qz) * unit
    return radius


@njit(cache=True, nogil=True, error_model="numpy")
def climb(
    px, py, pz, t, enough, a, b,
    vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters,
):  # fmt: skip
    """Look for the largest ball in both bodies, from p uphill.

    Parameters
    ----------
    px, py, pz : float
    t : float, > 0
        The tolerance: the least length of the first step.
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
    A ball grows where its middle moves away from the surface that it touches. If that brings it
    to another surface first, it moves away from both, and so on (a walk along the ridges of the
    distance); a direction that helped is kept. The first step is as long as the radius; after one
    that helped the next is twice, after others half as long, down to a twentieth of the radius.
    Where the common part is convex this leads to the largest ball.
    """
    toward = np.empty(3)
    there = np.empty(3)
    radius = depth_at(
        px, py, pz, a, b,
        vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters, toward,
    )  # fmt: skip
    if radius < 0.0:
        return radius, px, py, pz
    step = radius if radius > t else t
    tries = 0
    moved = False
    while tries < TRIES and radius < enough and step > 0.05 * radius:
        if not moved:  # else on in the same direction
            ux = toward[0]
            uy = toward[1]
            uz = toward[2]
        moved = False
        for _ in range(SURFACES):
            size = np.sqrt(ux * ux + uy * uy + uz * uz)
            if size < 0.002:
                break
            tries += 1
            qx = px + step * ux / size
            qy = py + step * uy / size
            qz = pz + step * uz / size
            found = depth_at(
                qx, qy, qz, a, b,
                vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters, there,
            )  # fmt: skip
            if found > radius + 0.002 * step:
                px = qx
                py = qy
                pz = qz
                radius = found
                for k in range(3):
                    toward[k] = there[k]
                moved = True
                break
            if found < 0.0:
                break
            # between both directions the one that leads away from both surfaces alike
            vx = ux - there[0]
            vy = uy - there[1]
            vz = uz - there[2]
            whole = vx * vx + vy * vy + vz * vz
            part = ux * vx + uy * vy + uz * vz
            share = part / whole if part < whole else 1.0
            if not share > 0.0:
                break
            ux -= share * vx
            uy -= share * vy
            uz -= share * vz
        step *= 2.0 if moved else 0.5
    return radius, px, py, pz
