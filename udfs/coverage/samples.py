"""A sample of a cloud: one point of each cube that has any, with the direction of its surface."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.geometry.eigen import eigen
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import in_threads, n_threads, steps, workers

AXIS_BITS = 20
"""Of a cube's place along an axis."""
SIDE = (1 << AXIS_BITS) - 8
"""Cubes along an axis at most; they are larger where there would be more."""
MIN_POINTS = 5
"""Points of a cube and its neighbours, at least, with which a direction is known."""
FLAT = 0.35
"""Share of the second variance that the smallest of a surface is less than: also where both faces
of a door of 40 mm were scanned."""


@dataclass(frozen=True)
class Samples:
    """One point of each cube, chosen by a hash of its coordinates: whichever order they come in.

    Parameters
    ----------
    low : float64[3], metres
        Where the cubes begin.
    size : float
        Metres: the edge of a cube.
    keys : int64[n]
        The cubes, in ascending order.
    counts : int64[n]
        How many points each has.
    points : float64[n, 3], metres
    normals : float64[n, 3]
        Unit vectors, of either sign; zeros where the direction is not known.
    slots : int32[m]
        Where each cube is in a table of hashes; -1 for none.
    """

    low: Any
    size: float
    keys: Any
    counts: Any
    points: Any
    normals: Any
    slots: Any

    @classmethod
    def of(cls, x: Any, y: Any, z: Any, metres: float, size: float) -> "Samples":
        """Choose the points of float64[n] x, y and z, in units of so many metres."""
        ends = np.zeros((3, 2))
        if len(x):
            ends = np.array([(each.min(), each.max()) for each in (x, y, z)]) * metres
        size = max(size, float((ends[:, 1] - ends[:, 0]).max()) / SIDE)
        low = ends[:, 0] - 2.0 * size
        bits = [each.view(np.uint64) for each in (x, y, z)]
        threads = n_threads()

        def choose(part: int) -> Any:
            table = _Table(1 << 14)
            for first, stop in steps(0, len(x)):
                while True:
                    arrays = table.keys, table.counts, table.ranks, table.points
                    first, table.used = _choose(
                        x, y, z, *bits, first, stop, metres, low, size, part, threads,
                        table.used, *arrays,
                    )  # fmt: skip
                    if first == stop:
                        break
                    table = table.doubled()
            kept = table.keys >= 0
            return table.keys[kept], table.counts[kept], table.points[kept]

        with workers(threads) as pool:
            found = pool.map(choose, range(threads))
        keys, counts, points = map(np.concatenate, zip(*found, strict=True))
        order = np.argsort(keys, kind="stable")
        keys, counts, points = keys[order], counts[order], points[order]
        slots = np.full(1 << max(4, int(2 * len(keys)).bit_length()), -1, np.int32)
        _index(keys, slots)
        normals = np.zeros((len(keys), 3))
        in_threads(lambda span: _orient(keys, slots, points, *span, normals), len(keys))
        return cls(low, size, keys, counts, points, normals, slots)


class _Table:
    """A table of hashes that grows."""

    def __init__(self, room: int) -> None:
        self.keys = np.full(room, -1, np.int64)
        self.counts = np.zeros(room, np.int64)
        self.ranks = np.zeros(room, np.uint64)
        self.points = np.zeros((room, 3))
        self.used = 0

    def doubled(self) -> "_Table":
        larger = _Table(2 * len(self.keys))
        larger.used = self.used
        _move(
            self.keys, self.counts, self.ranks, self.points,
            larger.keys, larger.counts, larger.ranks, larger.points,
        )  # fmt: skip
        return larger


@njit(cache=True, nogil=True, error_model="numpy")
def mix(key):  # type: ignore[no-untyped-def]
    """Hash 64 bits."""
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xC2B2AE3D27D4EB4F)
    return h ^ (h >> np.uint64(29))


