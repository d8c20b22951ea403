"""The distance of two elements: branch and bound over clusters of triangles."""

import numpy as np

from spatialq.geometry.clusters import CLUSTER
from spatialq.geometry.triangles import squared_distance
from spatialq.geometry.winding import winding
from spatialq.runtime.compile_cache import njit

ROUNDING = 2.0**-38
"""Upper limit of the rounding error of distances, as a share of the extent of two elements:
triangles that are nearer meet, and lower bounds are reduced by this."""

BEYOND = 1.0 + 2.0**-40
"""Factor on a squared limit that keeps everything that is within it after the square root."""


@njit(cache=True, nogil=True, error_model="numpy")
def measure_pairs(  # type: ignore[no-untyped-def]
    i, j, start, stop, limit, halt,
    vertices, faces, vertex_starts, face_starts, boxes, cluster_starts, clusters, side, label,
    max_faces, measures,
):  # fmt: skip
    """Measure the pairs start to stop.

    Parameters
    ----------
    i, j : int64[n]
        Rows of elements that have triangles.
    start, stop : int
    limit : float, metres
    halt : uint8[1]
        1 to stop before the next pair.
    vertices, faces, vertex_starts, face_starts
        See `Meshes`.
    boxes : float64[k, 6]
        Of the elements.
    cluster_starts, clusters
        See `clusters.cluster_boxes`.
    side, label
        See `solids.describe`.
    max_faces : int
        Of an element.
    measures : float64[n, 7]
        Out: distance, closest point of i, closest point of j; infinite, and undefined, where
        the distance is greater than the limit.
    """
    kept_a, kept_b = np.empty((max_faces, 15)), np.empty((max_faces, 15))
    groups_a, groups_b = _room(max_faces), _room(max_faces)
    ends_a, ends_b = np.empty(len(groups_a), np.int64), np.empty(len(groups_b), np.int64)
    near = np.empty(len(groups_b), np.int64)
    for n in range(start, stop):
        if halt[0]:
            return
        (
            measures[n, 0], measures[n, 1], measures[n, 2], measures[n, 3],
            measures[n, 4], measures[n, 5], measures[n, 6],
        ) = measure(
            i[n], j[n], limit,
            vertices, faces, vertex_starts, face_starts, boxes, cluster_starts, clusters, side,
            label, kept_a, kept_b, groups_a, groups_b, ends_a, ends_b, near,
        )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def measure_nearest(  # type: ignore[no-untyped-def]
    i, j, starts, start, stop, limit, k, halt,
    vertices, faces, vertex_starts, face_starts, boxes, cluster_starts, clusters, side, label,
    max_faces, measures,
):  # fmt: skip
    """Measure the k nearest of each of the elements start to stop.

    Parameters
    ----------
    i, j : int64[n]
        Of each i those first whose boxes are nearest.
    starts : int64[m + 1]
        Where the pairs of each i begin.
    start, stop : int
        Of the m elements.
    limit : float, metres
    k : int
    halt
        As for `measure_pairs`.
    vertices, faces, vertex_starts, face_starts, boxes, cluster_starts, clusters, side, label,
    max_faces, measures
        As for `measure_pairs`; infinite, too, where k others are nearer.
    """
    kept_a, kept_b = np.empty((max_faces, 15)), np.empty((max_faces, 15))
    groups_a, groups_b = _room(max_faces), _room(max_faces)
    ends_a, ends_b = np.empty(len(groups_a), np.int64), np.empty(len(groups_b), np.int64)
    near = np.empty(len(groups_b), np.int64)
    for m in range(start, stop):
        best = np.empty(min(k, starts[m + 1] - starts[m]))  # distances, the nearest first
        best[:] = np.inf
        bound_k = limit
        for n in range(starts[m], starts[m + 1]):
            if halt[0]:
                return
            (
                measures[n, 0], measures[n, 1], measures[n, 2], measures[n, 3],
                measures[n, 4], measures[n, 5], measures[n, 6],
            ) = measure(
                i[n], j[n], bound_k,
                vertices, faces, vertex_starts, face_starts, boxes, cluster_starts, clusters,
                side, label, kept_a, kept_b, groups_a, groups_b, ends_a, ends_b, near,
            )  # fmt: skip
            place = len(best)
            while place > 0 and measures[n, 0] < best[place - 1]:
                place -= 1
                if place + 1 < len(best):
                    best[place + 1] = best[place]
            if place < len(best):
                best[place] = measures[n, 0]
            if len(best) == k:
                bound_k = min(limit, best[k - 1])


