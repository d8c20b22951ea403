"""Relations of elements by their inner and outer meshes: the test of the thesis.

Every vertex is moved inwards, or outwards, by the tolerance. Where the inner meshes of two
elements meet, or one of them is inside the other, they have a common interior; where only the
outer ones meet they touch. So elements with exactly one common surface are decided reliably.

References
----------
R. Schweizer's thesis, sections 2.3.3 (triangle pair meshes) and 4.2. Differs from it: one
combination, inner with inner, decides on a common interior, instead of all four; a point of every
connected part is looked for inside of the other element, so that containment is found; vertices
are welded before.

T. Moller, *A fast triangle-triangle intersection test*, Journal of Graphics Tools 2 (2), 1997.
"""

from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.data.points import read_only
from spatialq.geometry import boxes
from spatialq.geometry.clusters import CLUSTER, cluster_boxes, starts_of
from spatialq.geometry.solids import Solids, describe
from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.progress import stop_flag
from spatialq.runtime.threads import in_threads, steps

from .narrow_phase import CONTAINS, DISJOINT, INSIDE, OVERLAP, TOUCH
from .point_in_solid import is_inside

WELD = 1e-5
"""Metres: vertices of an element are one if their coordinates are, as rounded to this."""

DISTINCT = 0.01
"""Unit normals that differ by less count once."""

PLANE = 1e-6
"""Metres: triangles are in one plane if the corners of one are nearer to the other's."""


def relations(a: Meshes, b: Meshes | None, i: Ints, j: Ints, tolerance: float) -> Any:
    """Find the relations of pairs of elements.

    Parameters
    ----------
    a, b : Meshes
        Without `b` the pairs are within `a`.
    i, j : int64[n]
        The pairs: rows of a, and of b. Elements that are no pair may be closer to each other
        than twice the tolerance only if they do not matter.
    tolerance : float, metres, > 0
        How far vertices are moved; a face is moved by less, at the corner of a box by
        1 / sqrt(3) of it.

    Returns
    -------
    int8[n]
        See `RELATIONS`: disjoint, touch, overlap, contains or inside. The inner meshes cannot
        tell covers, covered_by and equals: they are among overlap, contains and inside.

    Notes
    -----
    The orientation of a closed mesh with its inside out is corrected; that of an open one is the
    orientation of its triangles.
    """
    welded = weld(a if b is None else a.followed_by(b))
    k = len(welded)
    side = np.empty(k, np.int8)
    label = np.empty(len(welded.vertices), np.int32)
    parts = np.empty(k, np.int32)
    arrays = welded.arrays
    bits = arrays[0].view(np.uint64)
    limits = boxes.of(welded)
    normals = np.zeros_like(welded.vertices)
    sharing = _faces_of_vertices(welded)
    cluster_starts = starts_of(welded.face_starts)

    def prepare(span: tuple[int, int]) -> None:
        describe(arrays[0], bits, *arrays[1:], limits, *span, side, label, parts)
        vertex_normals(*arrays, *sharing, side, *span, normals)

    in_threads(prepare, k)

    def moved(distance: float) -> Solids:
        vertices = read_only(welded.vertices + distance * normals)
        clusters = np.empty((cluster_starts[-1], 6))
        for part in steps(0, k, boxes.MESHES):
            cluster_boxes(vertices, *arrays[1:], cluster_starts, *part, clusters)
        outline = boxes.of(Meshes(vertices, *arrays[1:]))
        return Solids(vertices, *arrays[1:], outline, side, label, parts, cluster_starts, clusters)

    inner, outer = moved(-tolerance), moved(tolerance)
    rows_a = np.asarray(i, np.int64)
    rows_b = np.asarray(j, np.int64) + (0 if b is None else len(a))
    relation = np.empty(len(rows_a), np.int8)

    def some(span: tuple[int, int]) -> None:
        relate(rows_a, rows_b, *span, inner, outer, stop_flag(), relation)

    in_threads(some, len(rows_a))
    return relation


