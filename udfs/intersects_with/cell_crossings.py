"""Where the surface of an element passes through a triangle, and how that is divided."""

from typing import Any

import numpy as np

from spatialq.geometry.clusters import CLUSTER
from spatialq.geometry.solids import Solids
from spatialq.runtime.compile_cache import njit

from .cells import STACK, centre_of
from .point_in_solid import gap, unit_normal


@njit(cache=True, nogil=True, error_model="numpy")
def longest_crossing(e: int, solids: Solids, work: Any) -> int:
    """Find the face of e along which a triangle is best divided.

    Parameters
    ----------
    e, solids, work
        See `bound_in_cell`.

    Returns
    -------
    int
        That which passes through the triangle along most of its size. -1 if no face passes
        through it, or ends in it: all of its inside is inside of e, or outside, or on its surface.
        -2 if those that do are small.
    """
    corners = work[STACK + 22 : STACK + 25]
    vertices = solids.vertices
    faces = solids.faces
    clusters = solids.clusters
    ux = corners[1, 0] - corners[0, 0]
    uy = corners[1, 1] - corners[0, 1]
    uz = corners[1, 2] - corners[0, 2]
    vx = corners[2, 0] - corners[0, 0]
    vy = corners[2, 1] - corners[0, 1]
    vz = corners[2, 2] - corners[0, 2]
    mx = uy * vz - uz * vy
    my = uz * vx - ux * vz
    mz = ux * vy - uy * vx
    size = np.sqrt(mx * mx + my * my + mz * mz)
    if size == 0.0:
        return -1
    mx /= size
    my /= size
    mz /= size
    px, py, pz, radius = centre_of(corners)
    slack = 1e-9 * (1.0 + radius)
    most = 0.0
    found = -1
    v0 = solids.vertex_starts[e]
    first = solids.cluster_starts[e]
    for c in range(first, solids.cluster_starts[e + 1]):
        if (
            gap(px, clusters[c, 0], clusters[c, 3]) > radius
            or gap(py, clusters[c, 1], clusters[c, 4]) > radius
            or gap(pz, clusters[c, 2], clusters[c, 5]) > radius
        ):
            continue
        begin = solids.face_starts[e] + (c - first) * CLUSTER
        for f in range(begin, min(begin + CLUSTER, solids.face_starts[e + 1])):
            i = v0 + faces[f, 0]
            nx, ny, nz = unit_normal(i, v0 + faces[f, 1], v0 + faces[f, 2], vertices)
            # along the line of both planes
            ux = my * nz - mz * ny
            uy = mz * nx - mx * nz
            uz = mx * ny - my * nx
            size = np.sqrt(ux * ux + uy * uy + uz * uz)
            if size < 1e-9:
                continue
            ux /= size
            uy /= size
            uz /= size
            begins = np.inf
            ends = -np.inf
            low = np.inf
            high = -np.inf
            for k in range(3):
                j = v0 + faces[f, k]
                x = vertices[j, 0] - px
                y = vertices[j, 1] - py
                z = vertices[j, 2] - pz
                d = mx * x + my * y + mz * z
                along = ux * x + uy * y + uz * z
                low = d if d < low else low
                high = d if d > high else high
                if abs(d) <= slack:
                    begins = along if along < begins else begins
                    ends = along if along > ends else ends
                j = v0 + faces[f, k + 1 if k < 2 else 0]
                x = vertices[j, 0] - px
                y = vertices[j, 1] - py
                z = vertices[j, 2] - pz
                there = mx * x + my * y + mz * z
                if (d < 0.0) != (there < 0.0):
                    along += d / (d - there) * (ux * x + uy * y + uz * z - along)
                    begins = along if along < begins else begins
                    ends = along if along > ends else ends
            if low > slack or high < -slack:
                continue
            low = np.inf
            high = -np.inf
            starts = np.inf
            stops = -np.inf
            for k in range(3):
                x = corners[k, 0] - vertices[i, 0]
                y = corners[k, 1] - vertices[i, 1]
                z = corners[k, 2] - vertices[i, 2]
                d = nx * x + ny * y + nz * z
                x = corners[k, 0] - px
                y = corners[k, 1] - py
                z = corners[k, 2] - pz
                along = ux * x + uy * y + uz * z
                low = d if d < low else low
                high = d if d > high else high
                j = k + 1 if k < 2 else 0
                there = (
                    nx * (corners[j, 0] - vertices[i, 0])
                    + ny * (corners[j, 1] - vertices[i, 1])
                    + nz * (corners[j, 2] - vertices[i, 2])
                )
                if (d < 0.0) != (there < 0.0):
                    x = corners[j, 0] - px
                    y = corners[j, 1] - py
                    z = corners[j, 2] - pz
                    along += d / (d - there) * (ux * x + uy * y + uz * z - along)
                    starts = along if along < starts else starts
                    stops = along if along > stops else stops
            if low >= -slack or high <= slack:
                continue
            length = (ends if ends < stops else stops) - (begins if begins > starts else starts)
            if length <= slack:
                continue
            if length > most and length > 0.5 * (stops - starts):
                most = length
                found = f
            elif found == -1:
                found = -2
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def cut_triangle(f: int, e: int, corners: Any, solids: Solids, work: Any, count: int) -> int:
    """Put the parts of a triangle on both sides of a face of e on the stack."""
    vertices = solids.vertices
    v0 = solids.vertex_starts[e]
    i = v0 + solids.faces[f, 0]
    nx, ny, nz = unit_normal(i, v0 + solids.faces[f, 1], v0 + solids.faces[f, 2], vertices)
    at = 0
    for k in range(3):
        j = (k + 1) % 3
        other = (k + 2) % 3
        d = side_of(corners, k, nx, ny, nz, i, vertices)
        if (d < 0.0) != (side_of(corners, j, nx, ny, nz, i, vertices) < 0.0) and (d < 0.0) != (
            side_of(corners, other, nx, ny, nz, i, vertices) < 0.0
        ):
            at = k
    j = (at + 1) % 3
    k = (at + 2) % 3
    d = side_of(corners, at, nx, ny, nz, i, vertices)
    one = side_of(corners, j, nx, ny, nz, i, vertices)
    two = side_of(corners, k, nx, ny, nz, i, vertices)
    one = d / (d - one)
    two = d / (d - two)
    for c in range(3):
        x = corners[at, c]
        y = x + one * (corners[j, c] - x)
        z = x + two * (corners[k, c] - x)
        work[count, c] = x
        work[count, 3 + c] = y
        work[count, 6 + c] = z
        work[count + 1, c] = y
        work[count + 1, 3 + c] = corners[j, c]
        work[count + 1, 6 + c] = corners[k, c]
        work[count + 2, c] = y
        work[count + 2, 3 + c] = corners[k, c]
        work[count + 2, 6 + c] = z
    return count + 3