@njit(cache=True, nogil=True, error_model="numpy")
def _choose(  # type: ignore[no-untyped-def]
    x, y, z, xb, yb, zb, first, stop, metres, low, size, part, parts, used,
    keys, counts, ranks, points,
):  # fmt: skip
    """Enter points first to stop of the cubes of a part; gives where it left off, and how many."""
    mask = np.uint64(keys.size - 1)
    scale = 1.0 / size
    for i in range(first, stop):
        px, py, pz = x[i] * metres, y[i] * metres, z[i] * metres
        a, b, c = (px - low[0]) * scale, (py - low[1]) * scale, (pz - low[2]) * scale
        key = (np.int64(a) << (2 * AXIS_BITS)) | (np.int64(b) << AXIS_BITS) | np.int64(c)
        h = mix(key)
        if np.int64(h >> np.uint64(40)) % parts != part:
            continue
        slot = np.int64(h & mask)
        while keys[slot] >= 0 and keys[slot] != key:
            slot = (slot + 1) & np.int64(mask)
        rank = mix(xb[i] ^ mix(yb[i] ^ mix(zb[i])))
        if keys[slot] < 0:
            if 2 * used >= keys.size:
                return i, used
            keys[slot] = key
            used += 1
            ranks[slot] = rank
            points[slot, 0], points[slot, 1], points[slot, 2] = px, py, pz
        elif rank < ranks[slot]:
            ranks[slot] = rank
            points[slot, 0], points[slot, 1], points[slot, 2] = px, py, pz
        counts[slot] += 1
    return stop, used


@njit(cache=True, nogil=True, error_model="numpy")
def _move(  # type: ignore[no-untyped-def]
    keys, counts, ranks, points, new_keys, new_counts, new_ranks, new_points
):
    """Enter what a table has into a larger one."""
    mask = np.int64(new_keys.size - 1)
    for i in range(keys.size):
        if keys[i] < 0:
            continue
        slot = np.int64(mix(keys[i]) & np.uint64(mask))
        while new_keys[slot] >= 0:
            slot = (slot + 1) & mask
        new_keys[slot], new_counts[slot], new_ranks[slot] = keys[i], counts[i], ranks[i]
        for k in range(3):
            new_points[slot, k] = points[i, k]


@njit(cache=True, nogil=True, error_model="numpy")
def _index(keys, slots):  # type: ignore[no-untyped-def]
    """Enter the rows of keys into a table of hashes."""
    mask = np.int64(slots.size - 1)
    for i in range(keys.size):
        slot = np.int64(mix(keys[i]) & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = i


@njit(cache=True, nogil=True, error_model="numpy")
def look_up(keys, slots, a, b, c):  # type: ignore[no-untyped-def]
    """Give the row of the cube at a place, -1 where there is none."""
    if a < 0 or b < 0 or c < 0:
        return np.int64(-1)
    key = (np.int64(a) << (2 * AXIS_BITS)) | (np.int64(b) << AXIS_BITS) | np.int64(c)
    mask = np.int64(slots.size - 1)
    slot = np.int64(mix(key) & np.uint64(mask))
    while slots[slot] >= 0:
        row = np.int64(slots[slot])
        if keys[row] == key:
            return row
        slot = (slot + 1) & mask
    return np.int64(-1)


@njit(cache=True, nogil=True, error_model="numpy")
def _orient(keys, slots, points, first, stop, normals):  # type: ignore[no-untyped-def]
    """Find the direction of the surface around the points first to stop."""
    values, vectors = np.empty(3), np.empty((3, 3))
    mask = (1 << AXIS_BITS) - 1
    for i in range(first, stop):
        a, b, c = keys[i] >> (2 * AXIS_BITS), (keys[i] >> AXIS_BITS) & mask, keys[i] & mask
        n = 0
        sx = sy = sz = xx = xy = xz = yy = yz = zz = 0.0
        for da in range(-1, 2):
            for db in range(-1, 2):
                for dc in range(-1, 2):
                    row = look_up(keys, slots, a + da, b + db, c + dc)
                    if row < 0:
                        continue
                    dx = points[row, 0] - points[i, 0]
                    dy = points[row, 1] - points[i, 1]
                    dz = points[row, 2] - points[i, 2]
                    n += 1
                    sx, sy, sz = sx + dx, sy + dy, sz + dz
                    xx, xy, xz = xx + dx * dx, xy + dx * dy, xz + dx * dz
                    yy, yz, zz = yy + dy * dy, yz + dy * dz, zz + dz * dz
        if n < MIN_POINTS:
            continue
        eigen(
            xx - sx * sx / n, xy - sx * sy / n, xz - sx * sz / n,
            yy - sy * sy / n, yz - sy * sz / n, zz - sz * sz / n, values, vectors,
        )  # fmt: skip
        if values[0] < FLAT * values[1]:
            for k in range(3):
                normals[i, k] = vectors[0, k]