def weld(meshes: Meshes) -> Meshes:
    """Join the vertices of an element that coincide, and drop faces without area."""
    owner = np.repeat(np.arange(len(meshes)), np.diff(meshes.vertex_starts))
    x, y, z = np.rint(meshes.vertices / WELD).astype(np.int64).T
    order = np.lexsort((z, y, x, owner))
    key = np.column_stack([owner, x, y, z])[order]
    new = np.ones(len(key), np.bool_)
    new[1:] = (key[1:] != key[:-1]).any(axis=1)
    place = np.empty(len(key), np.int64)
    place[order] = np.cumsum(new) - 1
    first = order[new]  # of equal keys the first vertex comes first: lexsort is stable
    vertex_starts = np.concatenate(
        [[0], np.cumsum(np.bincount(owner[first], minlength=len(meshes)))]
    )
    sizes = np.diff(meshes.face_starts)
    faces = place[meshes.faces + np.repeat(meshes.vertex_starts[:-1], sizes)[:, None]]
    keep = (faces != np.roll(faces, 1, axis=1)).all(axis=1)
    mesh = np.repeat(np.arange(len(meshes)), sizes)[keep]
    return Meshes(
        meshes.vertices[first],
        (faces[keep] - vertex_starts[mesh][:, None]).astype(np.int32),
        vertex_starts,
        np.concatenate([[0], np.cumsum(np.bincount(mesh, minlength=len(meshes)))]),
    )


def _faces_of_vertices(meshes: Meshes) -> tuple[Any, Any]:
    """List the faces of every vertex, in their order: where each list begins, and the lists."""
    shift = np.repeat(meshes.vertex_starts[:-1], np.diff(meshes.face_starts))
    corners = (meshes.faces + shift[:, None]).ravel()
    starts = np.cumsum(np.bincount(corners, minlength=len(meshes.vertices)))
    return np.concatenate([[0], starts]), np.argsort(corners, kind="stable") // 3


@njit(cache=True, nogil=True, error_model="numpy")
def vertex_normals(
    vertices: Any, faces: Any, vertex_starts: Any, face_starts: Any,
    starts: Ints, sharing: Ints, side: Any, first: int, stop: int, normals: Floats,
) -> None:  # fmt: skip
    """Find the directions in which vertices are moved outwards.

    Parameters
    ----------
    vertices, faces, vertex_starts, face_starts
        See `Meshes`; welded.
    starts : int64[n + 1]
    sharing : int64[3 m]
        The faces of each vertex.
    side : int8[k]
        See `solids.describe`.
    first, stop : int
        The elements.
    normals : float64[n, 3]
        Out: the unit mean of the distinct unit normals; zero if they cancel each other.
    """
    found = np.empty((64, 3))
    for e in range(first, stop):
        v0 = vertex_starts[e]
        out = -1.0 if side[e] < 0 else 1.0
        for v in range(v0, vertex_starts[e + 1]):
            if starts[v + 1] - starts[v] > len(found):
                found = np.empty((2 * (starts[v + 1] - starts[v]), 3))
            count = 0
            sx = 0.0
            sy = 0.0
            sz = 0.0
            for at in range(starts[v], starts[v + 1]):
                f = sharing[at]
                p = v0 + faces[f, 0]
                q = v0 + faces[f, 1]
                r = v0 + faces[f, 2]
                nx, ny, nz = unit_normal(
                    vertices[p, 0], vertices[p, 1], vertices[p, 2],
                    vertices[q, 0], vertices[q, 1], vertices[q, 2],
                    vertices[r, 0], vertices[r, 1], vertices[r, 2],
                )  # fmt: skip
                new = nx != 0.0 or ny != 0.0 or nz != 0.0
                for k in range(count):
                    dx = nx - found[k, 0]
                    dy = ny - found[k, 1]
                    dz = nz - found[k, 2]
                    if dx * dx + dy * dy + dz * dz < DISTINCT * DISTINCT:
                        new = False
                        break
                if new:
                    found[count, 0] = nx
                    found[count, 1] = ny
                    found[count, 2] = nz
                    count += 1
                    sx += nx
                    sy += ny
                    sz += nz
            length = np.sqrt(sx * sx + sy * sy + sz * sz)
            if length > DISTINCT:
                normals[v, 0] = out * sx / length
                normals[v, 1] = out * sy / length
                normals[v, 2] = out * sz / length


