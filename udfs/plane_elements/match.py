"""Planes and elements: which points of a plane lie on which faces."""

from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry import boxes, rtree
from spatialq.geometry.solids import describe
from spatialq.runtime import buffers, progress
from spatialq.runtime.arrays import Floats
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import in_threads

from . import Options
from .sample import Sample

MARGIN = 1e-6
"""Metres, for rounding of coordinates: a point this far beside a triangle still is on it."""
MIN_POINTS = 10
"""Points on an element below which its coverage is not used."""


def match(
    x: Floats,
    y: Floats,
    z: Floats,
    labels: Any,
    planes: dict[str, Any],
    elements: Meshes,
    options: Options,
) -> dict[str, Any]:
    """Match planes with the faces of elements.

    Parameters
    ----------
    x, y, z : float64[n]
    labels : int[n]
        The plane of each point, 1 for the first; 0 for none.
    planes : dict of arrays
        The columns of `detect_planes`.
    elements : Meshes
    options : Options

    Returns
    -------
    dict of arrays
        `plane_id`, `element` (int64, the row; -1 in the one row of a plane that matches none),
        `nearest overlap coverage angle deviation` (float64; NaN in such a row), and the columns
        of the plane. Of a plane the best element first: by `nearest`, then `overlap`, then the
        smaller deviation.
    """
    progress.stage("samples of planes", 0.6)
    sample = Sample.of(x, y, z, labels, planes, options.metres)
    progress.stage("elements of planes", 1.0)
    return match_sample(sample, planes, elements, options)


def match_sample(
    sample: Sample, planes: dict[str, Any], elements: Meshes, options: Options
) -> dict[str, Any]:
    """Match planes, of which a sample is given, with the faces of elements: see `match`."""
    found, measures = _measure(sample, planes, elements, options)
    plane, element = found
    rows = np.arange(len(plane))
    # of the two sides of a thin element the one nearest to more points counts
    side = np.argmax(measures[:, :2, 0], axis=1)
    size = np.maximum(1, _sizes(sample))[plane]
    nearer, there, deviation, *normal, area = measures[rows, side].T
    on, nearest = measures[:, 2, :2].T
    with np.errstate(divide="ignore", invalid="ignore"):  # no points: left out below
        covered = planes["area"][plane] * options.metres**2 * there / size
        found = {
            "plane_id": planes["plane_id"][plane],
            "element": element,
            "nearest": nearest / size,
            "overlap": on / size,
            "coverage": np.minimum(1.0, covered / area),
            "angle": _angle(sample.axes[plane, 2], np.stack(normal, axis=1)),
            "deviation": deviation / nearer,
        }
    is_match = (found["overlap"] >= options.min_overlap) | (
        (found["coverage"] >= options.min_overlap) & (on >= MIN_POINTS)
    )
    kept = np.flatnonzero((on > 0) & is_match)
    alone = np.setdiff1d(np.arange(len(planes["plane_id"])), plane[kept])
    result = {name: _append_none(values[kept], len(alone)) for name, values in found.items()}
    plane = np.concatenate([plane[kept], alone])
    order = np.lexsort((
        result["element"], np.abs(result["deviation"]), -result["overlap"], -result["nearest"],
        plane,
    ))  # fmt: skip
    result = {**result, **{name: values[plane] for name, values in planes.items()}}
    return {name: values[order] for name, values in result.items()}


def _append_none(values: Any, count: int) -> Any:
    """Append the rows of planes without an element."""
    return np.concatenate([values, np.full(count, -1 if values.dtype.kind == "i" else np.nan)])


def _sizes(sample: Sample) -> Any:
    """Points of each plane's sample."""
    filled = np.concatenate([[0], np.cumsum(~np.isnan(sample.points[:, 0]))])
    return np.diff(filled[sample.starts])


def _angle(normals: Any, others: Any) -> Any:
    """Degrees between planes."""
    across = np.linalg.norm(np.cross(normals, others), axis=1)
    return np.degrees(np.arctan2(across, np.abs(np.sum(normals * others, axis=1))))


def _measure(
    sample: Sample, planes: dict[str, Any], elements: Meshes, options: Options
) -> tuple[Any, Any]:
    """Find the near pairs of a plane and an element, and how the plane's points lie on it.

    Returns
    -------
    plane, element : int64[m]
        Rows, sorted.
    measures : float64[m, 3, 7]
        For the faces that look along the plane's normal, and for those that look against it: how
        many points are nearer to them than to the others, how many lie on them, the sum of the
        heights of the former, the sum of the faces' normals there (three), the area of the
        element's faces in this plane. Third: how many points lie on either, and how many of these
        are no nearer to another element.
    """
    limits = boxes.of(elements)
    extents = np.empty((len(sample.size), 8))
    _extents(sample.axes, sample.starts, sample.points, extents)
    around = np.ascontiguousarray(extents[:, :6])
    plane, element = rtree.pairs(around, limits, options.max_offset + MARGIN)
    side = np.empty(len(elements), np.int8)
    meshes = elements.arrays
    bits = meshes[0].view(np.uint64)
    label = np.empty(len(elements.vertices), np.int32)
    parts = np.empty(len(elements), np.int32)

    def find_sides(span: tuple[int, int]) -> None:
        describe(meshes[0], bits, *meshes[1:], limits, *span, side, label, parts)

    in_threads(find_sides, len(elements))
    k = len(extents)
    starts = np.searchsorted(plane, np.arange(k + 1))
    measures = buffers.zeros((len(plane), 3, 7))
    angle = np.radians(options.max_angle)
    halt = progress.stop_flag()

    def some(span: tuple[int, int]) -> None:
        _match(
            *span, starts, element,
            sample.axes, planes["d"] * options.metres, extents, sample.corner, sample.size,
            sample.columns, sample.starts, sample.points,
            *meshes, limits, side,
            np.cos(angle) - 1e-12, options.max_offset,
            options.max_offset * np.sin(angle) + 2.0 * MARGIN, halt, measures,
        )  # fmt: skip

    in_threads(some, k)
    return (plane, element), measures


