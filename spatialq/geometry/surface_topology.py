"""What tells the inside of a closed mesh from its outside beside each face, edge and vertex.

The sign of a point's distance from a closed mesh follows from the surface where the nearest point
is: on which side of the face, or of the angle-weighted pseudonormal of the edge or vertex, the
point lies (Baerentzen, Aanaes 2005: Signed distance computation using the angle weighted
pseudonormal). This holds where the surface is a manifold. Elsewhere, as at an edge of four faces
or beside a face without area, rays are counted (`winding`); so they are everywhere on a surface
with such an edge, since layers that touch may have two faces in one place.

The surface of an element falls into parts that share no edge, such as the leaf and the frame of a
door. Parts may overlap: a point near the surface of one part is inside the element if it is inside
another one. Each part has the list of those whose boxes meet its own.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry import boxes
from spatialq.geometry.solids import describe, join, place
from spatialq.geometry.solids import root as first_of
from spatialq.geometry.triangles import THIN
from spatialq.runtime import buffers
from spatialq.runtime.arrays import Bytes, Floats, Int32s, Ints
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import in_threads

FACE, EDGES, CORNERS = 0, 1, 4
"""Features of a face: itself; its edges, of which the first leads from corner 0 to 1; its corners.
There are seven, and one pseudonormal for each."""
FLAT = 1e-12
"""A part is flat if its volume is less than this share of that of a cube of its surface."""

MIN_SLOTS = 8
"""Of a hash table of vertices or edges; a power of two."""

_FREE, _OTHERS, _NO_EDGE = -1, -2, -3
_COUNT, _FILL = False, True


@dataclass(frozen=True)
class Topology:
    """The surfaces of k elements with m faces in all, and their p parts.

    Parameters
    ----------
    side : int8[k]
        1 for a closed mesh, -1 for a closed mesh with its inside out, 0 for an open one.
    normals : float64[m, 7, 3]
        Of each face its unit normal and the pseudonormals of its edges and corners, which have any
        length; 0 for the normal of a face without area.
    reliable : uint8[m]
        Bit i is set where the pseudonormal of feature i tells inside from outside.
    part : int32[m]
        The part of each face.
    turn : int8[p]
        1 for a part whose faces are counter-clockwise seen from outside, -1 for one that is inside
        out, such as the wall of a cavity.
    part_starts : int64[p + 1]
    part_faces : int32[m]
        The faces of each part.
    part_boxes : float64[p, 6]
    near_starts : int64[p + 1]
    near : int32[]
        The other parts of the same closed element whose boxes meet that of the part.
    """

    side: Any
    normals: Floats
    reliable: Bytes
    part: Int32s
    turn: Any
    part_starts: Ints
    part_faces: Int32s
    part_boxes: Floats
    near_starts: Ints
    near: Int32s

    @classmethod
    def of(cls, meshes: Meshes) -> "Topology":
        """Describe the surfaces of meshes in the memory of the host."""
        vertices, faces, vertex_starts, face_starts = meshes.arrays
        limits = boxes.of(meshes)
        side, parts = np.empty(len(meshes), np.int8), np.empty(len(meshes), np.int32)
        label = np.empty(len(vertices), np.int32)
        m, k = len(faces), len(meshes)
        bits = vertices.view(np.uint64)
        normals = buffers.zeros((m, 7, 3))
        reliable = np.zeros(m, np.uint8)
        root, turn = np.empty(m, np.int32), np.zeros(m, np.int8)
        most = int(np.diff(face_starts).max(initial=0))
        most_vertices = int(np.diff(vertex_starts).max(initial=0))

        def find_parts(span: tuple[int, int]) -> None:
            describe(
                vertices, bits, faces, vertex_starts, face_starts, limits, *span, side, label, parts
            )
            weld = np.empty(_slots(most_vertices), np.int32)
            edges = np.empty(_slots(3 * most), np.int32)
            same = np.empty(most_vertices, np.int32)
            of_vertex = np.empty(most_vertices, np.int32)
            twin = np.empty(3 * most, np.int32)
            corner = np.empty(3 * most, np.int32)
            sums = np.empty((3 * most, 3))
            _describe(
                vertices, bits, faces, vertex_starts, face_starts, *span, weld, edges, same,
                of_vertex, twin, corner, sums, normals, reliable, root, turn,
            )  # fmt: skip

        in_threads(find_parts, k)
        # a part is named by its first face, so that parts are in the order of the faces
        heads = np.flatnonzero(root == np.arange(m, dtype=np.int32))
        number = np.empty(m, np.int32)
        number[heads] = np.arange(len(heads), dtype=np.int32)
        part = number[root]
        part_faces = np.argsort(part, kind="stable").astype(np.int32)
        part_starts = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=len(heads)))])
        part_boxes = np.empty((len(heads), 6))
        corners = vertices[meshes.global_faces[part_faces].ravel()].reshape(-1, 9)
        if len(heads):
            for axis in range(3):
                along = corners[:, axis::3]
                low = np.minimum.reduceat(along.min(axis=1), part_starts[:-1])
                part_boxes[:, axis] = low
                part_boxes[:, axis + 3] = np.maximum.reduceat(along.max(axis=1), part_starts[:-1])
        element = meshes.face_mesh[heads]
        element_parts = np.searchsorted(element, np.arange(k + 1))
        near_starts, near = _near_parts(part_boxes, element_parts, side)
        return cls(
            side, normals, reliable, part, turn[heads], part_starts, part_faces, part_boxes,
            near_starts, near,
        )  # fmt: skip

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays, in the order in which kernels take them."""
        return tuple(getattr(self, each.name) for each in fields(self))