@njit(cache=True, nogil=True, error_model="numpy")
def unit_normal(
    px: float, py: float, pz: float,
    qx: float, qy: float, qz: float,
    rx: float, ry: float, rz: float,
) -> Any:  # fmt: skip
    """Give the unit normal of a triangle; zero if it has no area."""
    ux = qx - px
    uy = qy - py
    uz = qz - pz
    vx = rx - px
    vy = ry - py
    vz = rz - pz
    nx = uy * vz - uz * vy
    ny = uz * vx - ux * vz
    nz = ux * vy - uy * vx
    square = nx * nx + ny * ny + nz * nz
    # against the squared edges: a sine below 1e-8 is rounding
    if square <= 1e-16 * (ux * ux + uy * uy + uz * uz) * (vx * vx + vy * vy + vz * vz):
        return 0.0, 0.0, 0.0
    length = np.sqrt(square)
    return nx / length, ny / length, nz / length


@njit(cache=True, nogil=True, error_model="numpy")
def relate(
    rows_a: Any, rows_b: Any, first: int, stop: int, inner: Solids, outer: Solids, halt: Any,
    relation: Any,
) -> None:  # fmt: skip
    """Relate the pairs first to stop by their inner and outer meshes.

    `relation` is written to. If `halt` is set, it stops before the next pair.
    """
    for pair in range(first, stop):
        if halt[0]:
            return
        a = rows_a[pair]
        b = rows_b[pair]
        relation[pair] = DISJOINT
        if not boxes_meet(outer.boxes, a, outer.boxes, b):
            continue
        if boxes_meet(inner.boxes, a, inner.boxes, b):
            if surfaces_meet(a, b, inner):
                relation[pair] = OVERLAP
                continue
            b_in, b_out = parts_within(b, a, inner)
            a_in, a_out = parts_within(a, b, inner)
            if a_in or b_in:
                if not (a_in or b_out):
                    relation[pair] = CONTAINS
                elif not (b_in or a_out):
                    relation[pair] = INSIDE
                else:
                    relation[pair] = OVERLAP
                continue
        if surfaces_meet(a, b, outer):
            relation[pair] = TOUCH
            continue
        # what fills a void to the last bit touches it all round: then the outer mesh is within
        b_in, _ = parts_within(b, a, outer)
        a_in, _ = parts_within(a, b, outer)
        if a_in or b_in:
            relation[pair] = TOUCH


@njit(cache=True, nogil=True, error_model="numpy")
def parts_within(b: int, a: int, solids: Solids) -> Any:
    """Tell whether some connected part of b is inside a, and whether some is not."""
    vertices = solids.vertices
    v0 = solids.vertex_starts[b]
    within = False
    beyond = False
    for v in range(v0, solids.vertex_starts[b + 1]):
        if solids.label[v] == v - v0:
            if is_inside(vertices[v, 0], vertices[v, 1], vertices[v, 2], a, solids):
                within = True
            else:
                beyond = True
    return within, beyond


@njit(cache=True, nogil=True, error_model="numpy")
def boxes_meet(one: Any, i: int, other: Any, j: int) -> Any:
    """Whether two boxes have a point in common, or nearly so."""
    return (
        one[i, 0] - other[j, 3] <= PLANE
        and other[j, 0] - one[i, 3] <= PLANE
        and one[i, 1] - other[j, 4] <= PLANE
        and other[j, 1] - one[i, 4] <= PLANE
        and one[i, 2] - other[j, 5] <= PLANE
        and other[j, 2] - one[i, 5] <= PLANE
    )