@njit(cache=True, nogil=True)
def _extents(axes, starts, points, extents):  # type: ignore[no-untyped-def]
    """Find the box of each sample, and its minimum and maximum height along the normal."""
    for plane in range(extents.shape[0]):
        extents[plane, :3] = extents[plane, 6] = np.inf
        extents[plane, 3:6] = extents[plane, 7] = -np.inf
        for cell in range(starts[plane], starts[plane + 1]):
            if not np.isnan(points[cell, 0]):
                height = 0.0
                for axis in range(3):
                    value = points[cell, axis]
                    extents[plane, axis] = min(extents[plane, axis], value)
                    extents[plane, 3 + axis] = max(extents[plane, 3 + axis], value)
                    height += axes[plane, 2, axis] * value
                extents[plane, 6] = min(extents[plane, 6], height)
                extents[plane, 7] = max(extents[plane, 7], height)


@njit(cache=True, nogil=True)
def _match(  # type: ignore[no-untyped-def]
    first, stop, pair_starts, elements, axes, d, extents, corner, size, columns, cell_starts,
    points, vertices, faces, vertex_starts, face_starts, limits, side, min_cosine, max_offset,
    margin, halt, measures,
):  # fmt: skip
    """Measure the pairs of the planes first to stop."""
    for plane in range(first, stop):
        c0, c1 = cell_starts[plane], cell_starts[plane + 1]
        lowest_gap = np.full(c1 - c0, np.inf)
        heights = np.empty((2, c1 - c0))
        normals = np.empty((2, c1 - c0, 3))
        area = np.empty(2)
        # two passes: first the nearest element of each point, then which points lie on which
        for step in range(2):
            for pair in range(pair_starts[plane], pair_starts[plane + 1]):
                if halt[0]:
                    return
                if not _heights(
                    plane, elements[pair], axes, d, extents, corner, size, columns, c0, c1, points,
                    vertices, faces, vertex_starts, face_starts, limits, side, min_cosine,
                    max_offset, margin, heights, normals, area,
                ):  # fmt: skip
                    continue
                if step == 0:
                    for cell in range(c1 - c0):
                        height = min(abs(heights[0, cell]), abs(heights[1, cell]))
                        lowest_gap[cell] = min(lowest_gap[cell], height)
                else:
                    _add(heights, normals, lowest_gap, measures[pair])
                    measures[pair, 0, 6], measures[pair, 1, 6] = area[0], area[1]


@njit(cache=True, nogil=True)
def _add(heights, normals, lowest_gap, measure):  # type: ignore[no-untyped-def]
    """Add up the measures of an element over the points of a plane; see `_measure`."""
    for cell in range(lowest_gap.size):
        along, against = abs(heights[0, cell]), abs(heights[1, cell])
        height = min(along, against)
        if height == np.inf:
            continue
        measure[2, 0] += 1.0
        if height <= lowest_gap[cell] + MARGIN:
            measure[2, 1] += 1.0
        measure[0, 1] += along < np.inf
        measure[1, 1] += against < np.inf
        s = 0 if along <= against else 1
        measure[s, 0] += 1.0
        measure[s, 2] += heights[s, cell]
        for axis in range(3):
            measure[s, 3 + axis] += normals[s, cell, axis]


