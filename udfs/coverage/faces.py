"""The planar faces of elements, and the cells of a raster on each."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry.solids import sides
from spatialq.runtime.compile_cache import njit

PARALLEL = 0.9998
"""Cosine between the normals of triangles of one face: about one degree."""
SAME_PLANE = 1e-3
"""Metres between triangles of one face, along its normal."""
COMPARED = 64
"""Faces with which a triangle of its element is compared, the newest first."""
MAX_CELLS = 4_000_000
"""Cells of all faces: they are larger where there would be more."""


@dataclass(frozen=True)
class Faces:
    """The planar faces of elements, those of each one after the other.

    Parameters
    ----------
    element : int64[k]
    normal : float64[k, 3]
        Outward.
    area : float64[k]
        Square metres.
    origin, u, v : float64[k, 3]
        Of each face a corner of its raster, and the edges of a cell from there.
    starts : int64[k + 1]
        Where the cells of each face begin.
    centres : float64[n, 3], metres
        Of cells: of each face those whose centre is on it.
    """

    element: Any
    normal: Any
    area: Any
    origin: Any
    u: Any
    v: Any
    starts: Any
    centres: Any

    @property
    def cell_face(self) -> Any:
        """The face of each cell, int64[n]."""
        return np.repeat(np.arange(len(self.element)), np.diff(self.starts))

    @property
    def cell_area(self) -> Any:
        """Square metres of each cell: those of a face share its area."""
        counts = np.diff(self.starts)
        return np.repeat(self.area / np.maximum(counts, 1), counts)

    @classmethod
    def of(cls, meshes: Meshes, size: float) -> "Faces":
        """Lay rasters of cells of this size, in metres, or smaller ones on small faces."""
        corners = meshes.vertices[meshes.global_faces]
        across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        twice = np.linalg.norm(across, axis=1)
        there = twice > 1e-10
        corners, element = corners[there], meshes.face_mesh[there]
        normal, area = across[there] / twice[there, None], twice[there] / 2
        side = sides(meshes)[element]
        normal *= np.where(side < 0, -1.0, 1.0)[:, None]
        # the largest of an element come first: a face has the plane of its largest triangle
        order = np.lexsort((-area, element))
        corners, element, normal, area = (
            np.ascontiguousarray(each[order]) for each in (corners, element, normal, area)
        )
        size = max(size, float(np.sqrt(area.sum() / MAX_CELLS)))
        face_of = np.empty(len(area), np.int64)
        count = _join(corners, element, normal, face_of)
        order = np.argsort(face_of, kind="stable")
        corners, face_of = np.ascontiguousarray(corners[order]), face_of[order]
        first = np.searchsorted(face_of, np.arange(count))
        ends = np.append(first[1:], len(face_of))
        frames = np.empty((count, 3, 3))
        shape = np.empty((count, 2), np.int64)
        normals = np.ascontiguousarray(normal[order][first])
        _lay(corners, first, ends, normals, size, frames, shape)
        starts = np.zeros(count + 1, np.int64)
        room = np.empty((0, 3))
        total = _fill(corners, first, ends, normals, frames, shape, starts, room)
        room = np.empty((total, 3))
        _fill(corners, first, ends, normals, frames, shape, starts, room)
        areas = np.bincount(face_of, area[order], count)
        origin, u, v = np.ascontiguousarray(frames.swapaxes(0, 1))
        return cls(element[order][first], normals, areas, origin, u, v, starts, room)


@njit(cache=True, nogil=True, error_model="numpy")
def _join(corners, element, normal, face_of):  # type: ignore[no-untyped-def]
    """Give each triangle, sorted by element, the number of its face; and count these."""
    count = begin = 0
    first = np.empty(element.size, np.int64)  # triangle of each face
    for t in range(element.size):
        if t > 0 and element[t] != element[t - 1]:
            begin = count
        found = -1
        for f in range(count - 1, max(begin, count - COMPARED) - 1, -1):
            o = first[f]
            cosine = 0.0
            for k in range(3):
                cosine += normal[o, k] * normal[t, k]
            if cosine < PARALLEL:
                continue
            farthest = 0.0
            for corner in range(3):
                height = 0.0
                for k in range(3):
                    height += normal[o, k] * (corners[t, corner, k] - corners[o, 0, k])
                farthest = max(farthest, abs(height))
            if farthest <= SAME_PLANE:
                found = f
                break
        if found < 0:
            found = count
            first[found] = t
            count += 1
        face_of[t] = found
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _lay(corners, first, ends, normals, size, frames, shape):  # type: ignore[no-untyped-def]
    """Find the frame of each face, along the longest edge of its first triangle, and its shape."""
    axes = np.empty((2, 3))
    for f in range(first.size):
        longest = -1.0
        for corner in range(3):
            after, length = (corner + 1) % 3, 0.0
            for k in range(3):
                length += (corners[first[f], after, k] - corners[first[f], corner, k]) ** 2
            # of edges of one length the first: the raster of a square does not depend on roundings
            if length > longest * 1.000001:
                longest = length
                for k in range(3):
                    axes[0, k] = corners[first[f], after, k] - corners[first[f], corner, k]
        long = np.sqrt(longest)
        # a right angle of a rectangle is better seen along its sides than along its diagonal
        for corner in range(3):
            before, after = (corner + 2) % 3, (corner + 1) % 3
            along = one = other = 0.0
            for k in range(3):
                p = corners[first[f], before, k] - corners[first[f], corner, k]
                q = corners[first[f], after, k] - corners[first[f], corner, k]
                along, one, other = along + p * q, one + p * p, other + q * q
            if along * along < 1e-6 * one * other:
                long = np.sqrt(one)
                for k in range(3):
                    axes[0, k] = corners[first[f], before, k] - corners[first[f], corner, k]
                break
        for k in range(3):
            axes[0, k] /= long
        for k in range(3):
            p, q = (k + 1) % 3, (k + 2) % 3
            axes[1, k] = normals[f, p] * axes[0, q] - normals[f, q] * axes[0, p]
        for way in range(2):
            low, high = np.inf, -np.inf
            for t in range(first[f], ends[f]):
                for corner in range(3):
                    place = 0.0
                    for k in range(3):
                        place += axes[way, k] * (corners[t, corner, k] - corners[first[f], 0, k])
                    low, high = min(low, place), max(high, place)
            cells = max(2, int(np.ceil((high - low) / size - 1e-9)))
            shape[f, way] = cells
            for k in range(3):
                frames[f, 1 + way, k] = axes[way, k] * (high - low) / cells
                if way == 0:
                    frames[f, 0, k] = corners[first[f], 0, k] + axes[way, k] * low
                else:
                    frames[f, 0, k] += axes[way, k] * low


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(corners, first, ends, normals, frames, shape, starts, centres):  # type: ignore[no-untyped-def]
    """List the centres of cells that are on a triangle of their face; gives how many there are."""
    count = 0
    for f in range(first.size):
        columns, rows = shape[f]
        marks = np.zeros(columns * rows, np.uint8)
        uu = vv = 0.0
        for k in range(3):
            uu += frames[f, 1, k] ** 2
            vv += frames[f, 2, k] ** 2
        for t in range(first[f], ends[f]):
            ax = ay = bx = by = cx = cy = 0.0
            for k in range(3):
                u, v = frames[f, 1, k] / uu, frames[f, 2, k] / vv
                d = corners[t, 0, k] - frames[f, 0, k]
                ax, ay = ax + u * d, ay + v * d
                d = corners[t, 1, k] - frames[f, 0, k]
                bx, by = bx + u * d, by + v * d
                d = corners[t, 2, k] - frames[f, 0, k]
                cx, cy = cx + u * d, cy + v * d
            sign = 1.0 if (bx - ax) * (cy - ay) - (by - ay) * (cx - ax) > 0 else -1.0
            for row in range(
                max(0, int(min(ay, by, cy) - 0.5)), min(rows, int(max(ay, by, cy) + 0.5) + 1)
            ):
                for column in range(
                    max(0, int(min(ax, bx, cx) - 0.5)),
                    min(columns, int(max(ax, bx, cx) + 0.5) + 1),
                ):
                    x, y = column + 0.5, row + 0.5
                    if (
                        sign * ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) >= -1e-9
                        and sign * ((cx - bx) * (y - by) - (cy - by) * (x - bx)) >= -1e-9
                        and sign * ((ax - cx) * (y - cy) - (ay - cy) * (x - cx)) >= -1e-9
                    ):
                        marks[row * columns + column] = 1
        starts[f] = count
        for cell in range(marks.size):
            if marks[cell] == 0:
                continue
            if count < centres.shape[0]:
                row, column = cell // columns, cell % columns
                for k in range(3):
                    centres[count, k] = (
                        frames[f, 0, k]
                        + (column + 0.5) * frames[f, 1, k]
                        + (row + 0.5) * frames[f, 2, k]
                    )
            count += 1
        if starts[f] == count:  # no centre is on it: the middle of its largest triangle
            if count < centres.shape[0]:
                for k in range(3):
                    centres[count, k] = (
                        corners[first[f], 0, k] + corners[first[f], 1, k] + corners[first[f], 2, k]
                    ) / 3
            count += 1
    starts[first.size] = count
    return count