def _slots(entries: int) -> int:
    """Say how many slots a hash table of the largest element takes."""
    slots = MIN_SLOTS
    while slots < 2 * entries:
        slots *= 2
    return slots


def _near_parts(limits: Any, element_parts: Any, side: Any) -> tuple[Any, Any]:
    """List the parts of the same element whose boxes meet."""
    counts = np.zeros(len(limits), np.int64)
    nothing = np.empty(0, np.int32)
    starts = np.zeros(len(limits) + 1, np.int64)
    _list_near(limits, element_parts, side, counts, starts, nothing, _COUNT)
    np.cumsum(counts, out=starts[1:])
    near = np.empty(int(starts[-1]), np.int32)
    _list_near(limits, element_parts, side, counts, starts, near, _FILL)
    return starts, near


@njit(cache=True, nogil=True)
def _list_near(limits, element_parts, side, counts, starts, near, fill):
    for e in range(element_parts.size - 1):
        if side[e] == 0:
            continue
        for i in range(element_parts[e], element_parts[e + 1]):
            found = 0
            for j in range(element_parts[e], element_parts[e + 1]):
                if i == j:
                    continue
                meet = True
                for axis in range(3):
                    if (
                        limits[i, axis] > limits[j, axis + 3]
                        or limits[j, axis] > limits[i, axis + 3]
                    ):
                        meet = False
                        break
                if meet:
                    if fill:
                        near[starts[i] + found] = j
                    found += 1
            counts[i] = found


@njit(cache=True, nogil=True, error_model="numpy")
def _describe(
    vertices, bits, faces, vertex_starts, face_starts, first, stop, weld, edges, same,
    of_vertex, twin, corner, sums, normals, reliable, root, turn,
):  # fmt: skip
    """Describe the elements first to stop; the arrays from `weld` to `sums` are scratch."""
    for e in range(first, stop):
        v0, v1 = vertex_starts[e], vertex_starts[e + 1]
        f0, f1 = face_starts[e], face_starts[e + 1]
        _weld(bits, v0, v1, weld, same)
        _match_edges(faces, f0, f1, edges, same, twin, corner, root)
        for f in range(f1 - 1, f0 - 1, -1):  # a face is joined to one before it
            root[f] = f0 + first_of(root, f0, f - f0)
        _add_normals(vertices, faces, v0, f0, f1, corner, sums, normals, reliable)
        _add_pseudonormals(faces, f0, f1, same, of_vertex, twin, corner, sums, normals, reliable)
        _turn(vertices, faces, v0, f0, f1, root, twin, sums, turn, reliable)