@njit(cache=True, nogil=True, error_model="numpy")
def side_of(corners: Any, c: int, nx: float, ny: float, nz: float, i: int, vertices: Any) -> float:
    """Give the distance of a corner from the plane of a face."""
    return float(
        nx * (corners[c, 0] - vertices[i, 0])
        + ny * (corners[c, 1] - vertices[i, 1])
        + nz * (corners[c, 2] - vertices[i, 2])
    )


@njit(cache=True, nogil=True, error_model="numpy")
def divide_triangle(corners: Any, work: Any, count: int) -> int:
    """Put the halves of a triangle on the stack; its longest edge is divided."""
    longest = -1.0
    at = 0
    for k in range(3):
        j = k + 1 if k < 2 else 0
        x = corners[j, 0] - corners[k, 0]
        y = corners[j, 1] - corners[k, 1]
        z = corners[j, 2] - corners[k, 2]
        size = x * x + y * y + z * z
        if size > longest:
            longest = size
            at = k
    i = at
    j = (at + 1) % 3
    k = (at + 2) % 3
    for c in range(3):
        middle = 0.5 * (corners[i, c] + corners[j, c])
        work[count, c] = corners[i, c]
        work[count, 3 + c] = middle
        work[count, 6 + c] = corners[k, c]
        work[count + 1, c] = middle
        work[count + 1, 3 + c] = corners[j, c]
        work[count + 1, 6 + c] = corners[k, c]
    return count + 2
