"""The smallest box around a convex body, in whatever direction it lies."""

from typing import Any

import numpy as np

from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit

SAME = 1e-9
"""Of directions, by their sine, and of volumes, by their ratio: less is rounding."""
MAX_FACES = 256
"""Faces that are tried, the largest ones: the rest of a body that has more is round."""


@njit(cache=True, nogil=True, error_model="numpy")
def extents(vertices: Floats, faces: Ints) -> Any:
    """Give the sides of the smallest box that has a face in the plane of one of the body's faces.

    For boxes, prisms and cylinders this is the smallest one of all. Of boxes as small, the first
    one counts, in the order of the faces.

    Parameters
    ----------
    vertices : float64[n, 3]
    faces : int64[m, 3]
        Triangles of a closed and convex body.

    Returns
    -------
    length, width, height : float
        The longest first. Zero without a face that has an area.

    Notes
    -----
    Seen along the normal of a face, a side of the smallest rectangle around the outline lies along
    an edge of the outline. That is an edge of a face in front and of one behind.
    """
    normals, areas = normals_of(vertices, faces)
    largest = np.argsort(-areas, kind="mergesort")[:MAX_FACES]
    tails, heads, ones, others = edges_of(faces)
    flat = np.empty((len(vertices), 2))  # where they are in the plane
    best = np.inf
    sides = np.zeros(3)
    for i in range(len(largest)):
        n = normals[largest[i]]
        if areas[largest[i]] == 0.0 or is_known(n, normals[largest[:i]]):
            continue
        # two directions in the plane
        p = np.array([0.0, n[2], -n[1]]) if abs(n[0]) < 0.6 else np.array([-n[2], 0.0, n[0]])
        p /= np.sqrt((p * p).sum())
        q = cross(n, p)
        low, high = np.inf, -np.inf
        for k in range(len(vertices)):
            along = (n * vertices[k]).sum()
            low, high = min(low, along), max(high, along)
            flat[k, 0], flat[k, 1] = (p * vertices[k]).sum(), (q * vertices[k]).sum()
        for e in range(len(tails)):
            if (n * normals[ones[e]]).sum() * (n * normals[others[e]]).sum() > SAME:
                continue  # both in front, or both behind
            ux, uy = flat[heads[e]] - flat[tails[e]]
            size = np.sqrt(ux * ux + uy * uy)
            if size <= SAME * (high - low):
                continue  # along the normal
            ux, uy = ux / size, uy / size
            low_u, high_u, low_v, high_v = np.inf, -np.inf, np.inf, -np.inf
            for k in range(len(vertices)):
                u = ux * flat[k, 0] + uy * flat[k, 1]
                v = ux * flat[k, 1] - uy * flat[k, 0]
                low_u, high_u = min(low_u, u), max(high_u, u)
                low_v, high_v = min(low_v, v), max(high_v, v)
            volume = (high - low) * (high_u - low_u) * (high_v - low_v)
            if volume < best * (1.0 - SAME):
                best = volume
                sides[0], sides[1], sides[2] = high - low, high_u - low_u, high_v - low_v
    sides.sort()
    return sides[2], sides[1], sides[0]


@njit(cache=True, nogil=True, error_model="numpy")
def cross(u: Any, v: Any) -> Any:
    """Give the product of two vectors that is normal to both."""
    return np.array([
        u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]
    ])  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def normals_of(vertices: Any, faces: Any) -> Any:
    """Give the unit normals of triangles, float64[m, 3], and twice their areas, float64[m].

    The normal is zero where the area is.
    """
    normals, areas = np.zeros((len(faces), 3)), np.zeros(len(faces))
    for f in range(len(faces)):
        a = vertices[faces[f, 0]]
        n = cross(vertices[faces[f, 1]] - a, vertices[faces[f, 2]] - a)
        areas[f] = np.sqrt((n * n).sum())
        if areas[f] > 0.0:
            normals[f] = n / areas[f]
    return normals, areas


@njit(cache=True, nogil=True, error_model="numpy")
def is_known(n: Any, normals: Any) -> Any:
    """Tell whether a direction, or the opposite one, is among others."""
    for k in range(len(normals)):
        c = cross(n, normals[k])
        if (c * c).sum() <= SAME * SAME:
            return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def edges_of(faces: Any) -> Any:
    """List the edges of a closed body, and the two faces of each.

    Returns
    -------
    tails, heads, ones, others : int64[k]
        Corners, and faces.
    """
    m = len(faces)
    tails, heads = faces.ravel(), np.empty(3 * m, np.int64)
    for f in range(m):
        for k in range(3):
            heads[3 * f + k] = faces[f, (k + 1) % 3]
    n = faces.max() + 1 if m else 1
    keys = tails * n + heads
    order = np.argsort(keys)
    ranked = keys[order]
    first = np.flatnonzero(tails < heads)
    backs = order[np.searchsorted(ranked, heads[first] * n + tails[first])]
    return tails[first], heads[first], first // 3, backs // 3
