"""The search for the penetration in boxes of the inside of an element."""

from typing import Any

import numpy as np

from spatialq.geometry.clusters import CLUSTER
from spatialq.geometry.solids import Solids
from spatialq.geometry.triangles import squared_distance_point_triangle
from spatialq.runtime.compile_cache import njit

from .cell_bounds import PATCH, bound_in_cell, distance_from, forget
from .cells import ROWS, SLIGHT, STACK, accurate, centre_of
from .contraction import contract
from .point_in_solid import gap, unit_normal


@njit(cache=True, nogil=True, error_model="numpy")
def over_inside(
    e: int, o: int, own: Any, reach: float, upper: float, left: int, solids: Solids, work: Any
) -> Any:
    """Search the largest distance from the surface of e over its maxima inside both elements.

    Parameters, returns
        See `over_surface`.
    """
    forget(work)
    frame = work[STACK : STACK + 2]
    corners = work[STACK + 22 : STACK + 30]
    box = work[STACK + 16]
    count = 1
    for axis in range(3):
        work[0, axis] = box[axis]
        work[0, 3 + axis] = box[3 + axis]
        if not box[3 + axis] > box[axis]:
            return reach, upper, left
    while count > 0:
        count -= 1
        left -= 1
        if not contract(e, count, solids, work) or not contract(o, count, solids, work):
            continue
        for corner in range(8):
            u = work[count, 0 if corner & 1 == 0 else 3]
            v = work[count, 1 if corner & 2 == 0 else 4]
            w = work[count, 2 if corner & 4 == 0 else 5]
            for c in range(3):
                corners[corner, c] = u * frame[0, c] + v * frame[0, 3 + c] + w * frame[0, 6 + c]
        reach, bound = bound_in_cell(corners, e, o, own, reach, solids, work)
        if bound <= accurate(reach) or has_no_maximum(e, bound, solids, work):
            continue
        if left <= 0 or count + 2 > STACK:
            upper = bound if bound > upper else upper
            continue
        axis = axis_to_divide(count, work)
        middle = 0.5 * (work[count, axis] + work[count, 3 + axis])
        for k in range(6):
            work[count + 1, k] = work[count, k]
        work[count, 3 + axis] = middle
        work[count + 1, axis] = middle
        count += 2
    return reach, upper, left


@njit(cache=True, nogil=True, error_model="numpy")
def axis_to_divide(at: int, work: Any) -> int:
    """Choose the axis along which the distances from faces differ most at the ends of a box.

    Along an edge or a beam they hardly do. `SLIGHT` of the size counts as a difference, so that a
    box that reaches far out of one of the elements is divided, too.
    """
    rows = work[STACK + 30 : STACK + 30 + ROWS]
    most = -1.0
    axis = 0
    for k in range(3):
        differs = SLIGHT * (work[at, 3 + k] - work[at, k])
        for r in range(int(work[STACK + 37, 8])):
            for corner in range(8):
                if corner & (1 << k) == 0:
                    d = abs(rows[r, corner | (1 << k)] - rows[r, corner])
                    differs = d if d > differs else differs
        if differs > most:
            most = differs
            axis = k
    return axis


@njit(cache=True, nogil=True, error_model="numpy")
def has_no_maximum(e: int, bound: float, solids: Solids, work: Any) -> Any:
    """Tell whether the distance from the surface of e has surely no maximum in a box.

    At a maximum the normals of the nearest faces, into e, have no direction in common.

    Parameters
    ----------
    e : int
    bound : float
        Of the distance in the box.
    solids, work
        See `bound_in_cell`.
    """
    corners = work[STACK + 22 : STACK + 30]
    rows = work[STACK + 30 : STACK + 30 + ROWS]
    normals = work[STACK + 42 : STACK + 42 + 11]  # 33 places
    highs = work[STACK + 53]
    vertices = solids.vertices
    faces = solids.faces
    clusters = solids.clusters
    px, py, pz, radius = centre_of(corners)
    d, _ = distance_from(px, py, pz, e, solids, work)
    far = d + 2.0 * radius
    if bound + radius < far:
        far = bound + radius
    far = far * (1.0 + 1e-9)
    v0 = solids.vertex_starts[e]
    first = solids.cluster_starts[e]
    count = 0
    for c in range(first, solids.cluster_starts[e + 1]):
        dx = gap(px, clusters[c, 0], clusters[c, 3])
        dy = gap(py, clusters[c, 1], clusters[c, 4])
        dz = gap(pz, clusters[c, 2], clusters[c, 5])
        if dx * dx + dy * dy + dz * dz > far * far:
            continue
        begin = solids.face_starts[e] + (c - first) * CLUSTER
        for f in range(begin, min(begin + CLUSTER, solids.face_starts[e + 1])):
            i = v0 + faces[f, 0]
            j = v0 + faces[f, 1]
            k = v0 + faces[f, 2]
            d2, _, _, _ = squared_distance_point_triangle(
                px, py, pz,
                vertices[i, 0], vertices[i, 1], vertices[i, 2],
                vertices[j, 0], vertices[j, 1], vertices[j, 2],
                vertices[k, 0], vertices[k, 1], vertices[k, 2],
            )  # fmt: skip
            if d2 > far * far:
                continue
            nx, ny, nz = unit_normal(i, j, k, vertices)
            nx *= -solids.side[e]
            ny *= -solids.side[e]
            nz *= -solids.side[e]
            lowest = np.inf
            for corner in range(8):
                highs[corner] = (
                    nx * (corners[corner, 0] - vertices[i, 0])
                    + ny * (corners[corner, 1] - vertices[i, 1])
                    + nz * (corners[corner, 2] - vertices[i, 2])
                )
                lowest = highs[corner] if highs[corner] < lowest else lowest
            # others are nearer everywhere, by more than rounding: its own row does not count
            nearer = False
            for r in range(int(work[STACK + 37, 8]) + 1):
                row = rows[r] if r < int(work[STACK + 37, 8]) else work[STACK + 37]
                beyond = True
                for corner in range(8):
                    if highs[corner] <= row[corner] + 1e-7 * (1.0 + radius):
                        beyond = False
                nearer = nearer or beyond
            if nearer:
                continue
            # it may face away from the box: where bodies overlap, both sides of it are inside
            if lowest < -1e-9 * (1.0 + radius):
                return False
            known = nx == 0.0 and ny == 0.0 and nz == 0.0
            for s in range(count):
                if (
                    normals[s // 3, s % 3 * 3] * nx
                    + normals[s // 3, s % 3 * 3 + 1] * ny
                    + normals[s // 3, s % 3 * 3 + 2] * nz
                ) > 1.0 - 1e-14:
                    known = True
            if known:
                continue
            if count == PATCH:
                return False
            normals[count // 3, count % 3 * 3] = nx
            normals[count // 3, count % 3 * 3 + 1] = ny
            normals[count // 3, count % 3 * 3 + 2] = nz
            count += 1
    # a direction that all of them have in common, by the perceptron's rule
    ux = 0.0
    uy = 0.0
    uz = 0.0
    for _ in range(2 * PATCH):
        least = np.inf
        at = 0
        for s in range(count):
            along = (
                normals[s // 3, s % 3 * 3] * ux
                + normals[s // 3, s % 3 * 3 + 1] * uy
                + normals[s // 3, s % 3 * 3 + 2] * uz
            )
            if along < least:
                least = along
                at = s
        if least > 1e-3:
            return True
        ux += normals[at // 3, at % 3 * 3]
        uy += normals[at // 3, at % 3 * 3 + 1]
        uz += normals[at // 3, at % 3 * 3 + 2]
    return False