@njit(cache=True, nogil=True)
def _weld(bits, v0, v1, weld, same):
    """Find for each vertex the first one of the element with its coordinates."""
    slots = MIN_SLOTS
    while slots < 2 * (v1 - v0):
        slots *= 2
    for s in range(slots):
        weld[s] = -1
    mask = np.uint64(slots - 1)
    for v in range(v0, v1):
        slot = np.int64(place(bits[v, 0], bits[v, 1], bits[v, 2]) & mask)
        while True:
            w = weld[slot]
            if w < 0:
                weld[slot] = v - v0
                same[v - v0] = v - v0
                break
            if (
                _equal(bits[v, 0], bits[v0 + w, 0])
                and _equal(bits[v, 1], bits[v0 + w, 1])
                and _equal(bits[v, 2], bits[v0 + w, 2])
            ):
                same[v - v0] = w
                break
            slot = (slot + 1) & (slots - 1)


@njit(cache=True, nogil=True)
def _equal(one, two):
    """Whether two coordinates are equal, given as their bits: plus and minus zero are."""
    return one == two or (one | two) << np.uint64(1) == np.uint64(0)


@njit(cache=True, nogil=True)
def _match_edges(faces, f0, f1, edges, same, twin, corner, root):
    """Find for each directed edge the one of the neighbouring face, and join what they join."""
    slots = MIN_SLOTS
    while slots < 6 * (f1 - f0):
        slots *= 2
    for s in range(slots):
        edges[s] = -1
    for h in range(3 * (f1 - f0)):
        corner[h] = h
        twin[h] = _FREE
    for f in range(f0, f1):
        root[f] = f - f0
    for h in range(3 * (f1 - f0)):
        f = h // 3
        tail, head = same[faces[f0 + f, h % 3]], same[faces[f0 + f, (h + 1) % 3]]
        if tail == head:
            twin[h] = _NO_EDGE
            continue
        low, high = min(tail, head), max(tail, head)
        key = np.uint64(low) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(high) * np.uint64(
            0xC2B2AE3D27D4EB4F
        )
        key ^= key >> np.uint64(32)
        slot = np.int64(key & np.uint64(slots - 1))
        while True:
            g = edges[slot]
            if g < 0:
                edges[slot] = h
                break
            other_tail = same[faces[f0 + g // 3, g % 3]]
            other_head = same[faces[f0 + g // 3, (g + 1) % 3]]
            if min(other_tail, other_head) == low and max(other_tail, other_head) == high:
                join(root, f0, f, g // 3)
                if twin[g] == _FREE and other_tail == head:
                    twin[g], twin[h] = h, g
                else:  # a third face, or a face that is turned round
                    if twin[g] >= 0:
                        twin[twin[g]] = _OTHERS
                    twin[g] = twin[h] = _OTHERS
                break
            slot = (slot + 1) & (slots - 1)
    for h in range(3 * (f1 - f0)):
        g = twin[h]
        if g > h:
            join(corner, 0, h, _next(g))
            join(corner, 0, _next(h), g)


@njit(cache=True, nogil=True)
def _next(h):
    return h - 2 if h % 3 == 2 else h + 1


@njit(cache=True, nogil=True, error_model="numpy")
def _add_normals(vertices, faces, v0, f0, f1, corner, sums, normals, reliable):
    """Compute the normals of faces, and add them up round each corner, weighted by the angle."""
    for h in range(3 * (f1 - f0)):
        sums[h, 0] = sums[h, 1] = sums[h, 2] = 0.0
    for f in range(f0, f1):
        a, b, c = v0 + faces[f, 0], v0 + faces[f, 1], v0 + faces[f, 2]
        ux = vertices[b, 0] - vertices[a, 0]
        uy = vertices[b, 1] - vertices[a, 1]
        uz = vertices[b, 2] - vertices[a, 2]
        vx = vertices[c, 0] - vertices[a, 0]
        vy = vertices[c, 1] - vertices[a, 1]
        vz = vertices[c, 2] - vertices[a, 2]
        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        square = nx * nx + ny * ny + nz * nz
        u2, v2 = ux * ux + uy * uy + uz * uz, vx * vx + vy * vy + vz * vz
        if not square > 0.0:
            continue
        size = np.sqrt(square)
        nx, ny, nz = nx / size, ny / size, nz / size
        normals[f, 0, 0], normals[f, 0, 1], normals[f, 0, 2] = nx, ny, nz
        if square > THIN * u2 * v2:
            reliable[f] = 1
        uv = ux * vx + uy * vy + uz * vz
        at_a = np.arctan2(size, uv)
        at_b = np.arctan2(size, u2 - uv)
        for i in range(3):
            angle = at_a if i == 0 else (at_b if i == 1 else np.pi - at_a - at_b)
            h = first_of(corner, 0, 3 * (f - f0) + i)
            sums[h, 0] += angle * nx
            sums[h, 1] += angle * ny
            sums[h, 2] += angle * nz


@njit(cache=True, nogil=True, error_model="numpy")
def _add_pseudonormals(faces, f0, f1, same, of_vertex, twin, corner, sums, normals, reliable):
    """Give each face the pseudonormals of its edges and corners."""
    # what is known of the corners of a vertex: none yet, all in one fan, or not a manifold
    none, broken = -1, -2
    for f in range(f0, f1):
        for i in range(3):
            of_vertex[same[faces[f, i]]] = none
    for f in range(f0, f1):
        for i in range(3):
            h = 3 * (f - f0) + i
            v = same[faces[f, i]]
            fan = first_of(corner, 0, h)
            if of_vertex[v] == none:
                of_vertex[v] = fan
            if of_vertex[v] != fan or reliable[f] & 1 == 0:
                of_vertex[v] = broken
            if twin[h] < 0:
                of_vertex[v] = broken
                of_vertex[same[faces[f, (i + 1) % 3]]] = broken
    for f in range(f0, f1):
        good = reliable[f] & 1
        bits = good
        for i in range(3):
            h = 3 * (f - f0) + i
            g = twin[h]
            if g >= 0:
                other = f0 + g // 3
                for axis in range(3):
                    normals[f, EDGES + i, axis] = normals[f, 0, axis] + normals[other, 0, axis]
                if good == 1 and reliable[other] & 1 == 1:
                    bits |= 1 << (EDGES + i)
            fan = first_of(corner, 0, h)
            for axis in range(3):
                normals[f, CORNERS + i, axis] = sums[fan, axis]
            if of_vertex[same[faces[f, i]]] >= 0:
                bits |= 1 << (CORNERS + i)
        reliable[f] = bits


@njit(cache=True, nogil=True, error_model="numpy")
def _turn(vertices, faces, v0, f0, f1, root, twin, sums, turn, reliable):
    """Find whether parts are inside out; flat ones, and those that are no manifolds, need rays."""
    for f in range(f0, f1):
        head = root[f]
        if head == f:
            sums[f - f0, 0] = sums[f - f0, 1] = sums[f - f0, 2] = 0.0
        o = v0 + faces[head, 0]
        ax, ay, az = _minus(vertices, v0 + faces[f, 0], o)
        bx, by, bz = _minus(vertices, v0 + faces[f, 1], o)
        cx, cy, cz = _minus(vertices, v0 + faces[f, 2], o)
        nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
        sums[head - f0, 0] += ax * nx + ay * ny + az * nz
        bx, by, bz = bx - ax, by - ay, bz - az
        cx, cy, cz = cx - ax, cy - ay, cz - az
        nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
        sums[head - f0, 1] += np.sqrt(nx * nx + ny * ny + nz * nz)
        for i in range(3):
            if twin[3 * (f - f0) + i] == _OTHERS:
                sums[head - f0, 2] = 1.0
    for f in range(f0, f1):
        volume, area = sums[root[f] - f0, 0], sums[root[f] - f0, 1]
        turn[f] = -1 if volume < 0.0 else 1
        if sums[root[f] - f0, 2] > 0.0 or abs(volume) <= FLAT * area * np.sqrt(area):
            reliable[f] = 0


@njit(cache=True, nogil=True)
def _minus(vertices, a, o):
    return (
        vertices[a, 0] - vertices[o, 0],
        vertices[a, 1] - vertices[o, 1],
        vertices[a, 2] - vertices[o, 2],
    )
