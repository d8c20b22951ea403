"""Rays and triangles: the first triangle that a ray hits, or whether it hits any.

The triangles are in a tree of boxes. Each node is divided where the surface area heuristic says
that a ray costs least, among planes at equal distances across the centres of its triangles. A ray
goes down the nearer child first, and leaves out what is beyond the nearest hit so far.

References
----------
I. Wald: On fast construction of SAH-based bounding volume hierarchies (2007), section 3.
T. Moeller, B. Trumbore: Fast, minimum storage ray-triangle intersection (1997).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.data.points import read_only
from spatialq.runtime import progress
from spatialq.runtime.arrays import Floats, Int32s, Ints
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import in_threads

BINS = 12
"""Places along an axis where a node may be divided."""
LEAF = 4
"""Triangles of a leaf at most, unless their centres are one point."""
DEPTH = 96
"""Levels of the tree at most: what is there is a leaf, however many triangles it has."""
EDGE = 1e-9
"""How far beyond the edges of a triangle, as a share of them, a ray hits it: no ray passes between
two triangles that share an edge."""


@dataclass(frozen=True)
class TriangleTree:
    """Triangles in a tree of boxes.

    Parameters
    ----------
    corners : float64[m, 9]
        Of each triangle the first corner and the two edges from there, in the order of the tree.
    rows : int64[m]
        Which triangles they are.
    boxes : float64[k, 6]
        xmin, ymin, zmin, xmax, ymax, zmax of each node, the root first.
    links : int32[k, 2]
        Of a leaf the first triangle and the end; of another node -1 less the first child, behind
        which the second one is, and 0.
    """

    corners: Floats
    rows: Ints
    boxes: Floats
    links: Int32s

    @classmethod
    def of(cls, meshes: Meshes) -> "TriangleTree":
        """Build the tree of all triangles of meshes."""
        return cls.over(meshes.vertices[meshes.global_faces])

    @classmethod
    def over(cls, triangles: Any) -> "TriangleTree":
        """Build the tree of float64[m, 3, 3], the corners of m triangles."""
        triangles = np.asarray(triangles, np.float64)
        m = len(triangles)
        limits = np.concatenate([triangles.min(axis=1), triangles.max(axis=1)], axis=1)
        rows, boxes = np.arange(m), np.empty((max(1, 2 * m), 6))
        links = np.zeros((max(1, 2 * m), 2), np.int32)
        count = _build(limits, rows, boxes, links)
        first = triangles[rows, 0]
        edges = [first, triangles[rows, 1] - first, triangles[rows, 2] - first]
        corners = np.concatenate(edges, axis=1)
        return cls(corners, rows, boxes[:count].copy(), links[:count].copy())

    def first_hits(
        self, origins: Floats, directions: Floats, reach: Any = np.inf
    ) -> tuple[Any, Any]:
        """Find the first triangle that each ray hits, from either side.

        Parameters
        ----------
        origins, directions : float64[n, 3]
            A direction may have any length.
        reach : float or float64[n]
            In lengths of the direction: what is beyond is not hit.

        Returns
        -------
        distance : float64[n]
            From the origin to the hit, in lengths of the direction; inf where there is none.
        row : int64[n]
            The triangle, -1 for none; of several at one distance that of the lowest row.
        """
        return self._cast(origins, directions, reach, is_any=False)

    def are_blocked(self, origins: Any, directions: Any, reach: Any = np.inf) -> Any:
        """Say whether rays hit any triangle within their reach: bool[n]; see `first_hits`."""
        return self._cast(origins, directions, reach, is_any=True)[1] >= 0

    def _cast(self, origins: Any, directions: Any, reach: Any, *, is_any: bool) -> tuple[Any, Any]:
        origins, directions = (
            read_only(np.ascontiguousarray(each, np.float64)) for each in (origins, directions)
        )
        n = len(directions)
        distance, row = np.empty(n), np.empty(n, np.int64)
        distance[:] = reach
        tree = (self.corners, self.rows, self.boxes, self.links)
        halt = progress.stop_flag()

        def cast(span: tuple[int, int]) -> None:
            _cast(*tree, origins, directions, is_any, *span, halt, distance, row)

        in_threads(cast, n, most=1 << 16, worth=256)
        distance[row < 0] = np.inf
        return distance, row


@njit(cache=True, nogil=True, error_model="numpy")
def _build(limits, rows, boxes, links):  # type: ignore[no-untyped-def]
    """Divide triangles, given by their boxes, into a tree; sorts `rows`, gives how many nodes."""
    first_of, stop_of = np.empty(DEPTH, np.int64), np.empty(DEPTH, np.int64)
    node_of, depth_of = np.empty(DEPTH, np.int64), np.zeros(DEPTH, np.int64)
    counts = np.empty(BINS, np.int64)
    bins, sides = np.empty((BINS, 6)), np.empty(BINS)
    first_of[0], stop_of[0], node_of[0] = 0, rows.size, 0
    waiting, count = 1, 1
    while waiting > 0:
        waiting -= 1
        first, stop, node = first_of[waiting], stop_of[waiting], node_of[waiting]
        depth = depth_of[waiting]
        for k in range(3):
            boxes[node, k], boxes[node, k + 3] = np.inf, -np.inf
        low0, low1, low2 = np.inf, np.inf, np.inf
        high0, high1, high2 = -np.inf, -np.inf, -np.inf
        for n in range(first, stop):
            r = rows[n]
            for k in range(3):
                boxes[node, k] = min(boxes[node, k], limits[r, k])
                boxes[node, k + 3] = max(boxes[node, k + 3], limits[r, k + 3])
            c0 = limits[r, 0] + limits[r, 3]
            c1 = limits[r, 1] + limits[r, 4]
            c2 = limits[r, 2] + limits[r, 5]
            low0, high0 = min(low0, c0), max(high0, c0)
            low1, high1 = min(low1, c1), max(high1, c1)
            low2, high2 = min(low2, c2), max(high2, c2)
        links[node, 0], links[node, 1] = first, stop
        if stop - first <= LEAF or depth + 2 >= DEPTH:
            continue
        axis, low, high = 0, low0, high0
        if high1 - low1 > high - low:
            axis, low, high = 1, low1, high1
        if high2 - low2 > high - low:
            axis, low, high = 2, low2, high2
        if not high > low:
            continue
        scale = BINS / (high - low)
        for b in range(BINS):
            counts[b] = 0
            for k in range(3):
                bins[b, k], bins[b, k + 3] = np.inf, -np.inf
        for n in range(first, stop):
            r = rows[n]
            b = min(BINS - 1, int((limits[r, axis] + limits[r, axis + 3] - low) * scale))
            counts[b] += 1
            for k in range(3):
                bins[b, k] = min(bins[b, k], limits[r, k])
                bins[b, k + 3] = max(bins[b, k + 3], limits[r, k + 3])
        # the cost of all triangles from each bin on, then of those before it
        for way in range(2):
            a0, a1, a2 = np.inf, np.inf, np.inf
            b0, b1, b2 = -np.inf, -np.inf, -np.inf
            there = 0
            for step in range(BINS):
                b = BINS - 1 - step if way == 0 else step
                if way == 1:
                    area = (b0 - a0) * (b1 - a1) + (b1 - a1) * (b2 - a2) + (b2 - a2) * (b0 - a0)
                    if there == 0 or sides[b] == np.inf:
                        sides[b] = np.inf
                    else:
                        sides[b] += there * area
                there += counts[b]
                a0, a1, a2 = min(a0, bins[b, 0]), min(a1, bins[b, 1]), min(a2, bins[b, 2])
                b0, b1, b2 = max(b0, bins[b, 3]), max(b1, bins[b, 4]), max(b2, bins[b, 5])
                if way == 0:
                    area = (b0 - a0) * (b1 - a1) + (b1 - a1) * (b2 - a2) + (b2 - a2) * (b0 - a0)
                    sides[b] = there * area if there > 0 else np.inf
        best = 0
        for b in range(1, BINS):
            if sides[b] < sides[best]:
                best = b
        middle = first
        for n in range(first, stop):
            r = rows[n]
            if int((limits[r, axis] + limits[r, axis + 3] - low) * scale) < best:
                rows[n], rows[middle] = rows[middle], r
                middle += 1
        if middle in (first, stop):
            continue
        links[node, 0], links[node, 1] = -1 - count, 0
        # the larger part waits: so few wait at once
        for part in range(2):
            is_left = (part == 0) == (middle - first > stop - middle)
            first_of[waiting] = first if is_left else middle
            stop_of[waiting] = middle if is_left else stop
            node_of[waiting] = count if is_left else count + 1
            depth_of[waiting] = depth + 1
            waiting += 1
        count += 2
    return count


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _enter(boxes, node, ox, oy, oz, ix, iy, iz, reach):  # type: ignore[no-untyped-def]
    """Give where a ray enters the box of a node, inf if it does not within its reach."""
    a, b = (boxes[node, 0] - ox) * ix, (boxes[node, 3] - ox) * ix
    near, far = min(a, b), max(a, b)
    a, b = (boxes[node, 1] - oy) * iy, (boxes[node, 4] - oy) * iy
    near, far = max(near, min(a, b)), min(far, max(a, b))
    a, b = (boxes[node, 2] - oz) * iz, (boxes[node, 5] - oz) * iz
    near, far = max(near, min(a, b)), min(far, max(a, b))
    # roundings of a flat box must not hide what is in it
    if near <= far * (1.0 + 1e-12) + 1e-300 and far >= 0.0 and near <= reach:
        return near
    return np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def _cast(  # type: ignore[no-untyped-def]
    corners, rows, boxes, links, origins, directions, is_any, start, stop, halt, distance, row
):
    """Cast rays start to stop: `distance` has their reaches, and gets the distances of hits."""
    waiting, begin = np.empty(DEPTH + 2, np.int64), np.empty(DEPTH + 2)
    tiny = 1e-300
    for i in range(start, stop):
        row[i] = -1
        if halt[0]:
            continue
        ox, oy, oz = origins[i, 0], origins[i, 1], origins[i, 2]
        dx, dy, dz = directions[i, 0], directions[i, 1], directions[i, 2]
        # a component of 0 must not make NaN of a box that begins at the origin
        ix = 1.0 / (dx if abs(dx) > tiny else tiny)
        iy = 1.0 / (dy if abs(dy) > tiny else tiny)
        iz = 1.0 / (dz if abs(dz) > tiny else tiny)
        reach, found = distance[i], np.int64(-1)
        n = 0
        near = _enter(boxes, 0, ox, oy, oz, ix, iy, iz, reach)
        if near < np.inf and rows.size > 0:
            waiting[0], begin[0] = 0, near
            n = 1
        while n > 0:
            n -= 1
            if begin[n] > reach:
                continue
            node = waiting[n]
            first, end = links[node, 0], links[node, 1]
            if first < 0:
                left = -1 - first
                a = _enter(boxes, left, ox, oy, oz, ix, iy, iz, reach)
                b = _enter(boxes, left + 1, ox, oy, oz, ix, iy, iz, reach)
                nearer, farther = left, left + 1
                if b < a:
                    nearer, farther, a, b = farther, nearer, b, a
                if b < np.inf:
                    waiting[n], begin[n] = farther, b
                    n += 1
                if a < np.inf:
                    waiting[n], begin[n] = nearer, a
                    n += 1
                continue
            for k in range(first, end):
                ex, ey, ez = corners[k, 3], corners[k, 4], corners[k, 5]
                fx, fy, fz = corners[k, 6], corners[k, 7], corners[k, 8]
                px, py, pz = dy * fz - dz * fy, dz * fx - dx * fz, dx * fy - dy * fx
                det = ex * px + ey * py + ez * pz
                if det == 0.0:
                    continue
                inverse = 1.0 / det
                tx, ty, tz = ox - corners[k, 0], oy - corners[k, 1], oz - corners[k, 2]
                u = (tx * px + ty * py + tz * pz) * inverse
                if u < -EDGE or u > 1.0 + EDGE:
                    continue
                qx, qy, qz = ty * ez - tz * ey, tz * ex - tx * ez, tx * ey - ty * ex
                v = (dx * qx + dy * qy + dz * qz) * inverse
                if v < -EDGE or u + v > 1.0 + EDGE:
                    continue
                t = (fx * qx + fy * qy + fz * qz) * inverse
                if t < 0.0 or t > reach:
                    continue
                if t < reach or found < 0 or rows[k] < found:
                    reach, found = t, rows[k]
            if is_any and found >= 0:
                n = 0
        distance[i], row[i] = reach, found