@njit(cache=True, nogil=True, error_model="numpy")
def surfaces_meet(a: int, b: int, solids: Solids) -> bool:
    """Whether some triangle of a meets some triangle of b; the first that does ends the search."""
    vertices = solids.vertices
    faces = solids.faces
    clusters = solids.clusters
    face_starts = solids.face_starts
    cluster_starts = solids.cluster_starts
    va = solids.vertex_starts[a]
    vb = solids.vertex_starts[b]
    for ca in range(cluster_starts[a], cluster_starts[a + 1]):
        if not boxes_meet(clusters, ca, solids.boxes, b):
            continue
        fa = face_starts[a] + (ca - cluster_starts[a]) * CLUSTER
        for cb in range(cluster_starts[b], cluster_starts[b + 1]):
            if not boxes_meet(clusters, ca, clusters, cb):
                continue
            fb = face_starts[b] + (cb - cluster_starts[b]) * CLUSTER
            for f in range(fa, min(fa + CLUSTER, face_starts[a + 1])):
                i = va + faces[f, 0]
                j = va + faces[f, 1]
                k = va + faces[f, 2]
                for g in range(fb, min(fb + CLUSTER, face_starts[b + 1])):
                    p = vb + faces[g, 0]
                    q = vb + faces[g, 1]
                    r = vb + faces[g, 2]
                    if triangles_meet(
                        vertices[i, 0], vertices[i, 1], vertices[i, 2],
                        vertices[j, 0], vertices[j, 1], vertices[j, 2],
                        vertices[k, 0], vertices[k, 1], vertices[k, 2],
                        vertices[p, 0], vertices[p, 1], vertices[p, 2],
                        vertices[q, 0], vertices[q, 1], vertices[q, 2],
                        vertices[r, 0], vertices[r, 1], vertices[r, 2],
                    ):  # fmt: skip
                        return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def triangles_meet(
    a0x: float, a0y: float, a0z: float,
    a1x: float, a1y: float, a1z: float,
    a2x: float, a2y: float, a2z: float,
    b0x: float, b0y: float, b0z: float,
    b1x: float, b1y: float, b1z: float,
    b2x: float, b2y: float, b2z: float,
) -> Any:  # fmt: skip
    """Whether two triangles have a point in common (Moller 1997).

    Those without area have none.
    """
    if (
        apart(a0x, a1x, a2x, b0x, b1x, b2x)
        or apart(a0y, a1y, a2y, b0y, b1y, b2y)
        or apart(a0z, a1z, a2z, b0z, b1z, b2z)
    ):
        return False
    bx, by, bz = unit_normal(b0x, b0y, b0z, b1x, b1y, b1z, b2x, b2y, b2z)
    d0 = bx * (a0x - b0x) + by * (a0y - b0y) + bz * (a0z - b0z)
    d1 = bx * (a1x - b0x) + by * (a1y - b0y) + bz * (a1z - b0z)
    d2 = bx * (a2x - b0x) + by * (a2y - b0y) + bz * (a2z - b0z)
    if beyond(d0, d1, d2):
        return False
    ax, ay, az = unit_normal(a0x, a0y, a0z, a1x, a1y, a1z, a2x, a2y, a2z)
    e0 = ax * (b0x - a0x) + ay * (b0y - a0y) + az * (b0z - a0z)
    e1 = ax * (b1x - a0x) + ay * (b1y - a0y) + az * (b1z - a0z)
    e2 = ax * (b2x - a0x) + ay * (b2y - a0y) + az * (b2z - a0z)
    if beyond(e0, e1, e2):
        return False
    if (ax == 0.0 and ay == 0.0 and az == 0.0) or (bx == 0.0 and by == 0.0 and bz == 0.0):
        return False
    if max(abs(d0), abs(d1), abs(d2)) < PLANE or max(abs(e0), abs(e1), abs(e2)) < PLANE:
        if abs(bx) >= abs(by) and abs(bx) >= abs(bz):
            return flat_meet(a0y, a0z, a1y, a1z, a2y, a2z, b0y, b0z, b1y, b1z, b2y, b2z)
        if abs(by) >= abs(bz):
            return flat_meet(a0x, a0z, a1x, a1z, a2x, a2z, b0x, b0z, b1x, b1z, b2x, b2z)
        return flat_meet(a0x, a0y, a1x, a1y, a2x, a2y, b0x, b0y, b1x, b1y, b2x, b2y)
    if (d0 * d1 > 0.0 and d0 * d2 > 0.0) or (e0 * e1 > 0.0 and e0 * e2 > 0.0):
        return False
    # where each of them cuts the line of both planes
    lx = abs(ay * bz - az * by)
    ly = abs(az * bx - ax * bz)
    lz = abs(ax * by - ay * bx)
    if lx >= ly and lx >= lz:
        u, v = interval(a0x, a1x, a2x, d0, d1, d2)
        s, t = interval(b0x, b1x, b2x, e0, e1, e2)
    elif ly >= lz:
        u, v = interval(a0y, a1y, a2y, d0, d1, d2)
        s, t = interval(b0y, b1y, b2y, e0, e1, e2)
    else:
        u, v = interval(a0z, a1z, a2z, d0, d1, d2)
        s, t = interval(b0z, b1z, b2z, e0, e1, e2)
    return max(u, v) >= min(s, t) and max(s, t) >= min(u, v)


