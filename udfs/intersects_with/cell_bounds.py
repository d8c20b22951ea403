"""Bounds of the distance from a surface in a cell, by means of the distances of its corners."""

from typing import Any

import numpy as np

from spatialq.geometry.clusters import CLUSTER
from spatialq.geometry.solids import Solids
from spatialq.geometry.triangles import squared_distance_point_triangle
from spatialq.runtime.arrays import Floats
from spatialq.runtime.compile_cache import njit

from .cell_crossings import longest_crossing
from .cell_frames import distances_in_box
from .cells import ROWS, STACK, accurate, centre_of
from .point_in_solid import is_inside, nearest, unit_normal

PATCH = 32
"""Faces of a flat piece of a surface, or on the sides of a cell, at most."""

PULLED = 1e-4
"""Share of the way to its centre at which a corner of a cell is looked at."""

FLAT = 0.9999
"""Cosine between the normals of neighbours in a flat piece."""


@njit(cache=True, nogil=True, error_model="numpy")
def bound_in_cell(
    corners: Floats, e: int, o: int, own: Any, reach: float, solids: Solids, work: Any
) -> Any:
    """Bound the distance from the surface of e in the part of a cell that is inside e and o.

    Parameters
    ----------
    corners : float64[n, 9]
        Those of the cell, in `work`: 3 of a triangle on the surface of o, 8 of a box.
    e, o : int
    own
        See `surface_cells.over_surface`.
    reach : float
        The largest distance so far.
    solids, work
        See `penetration`.

    Returns
    -------
    reach : float
        Larger where a point was found that is farther.
    bound : float
        Negative where nothing of the cell is inside of both.
    """
    n = len(corners)
    is_box = n > 3
    rows = work[STACK + 30 : STACK + 30 + ROWS]
    mean = work[STACK + 37]
    mx, my, mz, radius = centre_of(corners)
    px = mx
    py = my
    pz = mz
    d, f = distance_from(px, py, pz, e, solids, work)
    inside = is_inside(px, py, pz, e, solids)
    if not inside and d > radius:
        return reach, -1.0
    if not inside and not is_box and longest_crossing(e, solids, work) == -1:
        return reach, 0.0 if d <= 1e-9 * (1.0 + radius) else -1.0
    if is_box:
        inside = inside and is_inside(px, py, pz, o, solids)
    if inside and d > reach:
        reach = d
    upper = d + radius
    most = distances_in_box(own, corners, n, rows[0])
    upper = most if most < upper else upper
    if upper <= accurate(reach):
        return reach, upper
    for k in range(n):
        mean[k] = rows[0, k]
    for m in range(1, ROWS):
        distances_from(f, px, py, pz, corners, n, rows[m], e, solids, work)
        at = lower_mean(rows, m + 1, mean, n)
        mean[8] = m + 1
        before = upper
        if mean[at] < upper:
            upper = mean[at]
        if upper <= accurate(reach) or (m > 1 and upper > 0.75 * before):
            break
        # at the corner itself several faces may be nearest
        px = corners[at, 0] + PULLED * (mx - corners[at, 0])
        py = corners[at, 1] + PULLED * (my - corners[at, 1])
        pz = corners[at, 2] + PULLED * (mz - corners[at, 2])
        d, f = distance_from(px, py, pz, e, solids, work)
        if (
            d > reach
            and is_inside(px, py, pz, e, solids)
            and (not is_box or is_inside(px, py, pz, o, solids))
        ):
            reach = d
        if mean[at] - d <= 0.1 * (accurate(reach) - reach):
            break
    return reach, upper


@njit(cache=True, nogil=True, error_model="numpy")
def distance_from(px: float, py: float, pz: float, e: int, solids: Solids, work: Any) -> Any:
    """Find the distance from the surface of e and the nearest face.

    Faces are looked at that are no farther than the last such point, of the same element, and the
    way from there allow. `forget` begins anew.
    """
    last = work[STACK + 18]
    x = px - last[0]
    y = py - last[1]
    z = pz - last[2]
    bound = (last[3] + np.sqrt(x * x + y * y + z * z)) * (1.0 + 1e-9) + 1e-9
    d2, _, _, _, f = nearest(px, py, pz, bound * bound, e, solids)
    last[0] = px
    last[1] = py
    last[2] = pz
    last[3] = np.sqrt(d2)
    return last[3], f


