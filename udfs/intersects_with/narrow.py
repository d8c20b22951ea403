"""Elements whose boxes meet, looked at triangle by triangle."""

from typing import Any

import numpy as np

from spatialq.geometry.clusters import CLUSTER
from spatialq.geometry.triangles import min3, squared_distance
from spatialq.runtime.compile_cache import njit

from .pair import APART, CROSS, FLUSH, GRAZE, below, between, classify, cross_middle
from .point_in_solid import climb, faces_inside, in_both, parts_inside

GRAZES = 4
"""So many grazing pairs of triangles are followed into the depth, at most."""

DISJOINT, TOUCH, OVERLAP, CONTAINS, INSIDE, COVERS, COVERED_BY, EQUALS = range(8)
"""Codes, in the order of `RELATIONS`."""

ROOM = 18
"""Numbers kept of a triangle: its corners, its normal, its box."""


@njit(cache=True, nogil=True, error_model="numpy")
def gather(
    e: int,
    box: Any,
    vertices: Any,
    faces: Any,
    vertex_starts: Any,
    face_starts: Any,
    cluster_starts: Any,
    clusters: Any,
    kept: Any,
):
    """Copy the triangles of an element that meet a box; those without area are left out.

    Returns
    -------
    int
        How many: rows of `kept` (`ROOM`).
    """
    v0 = vertex_starts[e]
    n = 0
    for c in range(cluster_starts[e], cluster_starts[e + 1]):
        if (
            clusters[c, 0] > box[3]
            or clusters[c, 3] < box[0]
            or clusters[c, 1] > box[4]
            or clusters[c, 4] < box[1]
            or clusters[c, 2] > box[5]
            or clusters[c, 5] < box[2]
        ):
            continue
        begin = face_starts[e] + (c - cluster_starts[e]) * CLUSTER
        for f in range(begin, min(begin + CLUSTER, face_starts[e + 1])):
            i = v0 + faces[f, 0]
            j = v0 + faces[f, 1]
            k = v0 + faces[f, 2]
            outside = False
            for axis in range(3):
                p = vertices[i, axis]
                q = vertices[j, axis]
                r = vertices[k, axis]
                low = p if p < q else q
                low = r if r < low else low
                high = p if p > q else q
                high = r if r > high else high
                if low > box[3 + axis] or high < box[axis]:
                    outside = True
                    break
                kept[n, axis] = p
                kept[n, 3 + axis] = q
                kept[n, 6 + axis] = r
                kept[n, 12 + axis] = low
                kept[n, 15 + axis] = high
            if outside:
                continue
            ux = kept[n, 3] - kept[n, 0]
            uy = kept[n, 4] - kept[n, 1]
            uz = kept[n, 5] - kept[n, 2]
            vx = kept[n, 6] - kept[n, 0]
            vy = kept[n, 7] - kept[n, 1]
            vz = kept[n, 8] - kept[n, 2]
            nx = uy * vz - uz * vy
            ny = uz * vx - ux * vz
            nz = ux * vy - uy * vx
            size = np.sqrt(nx * nx + ny * ny + nz * nz)
            if size == 0.0:
                continue
            unit = 1.0 / size
            kept[n, 9] = nx * unit
            kept[n, 10] = ny * unit
            kept[n, 11] = nz * unit
            n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def relate(
    pairs_a: Any,
    pairs_b: Any,
    first: int,
    stop: int,
    vertices: Any,
    faces: Any,
    vertex_starts: Any,
    face_starts: Any,
    boxes: Any,
    side: Any,
    label: Any,
    parts: Any,
    cluster_starts: Any,
    clusters: Any,
    t: float,
    touches: Any,
    most_faces: int,
    most_vertices: int,
    relation: Any,
    measures: Any,
):
    """Find the relations of the pairs first to stop.

    Parameters
    ----------
    pairs_a, pairs_b : int64[n]
        Elements whose boxes are at most the tolerance apart.
    first, stop : int
    vertices, faces, vertex_starts, face_starts
        See `Meshes`.
    boxes : float64[k, 6]
    side, label, parts
        See `solids.describe`.
    cluster_starts, clusters
        See `clusters.cluster_boxes`.
    t : float
        The tolerance, metres.
    touches : bool
        Whether pairs without common interior are told apart.
    most_faces, most_vertices : int
        Of any element.
    relation : int8[n]
        Out: the code; without `touches` disjoint for touch as well.
    measures : float64[n, 5]
        Out: depth, distance, x, y, z.
    """
    one = np.empty((most_faces, ROOM))
    other = np.empty((most_faces, ROOM))
    state = np.empty(most_vertices, np.int8)
    other_box = np.empty((most_faces // CLUSTER + 1, 6))
    hit = np.empty(most_faces // CLUSTER + 1, np.int64)
    polygon = np.empty((9, 3))
    spare = np.empty((9, 3))
    box = np.empty(6)
    meeting = np.empty((256, 2), np.int32)
    grazing = np.empty(GRAZES, np.int64)
    for p in range(first, stop):
        a = pairs_a[p]
        b = pairs_b[p]
        for axis in range(3):
            low = boxes[a, axis] if boxes[a, axis] > boxes[b, axis] else boxes[b, axis]
            high = (
                boxes[a, 3 + axis]
                if boxes[a, 3 + axis] < boxes[b, 3 + axis]
                else boxes[b, 3 + axis]
            )
            box[axis] = low - t
            box[3 + axis] = high + t
        solid = side[a] != 0 and side[b] != 0
        n = gather(
            a, box, vertices, faces, vertex_starts, face_starts, cluster_starts, clusters,
            one,
        )  # fmt: skip
        m = 0
        if n > 0:
            m = gather(
                b, box, vertices, faces, vertex_starts, face_starts, cluster_starts, clusters,
                other,
            )  # fmt: skip
        # What the triangles say: the first crossing, in the order of the faces, decides.
        crossing = False
        flush = False
        grazes = 0
        met = 0
        px = np.nan
        py = np.nan
        pz = np.nan
        groups = group(other, m, other_box)
        for i in range(n):
            if i % CLUSTER == 0:
                last = i + CLUSTER if i + CLUSTER < n else n
                hits = meet(one, i, last, other_box, groups, t, hit)
            for h in range(hits * CLUSTER):
                j = hit[h // CLUSTER] * CLUSTER + h % CLUSTER
                if j >= m or (
                    other[j, 12] - one[i, 15] > t
                    or one[i, 12] - other[j, 15] > t
                    or other[j, 13] - one[i, 16] > t
                    or one[i, 13] - other[j, 16] > t
                    or other[j, 14] - one[i, 17] > t
                    or one[i, 14] - other[j, 17] > t
                ):
                    continue
                kind = classify(
                    one[i, 0], one[i, 1], one[i, 2], one[i, 3], one[i, 4], one[i, 5],
                    one[i, 6], one[i, 7], one[i, 8], one[i, 9], one[i, 10], one[i, 11],
                    other[j, 0], other[j, 1], other[j, 2], other[j, 3], other[j, 4], other[j, 5],
                    other[j, 6], other[j, 7], other[j, 8], other[j, 9], other[j, 10], other[j, 11],
                    side[a], side[b], t, touches,
                )  # fmt: skip
                if kind == APART:
                    continue
                if met == len(meeting):
                    meeting = np.concatenate((meeting, np.empty_like(meeting)))
                meeting[met, 0] = i
                meeting[met, 1] = j
                met += 1
                if kind == CROSS:
                    crossing = True
                    break
                if kind == GRAZE and grazes < GRAZES:
                    grazing[grazes] = met - 1
                    grazes += 1
                if kind == FLUSH and solid and not flush:
                    px, py, pz = below(one, i, other, j, side[a], side[b], t, polygon, spare)
                    flush = not np.isnan(px) and in_both(
                        px, py, pz, a, b,
                        vertices, faces, vertex_starts, face_starts, side,
                        cluster_starts, clusters,
                    )  # fmt: skip
            if crossing:
                break

        code = DISJOINT
        radius = 0.0
        d2 = np.inf
        x = np.nan
        y = np.nan
        z = np.nan
        if crossing:
            code = OVERLAP
            i = meeting[met - 1, 0]
            j = meeting[met - 1, 1]
            x, y, z = cross_middle(one, i, other, j, side[a], side[b], t)
            if solid:
                px, py, pz = between(x, y, z, one, i, other, j, side[a], side[b], 0.1 * t)
        else:
            inner = flush
            if solid and not inner:
                for k in range(grazes):
                    i = meeting[grazing[k], 0]
                    j = meeting[grazing[k], 1]
                    x, y, z = cross_middle(one, i, other, j, side[a], side[b], t)
                    px, py, pz = between(x, y, z, one, i, other, j, side[a], side[b], 0.25 * t)
                    found, px, py, pz = climb(
                        px, py, pz, t, t, a, b,
                        vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters,
                    )  # fmt: skip
                    if 2.0 * found > t:
                        inner = True
                        break
            if touches or not solid:
                d2, x, y, z = closest(one, other, meeting, met)
            touching = inner or d2 <= t * t
            a_sticks = sticks_out(boxes, a, b, t)
            b_sticks = sticks_out(boxes, b, a, t)
            if inner:
                # One surface inside the other body has that body on both its sides.
                if not (a_sticks and b_sticks):
                    b_in_a, b_out_a = faces_inside(
                        b, a, boxes[a], t,
                        vertices, faces, vertex_starts, face_starts, side,
                        cluster_starts, clusters,
                    )  # fmt: skip
                    a_in_b, a_out_b = faces_inside(
                        a, b, boxes[b], t,
                        vertices, faces, vertex_starts, face_starts, side,
                        cluster_starts, clusters,
                    )  # fmt: skip
                    a_sticks = a_sticks or a_out_b or b_in_a
                    b_sticks = b_sticks or b_out_a or a_in_b
            elif solid or not touching:
                # Where nothing crosses, each part of the one is inside or outside of the other.
                # An open surface has no inside: what it touches, it only touches.
                b_in_a = False
                a_in_b = False
                b_out_a = True
                a_out_b = True
                if parts[b] > 1 or not b_sticks:
                    b_in_a, b_out_a, px, py, pz = parts_inside(
                        b, a, boxes[a], t, state,
                        vertices, faces, vertex_starts, face_starts, side, label,
                        cluster_starts, clusters,
                    )  # fmt: skip
                if parts[a] > 1 or not a_sticks:
                    a_in_b, a_out_b, ix, iy, iz = parts_inside(
                        a, b, boxes[b], t, state,
                        vertices, faces, vertex_starts, face_starts, side, label,
                        cluster_starts, clusters,
                    )  # fmt: skip
                    if not b_in_a:
                        px = ix
                        py = iy
                        pz = iz
                inner = b_in_a or a_in_b
                a_sticks = a_out_b or b_in_a
                b_sticks = b_out_a or a_in_b
                if inner and not (touches or not solid):
                    d2, x, y, z = closest(one, other, meeting, met)
                    touching = d2 <= t * t
            if not inner or (touching and not solid):
                code = TOUCH if touching else DISJOINT
            elif a_sticks and b_sticks:
                code = OVERLAP
            elif a_sticks:
                code = COVERS if touching else CONTAINS
            elif b_sticks:
                code = COVERED_BY if touching else INSIDE
            else:
                code = EQUALS
        if code >= OVERLAP:
            d2 = 0.0
        if code >= OVERLAP and not solid:
            radius = np.nan
            if not crossing:
                x = px
                y = py
                z = pz
        if code >= OVERLAP and solid:
            # The ball can be no larger than what the boxes share: mostly it is about as large,
            # in the middle. Else it is looked for from where the common part was found as well.
            room = min3(box[3] - box[0], box[4] - box[1], box[5] - box[2]) - 2.0 * t
            enough = 0.49 * room
            radius, x, y, z = climb(
                0.5 * (box[0] + box[3]), 0.5 * (box[1] + box[4]), 0.5 * (box[2] + box[5]),
                t, enough, a, b,
                vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters,
            )  # fmt: skip
            if radius < enough:
                found, px, py, pz = climb(
                    px, py, pz, t, enough, a, b,
                    vertices, faces, vertex_starts, face_starts, side, cluster_starts, clusters,
                )  # fmt: skip
                if found > radius:
                    radius = found
                    x = px
                    y = py
                    z = pz
            if radius < 0.0:  # thinner than what was looked at: the place is known, no ball
                radius = 0.0
                x = px
                y = py
                z = pz
        relation[p] = code
        measures[p, 0] = 2.0 * radius
        measures[p, 1] = np.sqrt(d2)
        measures[p, 2] = x
        measures[p, 3] = y
        measures[p, 4] = z


@njit(cache=True, nogil=True, error_model="numpy")
def group(kept: Any, n: int, box: Any):
    """Find the boxes of `CLUSTER` kept triangles each; gives how many there are."""
    groups = -(-n // CLUSTER)
    for g in range(groups):
        for axis in range(3):
            low = np.inf
            high = -np.inf
            for k in range(g * CLUSTER, min(n, (g + 1) * CLUSTER)):
                low = kept[k, 12 + axis] if kept[k, 12 + axis] < low else low
                high = kept[k, 15 + axis] if kept[k, 15 + axis] > high else high
            box[g, axis] = low
            box[g, 3 + axis] = high
    return groups


@njit(cache=True, nogil=True, error_model="numpy")
def meet(kept: Any, first: int, stop: int, box: Any, groups: int, t: float, hit: Any):
    """List the groups that come within t of the box of some kept triangles."""
    low_x = np.inf
    low_y = np.inf
    low_z = np.inf
    high_x = -np.inf
    high_y = -np.inf
    high_z = -np.inf
    for k in range(first, stop):
        low_x = kept[k, 12] if kept[k, 12] < low_x else low_x
        low_y = kept[k, 13] if kept[k, 13] < low_y else low_y
        low_z = kept[k, 14] if kept[k, 14] < low_z else low_z
        high_x = kept[k, 15] if kept[k, 15] > high_x else high_x
        high_y = kept[k, 16] if kept[k, 16] > high_y else high_y
        high_z = kept[k, 17] if kept[k, 17] > high_z else high_z
    n = 0
    for g in range(groups):
        if not (
            box[g, 0] - high_x > t
            or low_x - box[g, 3] > t
            or box[g, 1] - high_y > t
            or low_y - box[g, 4] > t
            or box[g, 2] - high_z > t
            or low_z - box[g, 5] > t
        ):
            hit[n] = g
            n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def sticks_out(boxes: Any, a: int, b: int, t: float):
    """Tell whether the box of a reaches beyond that of b by more than t."""
    return (
        boxes[a, 0] < boxes[b, 0] - t
        or boxes[a, 1] < boxes[b, 1] - t
        or boxes[a, 2] < boxes[b, 2] - t
        or boxes[a, 3] > boxes[b, 3] + t
        or boxes[a, 4] > boxes[b, 4] + t
        or boxes[a, 5] > boxes[b, 5] + t
    )


@njit(cache=True, nogil=True, error_model="numpy")
def closest(one: Any, other: Any, meeting: Any, met: int):
    """Find the least distance of the pairs of triangles that may be nearer than the tolerance.

    Returns
    -------
    d2 : float
        Squared.
    x, y, z : float
        Half-way between the nearest points, of several those of the first pair.
    """
    d2 = np.inf
    x = np.nan
    y = np.nan
    z = np.nan
    for k in range(met):
        i = meeting[k, 0]
        j = meeting[k, 1]
        found, ax, ay, az, bx, by, bz = squared_distance(
            one[i, 0], one[i, 1], one[i, 2], one[i, 3], one[i, 4], one[i, 5],
            one[i, 6], one[i, 7], one[i, 8],
            other[j, 0], other[j, 1], other[j, 2], other[j, 3], other[j, 4], other[j, 5],
            other[j, 6], other[j, 7], other[j, 8],
        )  # fmt: skip
        if found < d2:
            d2 = found
            x = 0.5 * (ax + bx)
            y = 0.5 * (ay + by)
            z = 0.5 * (az + bz)
        if d2 == 0.0:
            break
    return d2, x, y, z
