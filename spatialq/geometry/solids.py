"""Properties of meshes as solids: closed or open, orientation, connected parts."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spatialq.runtime.compile_cache import njit

from . import boxes

if TYPE_CHECKING:
    from spatialq.data.meshes import Meshes

ONE = np.uint64(0x9E3779B97F4A7C15)
TWO = np.uint64(0xC2B2AE3D27D4EB4F)
THREE = np.uint64(0x165667B19E3779F9)
HALF = np.uint64(32)
SHORT = np.uint64(29)
PARTS = float(1 << 36)
"""Units of the element's box in which volumes are added: the order of integers does not matter."""
MINUS_ZERO = np.uint64(1 << 63)


class Solids(NamedTuple):
    """What kernels need to know of k elements, as plain arrays: see `PreparedMeshes`."""

    vertices: Any
    faces: Any
    vertex_starts: Any
    face_starts: Any
    boxes: Any
    side: Any
    label: Any
    parts: Any
    cluster_starts: Any
    clusters: Any


def sides(meshes: "Meshes") -> Any:
    """Say which meshes are closed: int8[k], 1, or -1 with their inside out; 0 for open ones."""
    side = np.empty(len(meshes), np.int8)
    label = np.empty(len(meshes.vertices), np.int32)
    parts = np.empty(len(meshes), np.int32)
    vertices, *rest = meshes.arrays
    limits = boxes.of(meshes)
    describe(
        vertices, vertices.view(np.uint64), *rest, limits, 0, len(meshes), side, label, parts
    )  # fmt: skip
    return side


@njit(cache=True, nogil=True, error_model="numpy")
def describe(
    vertices: Any,
    bits: Any,
    faces: Any,
    vertex_starts: Any,
    face_starts: Any,
    boxes: Any,
    first: int,
    stop: int,
    side: Any,
    label: Any,
    parts: Any,
):
    """Describe the elements first to stop.

    Parameters
    ----------
    vertices : float64[n, 3]
    bits : uint64[n, 3]
        The same memory.
    faces, vertex_starts, face_starts
        See `Meshes`.
    boxes : float64[k, 6]
    first, stop : int
    side : int8[k]
        Out: 1 for a closed mesh, -1 for a closed mesh with its inside out, 0 for an open one.
    label : int32[n]
        Out: the first vertex of the part that a vertex is connected to, counted from the first
        of the element; -1 where no face uses the vertex.
    parts : int32[k]
        Out: how many parts there are.

    Notes
    -----
    A mesh is closed if every edge is traversed equally often in both directions. Testing that needs
    no sorting: each edge adds a number made of its ends, negated in one of the directions, modulo
    2**64. The ends are identified by their coordinates, so that vertices need not be shared.
    """
    for e in range(first, stop):
        v0 = vertex_starts[e]
        f0 = face_starts[e]
        f1 = face_starts[e + 1]
        for v in range(v0, vertex_starts[e + 1]):
            label[v] = -1
        balance = np.uint64(0)
        volume = np.int64(0)
        unit = 0.0
        if f1 > f0:
            room = (
                (boxes[e, 3] - boxes[e, 0])
                * (boxes[e, 4] - boxes[e, 1])
                * (boxes[e, 5] - boxes[e, 2])
            )
            unit = PARTS / room if room > 1e-280 else 0.0
            ox = vertices[v0 + faces[f0, 0], 0]
            oy = vertices[v0 + faces[f0, 0], 1]
            oz = vertices[v0 + faces[f0, 0], 2]
        for f in range(f0, f1):
            a = v0 + faces[f, 0]
            b = v0 + faces[f, 1]
            c = v0 + faces[f, 2]
            ka = place(bits[a, 0], bits[a, 1], bits[a, 2])
            kb = place(bits[b, 0], bits[b, 1], bits[b, 2])
            kc = place(bits[c, 0], bits[c, 1], bits[c, 2])
            balance += edge(ka, kb) + edge(kb, kc) + edge(kc, ka)
            ax = vertices[a, 0] - ox
            ay = vertices[a, 1] - oy
            az = vertices[a, 2] - oz
            bx = vertices[b, 0] - ox
            by = vertices[b, 1] - oy
            bz = vertices[b, 2] - oz
            cx = vertices[c, 0] - ox
            cy = vertices[c, 1] - oy
            cz = vertices[c, 2] - oz
            six = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
            volume += np.int64(np.floor(six * unit + 0.5))
            join(label, v0, a - v0, b - v0)
            join(label, v0, a - v0, c - v0)
        side[e] = 0 if balance != 0 or f1 == f0 else (-1 if volume < 0 else 1)
        count = 0
        for v in range(v0, vertex_starts[e + 1]):
            if label[v] >= 0:
                label[v] = root(label, v0, v - v0)
                if label[v] == v - v0:
                    count += 1
        parts[e] = count


@njit(cache=True, nogil=True, error_model="numpy")
def place(x, y, z):
    """Hash a position; plus and minus zero are equal."""
    if x == MINUS_ZERO:
        x = np.uint64(0)
    if y == MINUS_ZERO:
        y = np.uint64(0)
    if z == MINUS_ZERO:
        z = np.uint64(0)
    k = (x ^ (x >> HALF)) * ONE
    k = ((k + y) ^ (k >> SHORT)) * TWO
    k = ((k + z) ^ (k >> HALF)) * THREE
    return k ^ (k >> SHORT)


@njit(cache=True, nogil=True, error_model="numpy")
def edge(tail, head):
    """Hash an edge; the edge in the other direction has the negative of its hash."""
    if tail == head:
        return np.uint64(0)
    low = tail if tail < head else head
    high = head if tail < head else tail
    k = (low * ONE) ^ (high * TWO + THREE)
    k = (k ^ (k >> HALF)) * THREE
    k ^= k >> SHORT
    return k if tail < head else ~k + np.uint64(1)


@njit(cache=True, nogil=True, error_model="numpy")
def root(label, v0, v):
    """Find the first vertex of the part of v, and compress the path to it."""
    while label[v0 + v] != v:
        label[v0 + v] = label[v0 + label[v0 + v]]
        v = label[v0 + v]
    return v


@njit(cache=True, nogil=True, error_model="numpy")
def join(label, v0, v, w):
    """Join the parts of two vertices."""
    if label[v0 + v] < 0:
        label[v0 + v] = v
    if label[v0 + w] < 0:
        label[v0 + w] = w
    v = root(label, v0, v)
    w = root(label, v0, w)
    if v < w:
        label[v0 + w] = v
    else:
        label[v0 + v] = w