@njit(cache=True, nogil=True, error_model="numpy")
def apart(p0: float, p1: float, p2: float, q0: float, q1: float, q2: float) -> Any:
    """Whether the triangles p and q are apart along an axis."""
    return min(p0, p1, p2) - max(q0, q1, q2) > PLANE or min(q0, q1, q2) - max(p0, p1, p2) > PLANE


@njit(cache=True, nogil=True, error_model="numpy")
def beyond(d0: float, d1: float, d2: float) -> Any:
    """Whether corners are all on one side of a plane, and not close to it."""
    return min(d0, d1, d2) > PLANE or max(d0, d1, d2) < -PLANE


@njit(cache=True, nogil=True, error_model="numpy")
def interval(p0: float, p1: float, p2: float, d0: float, d1: float, d2: float) -> Any:
    """Give where a triangle cuts a plane: places of its corners on a line, and distances."""
    if d0 * d1 > 0.0:
        return cuts(p2, p0, p1, d2, d0, d1)
    if d0 * d2 > 0.0:
        return cuts(p1, p0, p2, d1, d0, d2)
    if d1 * d2 > 0.0 or d0 != 0.0:
        return cuts(p0, p1, p2, d0, d1, d2)
    if d1 != 0.0:
        return cuts(p1, p0, p2, d1, d0, d2)
    return cuts(p2, p0, p1, d2, d0, d1)


@njit(cache=True, nogil=True, error_model="numpy")
def cuts(p: float, q: float, r: float, dp: float, dq: float, dr: float) -> Any:
    """Give where the two edges from p reach the plane."""
    return p + (q - p) * dp / (dp - dq), p + (r - p) * dp / (dp - dr)


@njit(cache=True, nogil=True, error_model="numpy")
def flat_meet(
    a0u: float, a0v: float, a1u: float,
    a1v: float, a2u: float, a2v: float,
    b0u: float, b0v: float, b1u: float,
    b1v: float, b2u: float, b2v: float,
) -> Any:  # fmt: skip
    """Whether two triangles in a plane have a point in common: no edge keeps them apart."""
    return not (
        edge_parts(a0u, a0v, a1u, a1v, a2u, a2v, b0u, b0v, b1u, b1v, b2u, b2v)
        or edge_parts(a1u, a1v, a2u, a2v, a0u, a0v, b0u, b0v, b1u, b1v, b2u, b2v)
        or edge_parts(a2u, a2v, a0u, a0v, a1u, a1v, b0u, b0v, b1u, b1v, b2u, b2v)
        or edge_parts(b0u, b0v, b1u, b1v, b2u, b2v, a0u, a0v, a1u, a1v, a2u, a2v)
        or edge_parts(b1u, b1v, b2u, b2v, b0u, b0v, a0u, a0v, a1u, a1v, a2u, a2v)
        or edge_parts(b2u, b2v, b0u, b0v, b1u, b1v, a0u, a0v, a1u, a1v, a2u, a2v)
    )


@njit(cache=True, nogil=True, error_model="numpy")
def edge_parts(
    pu: float, pv: float, qu: float,
    qv: float, ru: float, rv: float,
    xu: float, xv: float, yu: float,
    yv: float, zu: float, zv: float,
) -> Any:  # fmt: skip
    """Whether the line through p and q has r on one side and x, y and z on the other."""
    du = qu - pu
    dv = qv - pv
    side = du * (rv - pv) - dv * (ru - pu)
    x = side * (du * (xv - pv) - dv * (xu - pu))
    y = side * (du * (yv - pv) - dv * (yu - pu))
    z = side * (du * (zv - pv) - dv * (zu - pu))
    return x < 0.0 and y < 0.0 and z < 0.0