@njit(cache=True, nogil=True, error_model="numpy")
def forget(work: Any) -> None:
    """Have `distance_from` look at all faces, of another element."""
    last = work[STACK + 18]
    last[0] = 0.0
    last[1] = 0.0
    last[2] = 0.0
    last[3] = np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def lower_mean(rows: Floats, m: int, mean: Floats, n: int) -> int:
    """Find a mean of rows whose largest value is small.

    Parameters
    ----------
    rows : float64[:, 9]
    m : int
        How many rows; the last one is new.
    mean : float64[9]
        In: a mean of the rows before. Out: the mean that was found.
    n : int
        Values of a row.

    Returns
    -------
    int
        Where its largest value is.
    """
    at = 0
    for _ in range(3 if m > 2 else 1):
        for r in range(m - 1, -1, -1):
            # along the line from the mean to the row, whose largest value is convex
            share = 0.0
            at = 0
            for k in range(1, n):
                if mean[k] > mean[at] or (
                    mean[k] == mean[at] and rows[r, k] - mean[k] > rows[r, at] - mean[at]
                ):
                    at = k
            while rows[r, at] < mean[at] and share < 1.0:
                slope = rows[r, at] - mean[at]
                step = 1.0
                then = at
                for k in range(n):
                    steeper = rows[r, k] - mean[k] - slope
                    if steeper > 0.0:
                        there = (mean[at] - mean[k]) / steeper
                        if there < step or (
                            there == step and rows[r, k] - mean[k] > rows[r, then] - mean[then]
                        ):
                            step = there
                            then = k
                share = step if step > share else share
                if then == at:
                    break
                at = then
            for k in range(n):
                mean[k] += share * (rows[r, k] - mean[k])
    at = 0
    for k in range(1, n):
        if mean[k] > mean[at]:
            at = k
    return at


@njit(cache=True, nogil=True, error_model="numpy")
def distances_from(
    f: int, px: float, py: float, pz: float, corners: Floats, n: int, row: Floats, e: int,
    solids: Solids, work: Any,
) -> None:  # fmt: skip
    """Fill in distances of the corners of a cell from a convex piece of a surface.

    The piece is the face, or the plane below the cell if flat neighbours of the face cover it.

    Parameters
    ----------
    f : int
        A face of e; that nearest to p, a point of the cell.
    px, py, pz : float
    corners : float64[8, 9]
    n : int
    row : float64[9]
        Out: the distances.
    e, solids, work
        See `bound_in_cell`.
    """
    vertices = solids.vertices
    faces = solids.faces
    v0 = solids.vertex_starts[e]
    i = v0 + faces[f, 0]
    j = v0 + faces[f, 1]
    k = v0 + faces[f, 2]
    nx, ny, nz = unit_normal(i, j, k, vertices)
    flat = True
    for c in range(n):
        d2, _, _, _ = squared_distance_point_triangle(
            corners[c, 0], corners[c, 1], corners[c, 2],
            vertices[i, 0], vertices[i, 1], vertices[i, 2],
            vertices[j, 0], vertices[j, 1], vertices[j, 2],
            vertices[k, 0], vertices[k, 1], vertices[k, 2],
        )  # fmt: skip
        row[c] = np.sqrt(d2)
        high = abs(
            nx * (corners[c, 0] - vertices[i, 0])
            + ny * (corners[c, 1] - vertices[i, 1])
            + nz * (corners[c, 2] - vertices[i, 2])
        )
        if row[c] > high * (1.0 + 1e-9) + 1e-9:
            flat = False
    if flat:
        return
    d2, _, _, _ = squared_distance_point_triangle(
        px, py, pz,
        vertices[i, 0], vertices[i, 1], vertices[i, 2],
        vertices[j, 0], vertices[j, 1], vertices[j, 2],
        vertices[k, 0], vertices[k, 1], vertices[k, 2],
    )  # fmt: skip
    high = abs(nx * (px - vertices[i, 0]) + ny * (py - vertices[i, 1]) + nz * (pz - vertices[i, 2]))
    if np.sqrt(d2) > high * (1.0 + 1e-9) + 1e-9:
        return
    rough = covered(f, nx, ny, nz, corners, n, e, solids, work)
    if rough < 0.0:
        return
    for c in range(n):
        high = rough + abs(
            nx * (corners[c, 0] - vertices[i, 0])
            + ny * (corners[c, 1] - vertices[i, 1])
            + nz * (corners[c, 2] - vertices[i, 2])
        )
        row[c] = high if high < row[c] else row[c]