@njit(cache=True, nogil=True, error_model="numpy")
def _room(max_faces):  # type: ignore[no-untyped-def]
    return np.empty((max_faces // CLUSTER + 1, 6))


@njit(cache=True, nogil=True, error_model="numpy")
def measure(  # type: ignore[no-untyped-def]
    a, b, limit,
    vertices, faces, vertex_starts, face_starts, boxes, cluster_starts, clusters, side, label,
    kept_a, kept_b, groups_a, groups_b, ends_a, ends_b, near,
):  # fmt: skip
    """Measure two elements: distance, point of a, point of b; infinite beyond the limit.

    Triangles are compared in their order, so that of several pairs at the minimum distance the
    first counts, and the search ends at the first two that meet.
    """
    slack = _extent(boxes, a, b) * ROUNDING
    best = limit * limit * BEYOND
    if bound(boxes, a, boxes, b, slack) > best:
        return np.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    guess = np.sqrt(_guess(a, b, vertices, faces, vertex_starts, face_starts, boxes)) + slack
    best = min(best, guess * guess)
    n_a = _gather(
        a, b, slack, best, vertices, faces, vertex_starts, face_starts, boxes,
        cluster_starts, clusters, kept_a, groups_a, ends_a,
    )  # fmt: skip
    n_b = _gather(
        b, a, slack, best, vertices, faces, vertex_starts, face_starts, boxes,
        cluster_starts, clusters, kept_b, groups_b, ends_b,
    )  # fmt: skip
    found = False
    pax = pay = paz = pbx = pby = pbz = 0.0
    for g in range(n_a):
        n_near = 0
        for h in range(n_b):
            if bound(groups_a, g, groups_b, h, slack) <= best:
                near[n_near] = h
                n_near += 1
        for s in range(ends_a[g - 1] if g > 0 else 0, ends_a[g] if n_near > 0 else 0):
            for at in range(n_near):
                h = near[at]
                if bound(kept_a, s, groups_b, h, slack) > best:
                    continue
                for t in range(ends_b[h - 1] if h > 0 else 0, ends_b[h]):
                    if bound(kept_a, s, kept_b, t, slack) > best:
                        continue
                    d2, ax, ay, az, bx, by, bz = squared_distance(
                        kept_a[s, 6], kept_a[s, 7], kept_a[s, 8],
                        kept_a[s, 9], kept_a[s, 10], kept_a[s, 11],
                        kept_a[s, 12], kept_a[s, 13], kept_a[s, 14],
                        kept_b[t, 6], kept_b[t, 7], kept_b[t, 8],
                        kept_b[t, 9], kept_b[t, 10], kept_b[t, 11],
                        kept_b[t, 12], kept_b[t, 13], kept_b[t, 14],
                    )  # fmt: skip
                    if d2 <= slack * slack:
                        return 0.0, ax, ay, az, bx, by, bz
                    if d2 < best or (d2 == best and not found):
                        best, found = d2, True
                        pax, pay, paz, pbx, pby, pbz = ax, ay, az, bx, by, bz
    if bound(boxes, a, boxes, b, 0.0) == 0.0:
        v = _vertex_inside(a, b, vertices, faces, vertex_starts, face_starts, boxes, side, label)
        if v < 0:
            v = _vertex_inside(
                b, a, vertices, faces, vertex_starts, face_starts, boxes, side, label
            )
        if v >= 0:
            x, y, z = vertices[v, 0], vertices[v, 1], vertices[v, 2]
            return 0.0, x, y, z, x, y, z
    distance = np.sqrt(best)
    if not found or distance > limit:
        distance = np.inf
    return distance, pax, pay, paz, pbx, pby, pbz


@njit(cache=True, nogil=True, error_model="numpy")
def bound(ones, i, others, j, slack):  # type: ignore[no-untyped-def]
    """Give a lower bound of the squared distance of two boxes, xmin .. zmax."""
    x = max(others[j, 0] - ones[i, 3], ones[i, 0] - others[j, 3]) - slack
    y = max(others[j, 1] - ones[i, 4], ones[i, 1] - others[j, 4]) - slack
    z = max(others[j, 2] - ones[i, 5], ones[i, 2] - others[j, 5]) - slack
    x, y, z = max(x, 0.0), max(y, 0.0), max(z, 0.0)
    return x * x + y * y + z * z


@njit(cache=True, nogil=True, error_model="numpy")
def _extent(boxes, a, b):  # type: ignore[no-untyped-def]
    size = 0.0
    for axis in range(3):
        size += max(boxes[a, 3 + axis], boxes[b, 3 + axis]) - min(boxes[a, axis], boxes[b, axis])
    return size


@njit(cache=True, nogil=True, error_model="numpy")
def _guess(  # type: ignore[no-untyped-def]
    a, b, vertices, faces, vertex_starts, face_starts, boxes
):
    """Give an upper bound of the squared distance: that of two corners near each other."""
    best = np.inf
    x = y = z = 0.0
    for f in range(face_starts[a], face_starts[a + 1]):
        v = vertex_starts[a] + faces[f, 0]
        dx = max(boxes[b, 0] - vertices[v, 0], vertices[v, 0] - boxes[b, 3], 0.0)
        dy = max(boxes[b, 1] - vertices[v, 1], vertices[v, 1] - boxes[b, 4], 0.0)
        dz = max(boxes[b, 2] - vertices[v, 2], vertices[v, 2] - boxes[b, 5], 0.0)
        d2 = dx * dx + dy * dy + dz * dz
        if d2 < best:
            best = d2
            x, y, z = vertices[v, 0], vertices[v, 1], vertices[v, 2]
    best = np.inf
    for f in range(face_starts[b], face_starts[b + 1]):
        v = vertex_starts[b] + faces[f, 0]
        dx, dy, dz = vertices[v, 0] - x, vertices[v, 1] - y, vertices[v, 2] - z
        best = min(best, dx * dx + dy * dy + dz * dz)
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def _gather(  # type: ignore[no-untyped-def]
    e, other, slack, best, vertices, faces, vertex_starts, face_starts, boxes,
    cluster_starts, clusters, kept, groups, ends,
):  # fmt: skip
    """Copy the triangles of e that may be near the other, and their boxes; count the clusters."""
    v0 = vertex_starts[e]
    n = n_groups = 0
    for c in range(cluster_starts[e], cluster_starts[e + 1]):
        if bound(clusters, c, boxes, other, slack) > best:
            continue
        first = n
        begin = face_starts[e] + (c - cluster_starts[e]) * CLUSTER
        for f in range(begin, min(begin + CLUSTER, face_starts[e + 1])):
            i, j, k = v0 + faces[f, 0], v0 + faces[f, 1], v0 + faces[f, 2]
            for axis in range(3):
                x, y, z = vertices[i, axis], vertices[j, axis], vertices[k, axis]
                kept[n, axis] = min(min(x, y), z)
                kept[n, 3 + axis] = max(max(x, y), z)
                kept[n, 6 + axis], kept[n, 9 + axis], kept[n, 12 + axis] = x, y, z
            if bound(kept, n, boxes, other, slack) <= best:
                n += 1
        if n > first:
            for axis in range(3):
                low, high = kept[first, axis], kept[first, 3 + axis]
                for s in range(first + 1, n):
                    low, high = min(low, kept[s, axis]), max(high, kept[s, 3 + axis])
                groups[n_groups, axis], groups[n_groups, 3 + axis] = low, high
            ends[n_groups] = n
            n_groups += 1
    return n_groups


@njit(cache=True, nogil=True, error_model="numpy")
def _vertex_inside(  # type: ignore[no-untyped-def]
    e, other, vertices, faces, vertex_starts, face_starts, boxes, side, label
):
    """Find a part of e inside the other, closed element, by the part's first vertex; or -1."""
    if side[other] == 0:
        return -1
    v0 = vertex_starts[e]
    for v in range(v0, vertex_starts[e + 1]):
        if label[v] != v - v0:
            continue
        x, y, z = vertices[v, 0], vertices[v, 1], vertices[v, 2]
        if not (
            boxes[other, 0] < x < boxes[other, 3]
            and boxes[other, 1] < y < boxes[other, 4]
            and boxes[other, 2] < z < boxes[other, 5]
        ):
            continue
        first, end = face_starts[other], face_starts[other + 1]
        turns = winding(x, y, z, vertices, faces, vertex_starts[other], first, end)
        if turns * side[other] > 0:
            return v
    return -1
