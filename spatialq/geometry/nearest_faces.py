"""The nearest face of meshes within a distance of points, and on which side of it they are.

Space around the faces is divided into cubes, a coarse grid of octrees. A leaf lists the faces that
may be the nearest to a point in it: with c its centre, r half its diagonal and d the smallest
distance of a face from c, those within d + 2 r of c, and within r + max_distance. Cubes with many
faces are divided, so that the lists are short wherever the surfaces are simple, whatever the
distance and however far the elements are apart.

Of the faces listed, one whose plane is farther than the best so far is skipped; the others are
measured by `triangles.squared_distance_point_triangle`. Which faces are compared does not change
the result: the face with the smallest squared distance as computed, of several the first.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.data.points import read_only
from spatialq.geometry.surface_topology import CORNERS, EDGES, FACE, Topology
from spatialq.geometry.triangles import THIN, squared_distance_point_triangle
from spatialq.geometry.winding import crossings
from spatialq.runtime import buffers
from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import chunks, in_threads, workers

TOP_CUBES = 1 << 15
"""Cubes of the coarse grid at most."""
FACES_OF_LEAF = 8
"""A cube with more of them is divided."""
LEVELS = 16
"""How often a cube may be divided."""
GROWTH = 8
"""Cubes are divided while those with many faces list fewer than so many per face in all; round
edges where many faces meet this would never end."""
WORTH = 0.75
"""A cube stays whole if its eighths have on average more than this share of its faces."""
SLACK = 1e-9
"""Share of a length by which bounds are widened, for rounding."""
POINTS = 1 << 16
"""Points of a chunk of the search."""
NO_FACE = -1
_COUNT, _FILL = False, True


@dataclass(frozen=True)
class FaceDistances:
    """The nearest faces of n points.

    Parameters
    ----------
    face : int64[n]
        Row of the face among those of all meshes; -1 where none is within the distance.
    distance : float64[n]
        Metres: negative inside a closed mesh, positive outside and beside an open one; NaN where
        there is no face.
    foot : float64[n, 3] or None
        The nearest point of the face, in metres; NaN where there is none. None unless it was
        asked for.
    """

    face: Ints
    distance: Floats
    foot: Floats | None


class NearestFaces:
    """Meshes prepared for the search of the nearest faces of any number of points.

    Parameters
    ----------
    meshes : Meshes
        Of k elements, in the memory of the host, in metres.
    max_distance : float
        Metres: how far from a face a point may be.

    Attributes
    ----------
    meshes : Meshes
    topology : Topology
        Which of the meshes are closed, and their normals.
    triangles : float64[m, 12]
        Of each face the first corner, the unit normal (0 without an area), and the edges from the
        first corner to the others.
    corners : int64[m, 3]
        The vertices of each face.
    mesh_of : int32[m]
        The mesh of each face.
    nodes : int32[]
        The cubes of the coarse grid, x slowest, then eight at a time those of divided ones: the
        first of its eighths, or -1 - the number of a leaf. Leaf 0 is empty.
    leaf_starts : int64[leaves + 1]
    leaf_faces : int32[]
        The faces that each leaf lists.
    grid : float64[4]
        The corner of the coarse grid in metres, and how many of the smallest cubes there are in a
        metre.
    shape : int64[4]
        Cubes of the coarse grid along each axis, and the levels below it.
    """

    def __init__(self, meshes: Meshes, max_distance: float) -> None:
        self.meshes, self.max_distance = meshes, float(max_distance)
        self.topology = Topology.of(meshes)
        self.mesh_of = meshes.face_mesh.astype(np.int32)
        vertices, *_ = meshes.arrays
        m = len(meshes.faces)
        corners = meshes.global_faces
        self.corners = read_only(corners)
        used = vertices[corners.ravel()] if m else np.zeros((1, 3))
        self._low, self._high = used.min(axis=0), used.max(axis=0)
        self.triangles = buffers.empty((m, 12))
        normals = self.topology.normals
        in_threads(
            lambda span: _lay_triangles(vertices, self.corners, normals, *span, self.triangles), m
        )
        # coordinates have rounding errors of this size at most
        self.rounding = 16 * np.finfo(np.float64).eps * float(np.abs(used).max())
        self._divide()

    @property
    def search_arrays(self) -> tuple[Any, ...]:
        """What kernels need to find faces, in their order."""
        return (
            self.nodes, self.leaf_starts, self.leaf_faces, self.triangles, self.grid, self.shape,
        )  # fmt: skip

    @property
    def sign_arrays(self) -> tuple[Any, ...]:
        """What kernels need to tell inside from outside, in their order."""
        known = self.topology
        return (
            self.meshes.arrays[0], self.corners, self.mesh_of, known.side, known.normals,
            known.reliable, known.part, known.turn, known.part_starts, known.part_faces,
            known.part_boxes, known.near_starts, known.near,
        )  # fmt: skip

    def find(
        self, x: Floats, y: Floats, z: Floats, metres: float = 1.0, *, feet: bool = False
    ) -> FaceDistances:
        """Find the nearest face of each point.

        Parameters
        ----------
        x, y, z : float64[n]
            Finite; see `spatialq.data.points.all_finite`.
        metres : float
            Metres in a unit of the coordinates.
        feet : bool
            Whether the nearest points are wanted.
        """
        n = len(x)
        cloud = (read_only(x), read_only(y), read_only(z))
        face, distance = buffers.empty(n, np.int64), buffers.empty(n)
        foot = buffers.empty((n if feet else 0, 3))

        def search(first: int, stop: int) -> None:
            _search(
                *cloud, first, stop, metres, self.max_distance, self.rounding,
                *self.search_arrays, *self.sign_arrays, face, distance, feet, foot,
            )  # fmt: skip

        with workers() as pool:
            pool.map(lambda part: search(*part), chunks(n, POINTS))
        return FaceDistances(face, distance, foot if feet else None)

    def _divide(self) -> None:
        """Divide space into the cubes whose lists of faces are short."""
        margin = self.max_distance * (1 + SLACK) + self.rounding
        low, high = self._low - margin, self._high + margin
        extent = np.maximum(high - low, self.rounding + 1e-12)
        m = len(self.triangles)
        most = min(TOP_CUBES, max(64, 8 * m))
        size = max(float(extent.max()) / most, float((extent.prod() / most) ** (1 / 3)))
        while np.prod(np.floor(extent / size) + 1) > most:
            size *= 1.1
        shape = (np.floor(extent / size) + 1).astype(np.int64)
        cubes = int(shape.prod())
        places = np.stack(np.unravel_index(np.arange(cubes), shape), axis=1).astype(np.int32)
        counts = np.zeros(cubes, np.int64)
        nothing = np.empty(0, np.int32)
        reach = self.max_distance
        _enter(
            self.triangles,
            low,
            size,
            shape,
            reach,
            self.rounding,
            counts,
            counts,
            nothing,
            _COUNT,
        )
        starts = np.concatenate([[0], np.cumsum(counts)])
        faces = np.empty(int(starts[-1]), np.int32)
        counts[:] = 0
        _enter(
            self.triangles,
            low,
            size,
            shape,
            reach,
            self.rounding,
            counts,
            starts,
            faces,
            _FILL,
        )
        nodes = [np.full(cubes, -1, np.int32)]
        at, total = np.arange(cubes), cubes
        leaf_counts: list[Any] = [np.zeros(1, np.int64)]
        leaf_faces: list[Any] = []
        leaves, level = 1, 0
        counts = np.diff(starts)
        while True:
            deep = counts > FACES_OF_LEAF
            if level == LEVELS or counts[deep].sum() > GROWTH * (m + TOP_CUBES):
                deep[:] = False
            kept = np.flatnonzero(~deep & (counts > 0))
            nodes_flat = nodes[-1]
            base = total - len(nodes_flat)
            nodes_flat[at[kept] - base] = -1 - (leaves + np.arange(len(kept)))
            leaves += len(kept)
            leaf_counts.append(counts[kept])
            leaf_faces.append(_gather(starts, counts, faces, kept))
            rows = np.flatnonzero(deep)
            if not len(rows):
                break
            faces = _gather(starts, counts, faces, rows)
            counts = counts[rows]
            starts = np.concatenate([[0], np.cumsum(counts)])
            places, at = places[rows], at[rows]
            half = size / 2 ** (level + 1)
            eighths = buffers.scratch(8 * int(starts[-1]), np.int32)
            found = np.zeros((len(rows), 8), np.int64)

            def split(span: tuple[int, int], of: Any = (places, starts, faces, half, found,
                                                        eighths)) -> None:  # fmt: skip
                places, starts, faces, half, found, eighths = of
                _split(
                    self.triangles,
                    low,
                    half,
                    reach,
                    self.rounding,
                    places,
                    starts,
                    faces,
                    *span,
                    found,
                    eighths,
                )

            in_threads(split, len(rows))
            worth = found.sum(axis=1) <= 8 * WORTH * counts
            # those not worth it are leaves, behind the ones of this level
            whole = np.flatnonzero(~worth)
            nodes_flat[at[whole] - base] = -1 - (leaves + np.arange(len(whole)))
            leaves += len(whole)
            leaf_counts.append(counts[whole])
            leaf_faces.append(_gather(starts, counts, faces, whole))
            rows = np.flatnonzero(worth)
            nodes_flat[at[rows] - base] = total + 8 * np.arange(len(rows))
            octant = np.arange(8)
            shifts = np.stack([octant >> 2, (octant >> 1) & 1, octant & 1], axis=1)
            begins = np.cumsum(found, axis=1) - found + 8 * starts[:-1, None]
            faces, starts, counts = eighths, begins[rows].ravel(), found[rows].ravel()
            places = (2 * places[rows, None] + shifts).reshape(-1, 3).astype(np.int32)
            at = total + np.arange(8 * len(rows))
            nodes.append(np.full(8 * len(rows), -1, np.int32))
            total += 8 * len(rows)
            level += 1
        self.nodes = np.concatenate(nodes)
        self.leaf_starts = np.concatenate([[0], np.cumsum(np.concatenate(leaf_counts))])
        self.leaf_faces = np.concatenate([*leaf_faces, nothing])
        self.grid = np.array([*low, 2.0**level / size])
        self.shape = np.array([*shape, level], np.int64)


def _gather(starts: Any, counts: Any, faces: Any, rows: Any) -> Any:
    """Copy the lists of some cubes, one after the other."""
    ends = np.cumsum(counts[rows])
    copied = np.empty(int(ends[-1]) if len(rows) else 0, np.int32)
    _copy(np.ascontiguousarray(starts), np.ascontiguousarray(counts), faces, rows, ends, copied)
    return copied


@njit(cache=True, nogil=True)
def _copy(starts, counts, faces, rows, ends, copied):
    for i in range(rows.size):
        n = counts[rows[i]]
        for k in range(n):
            copied[ends[i] - n + k] = faces[starts[rows[i]] + k]


@njit(cache=True, nogil=True, error_model="numpy")
def _lay_triangles(vertices, corners, normals, first, stop, triangles):
    for f in range(first, stop):
        for axis in range(3):
            start = vertices[corners[f, 0], axis]
            triangles[f, axis] = start
            triangles[f, 6 + axis] = vertices[corners[f, 1], axis] - start
            triangles[f, 9 + axis] = vertices[corners[f, 2], axis] - start
        t = triangles[f]
        cx, cy, cz = (
            t[7] * t[11] - t[8] * t[10],
            t[8] * t[9] - t[6] * t[11],
            t[6] * t[10] - t[7] * t[9],
        )
        u2, v2 = (
            t[6] * t[6] + t[7] * t[7] + t[8] * t[8],
            t[9] * t[9] + t[10] * t[10] + t[11] * t[11],
        )
        # a normal that rounding made excludes nothing
        has_normal = cx * cx + cy * cy + cz * cz > THIN * u2 * v2
        for axis in range(3):
            triangles[f, 3 + axis] = normals[f, 0, axis] if has_normal else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _measure(triangles, f, rx, ry, rz):
    """Give the squared distance of a face, and its nearest point, relative to its first corner.

    What is measured relative to a corner is the same whichever other faces there are, and as
    accurate far from the origin as near it.
    """
    zero = 0.0
    return squared_distance_point_triangle(
        rx, ry, rz, zero, zero, zero, triangles[f, 6], triangles[f, 7], triangles[f, 8],
        triangles[f, 9], triangles[f, 10], triangles[f, 11],
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _gap(triangles, f, x, y, z):
    """Distance of a face from a place."""
    d2, _, _, _ = _measure(
        triangles, f, x - triangles[f, 0], y - triangles[f, 1], z - triangles[f, 2]
    )
    return np.sqrt(d2)


@njit(cache=True, nogil=True, error_model="numpy")
def _enter(triangles, low, size, shape, reach, rounding, counts, starts, faces, fill):
    """Enter the faces in the cubes of the coarse grid that they may be the nearest in."""
    half = 0.5 * size * np.sqrt(3.0) * (1.0 + SLACK)
    far = (reach + half) * (1.0 + SLACK) + rounding
    first, last = np.empty(3, np.int64), np.empty(3, np.int64)
    for f in range(triangles.shape[0]):
        for axis in range(3):
            b, c = triangles[f, 6 + axis], triangles[f, 9 + axis]
            start = triangles[f, axis] - low[axis]
            least = start + min(0.0, min(b, c)) - reach * (1.0 + SLACK) - rounding
            most = start + max(0.0, max(b, c)) + reach * (1.0 + SLACK) + rounding
            first[axis] = max(np.int64(np.floor(least / size - SLACK)), np.int64(0))
            last[axis] = min(np.int64(np.floor(most / size + SLACK)), shape[axis] - 1)
        for i in range(first[0], last[0] + 1):
            for j in range(first[1], last[1] + 1):
                for k in range(first[2], last[2] + 1):
                    gap = _gap(
                        triangles, f, low[0] + (i + 0.5) * size, low[1] + (j + 0.5) * size,
                        low[2] + (k + 0.5) * size,
                    )  # fmt: skip
                    if gap > far:
                        continue
                    cube = (i * shape[1] + j) * shape[2] + k
                    if fill:
                        faces[starts[cube] + counts[cube]] = f
                    counts[cube] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _split(
    triangles, low, half, reach, rounding, places, starts, faces, first, stop, found, eighths
):
    """List the faces of the eighths of cubes, those of a cube one after the other."""
    r = 0.5 * half * np.sqrt(3.0) * (1.0 + SLACK)
    gaps = np.empty(1)
    for cube in range(first, stop):
        begin, end = starts[cube], starts[cube + 1]
        if gaps.size < end - begin:
            gaps = np.empty(2 * (end - begin))
        free = 8 * begin
        for octant in range(8):
            x = low[0] + (2 * places[cube, 0] + (octant >> 2) + 0.5) * half
            y = low[1] + (2 * places[cube, 1] + ((octant >> 1) & 1) + 0.5) * half
            z = low[2] + (2 * places[cube, 2] + (octant & 1) + 0.5) * half
            least = np.inf
            nearest = 0
            for k in range(begin, end):
                gap = _gap(triangles, faces[k], x, y, z)
                gaps[k - begin] = gap
                if gap < least:
                    least, nearest = gap, k
            far = min(least + 2.0 * r, reach + r) * (1.0 + SLACK) + rounding
            if least > far:
                continue
            # the nearest to the centre comes first: it excludes most of the others
            eighths[free] = faces[nearest]
            n = 1
            for k in range(begin, end):
                if k != nearest and gaps[k - begin] <= far:
                    eighths[free + n] = faces[k]
                    n += 1
            found[cube, octant] = n
            free += n


@njit(cache=True, nogil=True, error_model="numpy")
def _search(
    x, y, z, first, stop, metres, max_distance, rounding,
    nodes, leaf_starts, leaf_faces, triangles, grid, shape,
    vertices, corners, mesh_of, side, normals, reliable, part, turn, part_starts, part_faces, boxes,
    near_starts, near,
    face, distance, feet, foot,
):  # fmt: skip
    """Find the nearest faces of the points first to stop."""
    lx, ly, lz, scale = grid[0], grid[1], grid[2], grid[3]
    levels = shape[3]
    nx, ny, nz = shape[0] << levels, shape[1] << levels, shape[2] << levels
    for i in range(first, stop):
        px, py, pz = x[i] * metres, y[i] * metres, z[i] * metres
        best_face = NO_FACE
        d2 = max_distance * max_distance
        qx = qy = qz = np.nan
        cx, cy, cz = (px - lx) * scale, (py - ly) * scale, (pz - lz) * scale
        if cx >= 0.0 and cy >= 0.0 and cz >= 0.0 and cx < nx and cy < ny and cz < nz:
            ix, iy, iz = np.int64(cx), np.int64(cy), np.int64(cz)
            node = nodes[((ix >> levels) * shape[1] + (iy >> levels)) * shape[2] + (iz >> levels)]
            level = levels
            while node >= 0:
                level -= 1
                node = nodes[
                    node
                    + (((ix >> level) & 1) << 2)
                    + (((iy >> level) & 1) << 1)
                    + ((iz >> level) & 1)
                ]
            reach = max_distance + rounding
            for k in range(leaf_starts[-1 - node], leaf_starts[-node]):
                f = leaf_faces[k]
                rx, ry, rz = px - triangles[f, 0], py - triangles[f, 1], pz - triangles[f, 2]
                h = triangles[f, 3] * rx + triangles[f, 4] * ry + triangles[f, 5] * rz
                if abs(h) > reach:
                    continue
                gap, fx, fy, fz = _measure(triangles, f, rx, ry, rz)
                if gap < d2 or (gap == d2 and (best_face < 0 or f < best_face)):
                    d2, best_face = gap, f
                    qx, qy, qz = fx, fy, fz
                    reach = np.sqrt(gap) * (1.0 + SLACK) + rounding
        face[i] = best_face
        distance[i] = np.nan
        if best_face >= 0:
            away = np.sqrt(d2)
            if side[mesh_of[best_face]] != 0 and _inside(
                px, py, pz, best_face, qx, qy, qz, triangles, vertices, corners, normals, reliable,
                part, turn, part_starts, part_faces, boxes, near_starts, near,
            ):  # fmt: skip
                away = -away
            distance[i] = away
        if feet:
            for axis in range(3):
                foot[i, axis] = np.nan
            if best_face >= 0:
                foot[i, 0] = triangles[best_face, 0] + qx
                foot[i, 1] = triangles[best_face, 1] + qy
                foot[i, 2] = triangles[best_face, 2] + qz


@njit(cache=True, nogil=True, error_model="numpy")
def _inside(
    px, py, pz, f, qx, qy, qz, triangles, vertices, corners, normals, reliable, part, turn,
    part_starts, part_faces, boxes, near_starts, near,
):  # fmt: skip
    """Whether a point is inside the closed mesh of its nearest face."""
    own = part[f]
    rx, ry, rz = px - triangles[f, 0], py - triangles[f, 1], pz - triangles[f, 2]
    feature = _feature(
        rx, ry, rz, triangles[f, 6], triangles[f, 7], triangles[f, 8],
        triangles[f, 9], triangles[f, 10], triangles[f, 11],
    )  # fmt: skip
    if (reliable[f] >> feature) & 1:
        front = (
            (rx - qx) * normals[f, feature, 0]
            + (ry - qy) * normals[f, feature, 1]
            + (rz - qz) * normals[f, feature, 2]
        ) >= 0.0
        total = 0
        if turn[own] > 0:
            if not front:
                total = 1
        elif front:
            total = -1
    else:
        total = _turns(px, py, pz, own, vertices, corners, part_starts, part_faces)
    for k in range(near_starts[own], near_starts[own + 1]):
        p = near[k]
        if (
            px >= boxes[p, 0] and px <= boxes[p, 3]
            and py >= boxes[p, 1] and py <= boxes[p, 4]
            and pz >= boxes[p, 2] and pz <= boxes[p, 5]
        ):  # fmt: skip
            total += _turns(px, py, pz, p, vertices, corners, part_starts, part_faces)
    return total != 0


@njit(cache=True, nogil=True, error_model="numpy")
def _turns(px, py, pz, p, vertices, corners, part_starts, part_faces):
    """Count how often a part winds round a point, as `winding` does for a mesh."""
    total = 0
    for k in range(part_starts[p], part_starts[p + 1]):
        f = part_faces[k]
        a, b, c = corners[f, 0], corners[f, 1], corners[f, 2]
        total += crossings(px, py, pz, vertices, a, b, c)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _feature(rx, ry, rz, ux, uy, uz, vx, vy, vz):
    """Tell which feature of a triangle is nearest, as `squared_distance_point_triangle` finds it.

    All is relative to the first corner. Of a triangle without area it gives the face, whose normal
    is not reliable.
    """
    d1 = ux * rx + uy * ry + uz * rz
    d2 = vx * rx + vy * ry + vz * rz
    wx, wy, wz = rx - ux, ry - uy, rz - uz
    d3 = ux * wx + uy * wy + uz * wz
    d4 = vx * wx + vy * wy + vz * wz
    tx, ty, tz = rx - vx, ry - vy, rz - vz
    d5 = ux * tx + uy * ty + uz * tz
    d6 = vx * tx + vy * ty + vz * tz
    va = d3 * d6 - d5 * d4
    vb = d5 * d2 - d1 * d6
    vc = d1 * d4 - d3 * d2
    if not va + vb + vc > THIN * (ux * ux + uy * uy + uz * uz) * (vx * vx + vy * vy + vz * vz):
        return FACE
    if d1 <= 0.0 and d2 <= 0.0:
        return CORNERS
    if d3 >= 0.0 and d4 <= d3:
        return CORNERS + 1
    if d6 >= 0.0 and d5 <= d6:
        return CORNERS + 2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        return EDGES
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        return EDGES + 2
    if va <= 0.0 and d4 >= d3 and d5 >= d6:
        return EDGES + 1
    return FACE