@njit(cache=True, nogil=True, error_model="numpy")
def covered(
    f: int, nx: float, ny: float, nz: float, corners: Any, n: int, e: int, solids: Solids, work: Any
) -> float:
    """Tell whether flat neighbours of a face cover the projection of a cell on its plane.

    The projection has a point in the face. It is covered if each edge that passes through it has
    a face on both sides.

    Returns
    -------
    float
        How far the neighbours are from the plane, at most; negative if they do not cover it.
    """
    vertices = solids.vertices
    faces = solids.faces
    clusters = solids.clusters
    near = work[STACK + 38 : STACK + 38 + 4]  # 36 places
    v0 = solids.vertex_starts[e]
    origin = v0 + faces[f, 0]
    ox = vertices[origin, 0]
    oy = vertices[origin, 1]
    oz = vertices[origin, 2]
    # the box of the projection
    lx = np.inf
    ly = np.inf
    lz = np.inf
    hx = -np.inf
    hy = -np.inf
    hz = -np.inf
    for c in range(n):
        high = nx * (corners[c, 0] - ox) + ny * (corners[c, 1] - oy) + nz * (corners[c, 2] - oz)
        x = corners[c, 0] - high * nx
        y = corners[c, 1] - high * ny
        z = corners[c, 2] - high * nz
        lx = x if x < lx else lx
        ly = y if y < ly else ly
        lz = z if z < lz else lz
        hx = x if x > hx else hx
        hy = y if y > hy else hy
        hz = z if z > hz else hz
    size = max(hx - lx, hy - ly, hz - lz)
    loose = 1e-9 + 1e-5 * size
    count = 0
    rough = 0.0
    first = solids.cluster_starts[e]
    for c in range(first, solids.cluster_starts[e + 1]):
        if (
            clusters[c, 0] > hx + loose
            or clusters[c, 3] < lx - loose
            or clusters[c, 1] > hy + loose
            or clusters[c, 4] < ly - loose
            or clusters[c, 2] > hz + loose
            or clusters[c, 5] < lz - loose
        ):
            continue
        begin = solids.face_starts[e] + (c - first) * CLUSTER
        for g in range(begin, min(begin + CLUSTER, solids.face_starts[e + 1])):
            i = v0 + faces[g, 0]
            j = v0 + faces[g, 1]
            k = v0 + faces[g, 2]
            away = 0.0
            for corner in range(3):
                v = v0 + faces[g, corner]
                high = abs(
                    nx * (vertices[v, 0] - ox)
                    + ny * (vertices[v, 1] - oy)
                    + nz * (vertices[v, 2] - oz)
                )
                away = high if high > away else away
            if away > loose:
                continue
            mx, my, mz = unit_normal(i, j, k, vertices)
            if mx * nx + my * ny + mz * nz < FLAT:
                continue
            if count == PATCH:
                return -1.0
            near[count // 9, count % 9] = g
            count += 1
            rough = away if away > rough else rough
    for s in range(count):
        g = int(near[s // 9, s % 9])
        for side in range(3):
            i = v0 + faces[g, side]
            j = v0 + faces[g, (side + 1) % 3]
            if apart_in_plane(i, j, nx, ny, nz, corners, n, vertices):
                continue
            met = False
            for r in range(count):
                h = int(near[r // 9, r % 9])
                for k in range(3):
                    p = v0 + faces[h, k]
                    q = v0 + faces[h, (k + 1) % 3]
                    if (
                        vertices[p, 0] == vertices[j, 0]
                        and vertices[p, 1] == vertices[j, 1]
                        and vertices[p, 2] == vertices[j, 2]
                        and vertices[q, 0] == vertices[i, 0]
                        and vertices[q, 1] == vertices[i, 1]
                        and vertices[q, 2] == vertices[i, 2]
                    ):
                        met = True
                        break
                if met:
                    break
            if not met:
                return -1.0
    return rough


@njit(cache=True, nogil=True, error_model="numpy")
def apart_in_plane(
    i: int, j: int, nx: float, ny: float, nz: float, corners: Any, n: int, vertices: Any
) -> Any:
    """Tell whether an edge surely does not pass through the projection of a cell on a plane.

    All corners are on one side of the edge, or beyond one of its ends.
    """
    ux = vertices[j, 0] - vertices[i, 0]
    uy = vertices[j, 1] - vertices[i, 1]
    uz = vertices[j, 2] - vertices[i, 2]
    length = np.sqrt(ux * ux + uy * uy + uz * uz)
    if length == 0.0:
        return True
    ux /= length
    uy /= length
    uz /= length
    # to the left, where the face is
    wx = ny * uz - nz * uy
    wy = nz * ux - nx * uz
    wz = nx * uy - ny * ux
    left = np.inf
    right = -np.inf
    low = np.inf
    high = -np.inf
    for c in range(n):
        x = corners[c, 0] - vertices[i, 0]
        y = corners[c, 1] - vertices[i, 1]
        z = corners[c, 2] - vertices[i, 2]
        across = wx * x + wy * y + wz * z
        along = ux * x + uy * y + uz * z
        left = across if across < left else left
        right = across if across > right else right
        low = along if along < low else low
        high = along if along > high else high
    slack = 1e-9 * (1.0 + length)
    return left >= -slack or right <= slack or low >= length - slack or high <= slack