@njit(cache=True, nogil=True)
def _heights(  # type: ignore[no-untyped-def]
    plane, element, axes, d, extents, corner, size, columns, c0, c1, points, vertices, faces,
    vertex_starts, face_starts, limits, side, min_cosine, max_offset, margin, heights, normals,
    area,
):  # fmt: skip
    """Measure for each point of a plane the heights above the faces that it lies on.

    Returns whether there are such points; if not, the output arrays are undefined.

    Parameters
    ----------
    heights : float64[2, cells]
        Out: of the faces that look along the plane's normal, then of those that look against it:
        metres above the nearest, positive outside the element; infinite where there is none.
    normals : float64[2, cells, 3]
        Out: of these faces, outwards.
    area : float64[2]
        Out: of all faces in this plane.
    """
    nx, ny, nz = axes[plane, 2, 0], axes[plane, 2, 1], axes[plane, 2, 2]
    lowest = extents[plane, 6] - max_offset - MARGIN
    highest = extents[plane, 7] + max_offset + MARGIN
    bottom = top = 0.0  # of the element's box, along the normal
    for axis in range(3):
        one = axes[plane, 2, axis] * limits[element, axis]
        other = axes[plane, 2, axis] * limits[element, 3 + axis]
        bottom += min(one, other)
        top += max(one, other)
    if bottom > highest or top < lowest:
        return False
    any_face = any_point = False
    rows = (c1 - c0) // columns[plane]
    out = -1.0 if side[element] < 0 else 1.0
    v0 = vertex_starts[element]
    for face in range(face_starts[element], face_starts[element + 1]):
        a, b, c = v0 + faces[face, 0], v0 + faces[face, 1], v0 + faces[face, 2]
        ax, ay, az = vertices[a, 0], vertices[a, 1], vertices[a, 2]
        bx, by, bz = vertices[b, 0], vertices[b, 1], vertices[b, 2]
        cx, cy, cz = vertices[c, 0], vertices[c, 1], vertices[c, 2]
        tx = (by - ay) * (cz - az) - (bz - az) * (cy - ay)
        ty = (bz - az) * (cx - ax) - (bx - ax) * (cz - az)
        tz = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        double = np.sqrt(tx * tx + ty * ty + tz * tz)
        cosine = (tx * nx + ty * ny + tz * nz) * out
        if not double > 0.0 or abs(cosine) < min_cosine * double:
            continue
        ha = nx * ax + ny * ay + nz * az
        hb = nx * bx + ny * by + nz * bz
        hc = nx * cx + ny * cy + nz * cz
        if min(ha, hb, hc) > highest or max(ha, hb, hc) < lowest:
            continue
        if not any_face:  # most near elements have none here
            any_face = True
            heights[:] = np.inf
            area[:] = 0.0
        tx, ty, tz = tx / double, ty / double, tz / double
        # inwards from each edge, a unit long
        ex, ey, ez = _across(tx, ty, tz, bx - ax, by - ay, bz - az)
        fx, fy, fz = _across(tx, ty, tz, cx - bx, cy - by, cz - bz)
        gx, gy, gz = _across(tx, ty, tz, ax - cx, ay - cy, az - cz)
        west, east = _range(axes, plane, 0, ax, ay, az, bx, by, bz, cx, cy, cz)
        south, north = _range(axes, plane, 1, ax, ay, az, bx, by, bz, cx, cy, cz)
        s = 0 if cosine > 0.0 else 1
        u, v, edge = corner[plane, 0], corner[plane, 1], size[plane]
        left = int(max(0.0, np.floor((west - margin - u) / edge)))
        right = int(min(columns[plane] - 1.0, np.floor((east + margin - u) / edge)))
        below = int(max(0.0, np.floor((south - margin - v) / edge)))
        above = int(min(rows - 1.0, np.floor((north + margin - v) / edge)))
        is_near = abs((ha + hb + hc) / 3.0 - d[plane]) <= max_offset
        for row in range(below, above + 1):
            for cell in range(row * columns[plane] + left, row * columns[plane] + right + 1):
                px, py, pz = points[c0 + cell, 0], points[c0 + cell, 1], points[c0 + cell, 2]
                apx, apy, apz = px - ax, py - ay, pz - az
                above_face = tx * apx + ty * apy + tz * apz
                if not abs(above_face) <= max_offset:  # nor where the cell has no point
                    continue
                bpx, bpy, bpz = px - bx, py - by, pz - bz
                if (
                    (ex * apx + ey * apy + ez * apz >= -MARGIN)
                    & (fx * bpx + fy * bpy + fz * bpz >= -MARGIN)
                    & (gx * apx + gy * apy + gz * apz >= -MARGIN)
                ):
                    is_near = any_point = True
                    if abs(above_face) < abs(heights[s, cell]):
                        heights[s, cell] = above_face * out
                        normals[s, cell, 0] = tx * out
                        normals[s, cell, 1] = ty * out
                        normals[s, cell, 2] = tz * out
        if is_near:
            area[s] += 0.5 * double
    return any_point


@njit(cache=True, nogil=True)
def _across(tx, ty, tz, x, y, z):  # type: ignore[no-untyped-def]
    """Rotate the direction of an edge by a right angle around a normal, to the left."""
    length = np.sqrt(x * x + y * y + z * z)
    return (ty * z - tz * y) / length, (tz * x - tx * z) / length, (tx * y - ty * x) / length


@njit(cache=True, nogil=True)
def _range(axes, plane, axis, ax, ay, az, bx, by, bz, cx, cy, cz):  # type: ignore[no-untyped-def]
    """Find the minimum and maximum coordinate of a triangle along an axis of a plane."""
    x, y, z = axes[plane, axis, 0], axes[plane, axis, 1], axes[plane, axis, 2]
    a = x * ax + y * ay + z * az
    b = x * bx + y * by + z * bz
    c = x * cx + y * cy + z * cz
    return min(a, b, c), max(a, b, c)
