"""`cloud_distance` on the CPU: the nearest point of the reference, or M3C2."""

from typing import Any

import numpy as np

from spatialq.data.cloud import Cloud
from spatialq.data.points import all_finite, ids_of, normals_of, not_finite
from spatialq.geometry.eigen import eigen
from spatialq.geometry.neighbours import ROOM, NeighbourLists, Neighbours, squared_to_box
from spatialq.runtime import buffers, progress
from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import in_threads

from . import COUNTS, LEAST, NO_POINT, VALUES, Z_95, Options

AT_ONCE = 1 << 10
"""Points that a thread compares at once."""
FLAT = 1e-12
"""Share of the largest eigenvalue below which the next one is rounding: the points are a line."""
SLACK = 1 + 1e-9
"""Rounding, with which a cell that touches a cylinder is not left out."""


def run(
    x: Floats, y: Floats, z: Floats, point_id: Ints | None, reference: Cloud, options: Options,
    nx: Floats | None = None, ny: Floats | None = None, nz: Floats | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Measure how far the points of a cloud are from another one.

    Parameters
    ----------
    x, y, z : float64[n]
    point_id : int64[n] or None
        None for 0, 1, 2 ...
    reference : Cloud
        The other one.
    options : Options
        Lengths in the unit of the coordinates.
    nx, ny, nz : float64[n] or None
        Normals of the points for M3C2, of any length; masked where there is none. Without these
        columns a normal is that of the points within `normal_radius`, upwards.

    Returns
    -------
    dict of arrays
        `point_id`; `distance` (float64; NaN without a point of the reference), `reference_id`
        (int64, the row of the nearest point; `NO_POINT`), and for M3C2, NaN otherwise, `nx`, `ny`,
        `nz`, `spread`, `reference_spread`, `level_of_detection` (float64), with the numbers of
        points `neighbours`, `reference_neighbours` (int32). In the order of the points.

    Raises
    ------
    ValueError
        If coordinates are not finite.

    References
    ----------
    Lague, Brodu, Leroux 2013, Accurate 3D comparison of complex topography with terrestrial laser
    scanner, ISPRS Journal of Photogrammetry and Remote Sensing 82, section 3.
    """
    n = x.size
    progress.stage("order", 0.3)
    others = (reference.x, reference.y, reference.z, reference.point_id)
    near = Neighbours.of(f"{options.function}: reference", *others)
    nearest = buffers.full(n, NO_POINT, np.int64)
    counts = buffers.zeros((len(COUNTS), n), np.int32)
    values = buffers.full((len(VALUES), n), np.nan)
    if options.method == "nearest":
        if not all_finite(x, y, z):
            raise ValueError(not_finite(options.function, x, y, z, point_id))
        progress.stage("distances", 1.0)
        _find_nearest(near, x, y, z, options, nearest, values[0])
    else:
        own = Neighbours.of(options.function, x, y, z, point_id)
        progress.stage("distances", 1.0)
        _compare(own, near, normals_of(nx, ny, nz), options, counts, values)
    return {
        "point_id": ids_of(point_id, n),
        "reference_id": nearest,
        **dict(zip(COUNTS, counts, strict=True)),
        **dict(zip(VALUES, values, strict=True)),
    }


def _find_nearest(
    near: Neighbours, x: Any, y: Any, z: Any, options: Options, nearest: Any, distance: Any
) -> None:
    """Fill in the nearest points of the reference and their distances."""
    reach = np.inf if options.max_distance is None else options.max_distance
    limit = reach * reach

    def keep(found: NeighbourLists) -> None:
        rows = slice(found.first, found.stop)
        is_near = found.squared <= limit
        nearest[rows][is_near] = found.rows[is_near]
        distance[rows][is_near] = np.sqrt(found.squared[is_near])

    if len(near.points):
        near.nearest(np.column_stack((x, y, z)), 1, keep)


def _compare(
    own: Neighbours, near: Neighbours, normals: Any, options: Options, counts: Any, values: Any
) -> None:
    """Fill in what M3C2 finds along the normals of the points."""
    length = options.reach

    def compare(part: tuple[int, int]) -> None:
        _m3c2(
            *own.tree, *near.tree, *part, *normals, options.normal_radius, options.radius, length,
            options.registration_error, LEAST, Z_95, counts, values,
        )  # fmt: skip

    in_threads(compare, len(own.points), AT_ONCE)


@njit(cache=True, nogil=True, error_model="numpy")
def _m3c2(  # type: ignore[no-untyped-def]
    points, order, levels, boxes, lowest, others, rows, other_levels, other_boxes, other_lowest,
    first, stop, nx, ny, nz, normal_radius, radius, length, registration, least, quantile, counts,
    values,
):  # fmt: skip
    """Compare the two clouds along the normal of each point, in the order of the points' tree."""
    waiting, normal = np.empty(ROOM, np.int64), np.empty(3)
    inside, eigenvalues, vectors = np.empty(3), np.empty(3), np.empty((3, 3))
    for q in range(first, stop):
        at = order[q]
        if nx.size == 0:
            _fit(points, levels, boxes, q, normal_radius, waiting, eigenvalues, vectors, normal)
        else:
            most = max(abs(nx[at]), abs(ny[at]), abs(nz[at]))  # whose square may be no number
            ux, uy, uz = nx[at] / most, ny[at] / most, nz[at] / most
            size = np.sqrt(ux * ux + uy * uy + uz * uz)
            normal[0], normal[1], normal[2] = ux / size, uy / size, uz / size
        if not np.isfinite(normal[0] + normal[1] + normal[2]):
            continue
        values[1, at], values[2, at], values[3, at] = normal[0], normal[1], normal[2]
        x, y, z = points[q, 0], points[q, 1], points[q, 2]
        _measure(points, levels, boxes, x, y, z, normal, radius, length, waiting, inside)
        n, mean, squares = inside[0], inside[1], inside[2]
        _measure(
            others, other_levels, other_boxes, x, y, z, normal, radius, length, waiting, inside
        )
        m, other_mean, other_squares = inside[0], inside[1], inside[2]
        counts[0, at], counts[1, at] = n, m
        if n > 0.0 and m > 0.0:
            values[0, at] = mean - other_mean
        if n > 1.0:
            values[4, at] = np.sqrt(squares / (n - 1.0))
        if m > 1.0:
            values[5, at] = np.sqrt(other_squares / (m - 1.0))
        if n >= least and m >= least:
            error = squares / (n - 1.0) / n + other_squares / (m - 1.0) / m
            values[6, at] = quantile * (np.sqrt(error) + registration)


@njit(cache=True, nogil=True, error_model="numpy")
def _fit(  # type: ignore[no-untyped-def]
    points, levels, boxes, q, radius, waiting, eigenvalues, vectors, normal
):
    """Fit a plane to the points around one, and turn its normal upwards; NaN if they are none."""
    n, leaves = points.shape[0], (1 << levels) - 1
    x, y, z = points[q, 0], points[q, 1], points[q, 2]
    limit = radius * radius
    count, sx, sy, sz = 0.0, 0.0, 0.0, 0.0
    xx, xy, xz, yy, yz, zz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    waiting[0], depth = 0, 1
    while depth > 0:
        depth -= 1
        node = waiting[depth]
        if squared_to_box(boxes, node, x, y, z) > limit:
            continue
        if node < leaves:
            waiting[depth], waiting[depth + 1] = 2 * node + 2, 2 * node + 1
            depth += 2
            continue
        j = node - leaves
        for i in range(j * n >> levels, (j + 1) * n >> levels):
            dx, dy, dz = points[i, 0] - x, points[i, 1] - y, points[i, 2] - z
            if dx * dx + dy * dy + dz * dz <= limit:
                count += 1.0
                sx, sy, sz = sx + dx, sy + dy, sz + dz
                xx, xy, xz = xx + dx * dx, xy + dx * dy, xz + dx * dz
                yy, yz, zz = yy + dy * dy, yz + dy * dz, zz + dz * dz
    normal[:] = np.nan
    if count < 3.0:
        return
    mx, my, mz = sx / count, sy / count, sz / count
    eigen(
        xx / count - mx * mx, xy / count - mx * my, xz / count - mx * mz, yy / count - my * my,
        yz / count - my * mz, zz / count - mz * mz, eigenvalues, vectors,
    )  # fmt: skip
    if eigenvalues[1] > FLAT * eigenvalues[2]:
        nx, ny, nz = vectors[0, 0], vectors[0, 1], vectors[0, 2]
        if nz < 0.0 or (nz == 0.0 and (ny < 0.0 or (ny == 0.0 and nx < 0.0))):
            nx, ny, nz = -nx, -ny, -nz
        normal[0], normal[1], normal[2] = nx, ny, nz


@njit(cache=True, nogil=True, error_model="numpy")
def _measure(  # type: ignore[no-untyped-def]
    points, levels, boxes, x, y, z, normal, radius, length, waiting, inside
):
    """Count the points in a cylinder, with the mean and the sum of squares of their positions.

    Its axis goes through a point along the normal, as far to both sides. Positions are distances
    along the axis; Welford's sums (1962, Technometrics 4(3)) are those of one pass.
    """
    n, leaves = points.shape[0], (1 << levels) - 1
    ux, uy, uz = normal[0], normal[1], normal[2]
    count, mean, squares = 0.0, 0.0, 0.0
    waiting[0], depth = 0, 1
    while depth > 0:
        depth -= 1
        node = waiting[depth]
        # the cell's box is in a sphere, which is beside the cylinder or beyond its ends
        hx = 0.5 * (boxes[node, 3] - boxes[node, 0])
        hy = 0.5 * (boxes[node, 4] - boxes[node, 1])
        hz = 0.5 * (boxes[node, 5] - boxes[node, 2])
        dx, dy, dz = boxes[node, 0] - x + hx, boxes[node, 1] - y + hy, boxes[node, 2] - z + hz
        along = dx * ux + dy * uy + dz * uz
        if abs(along) > (length + hx * abs(ux) + hy * abs(uy) + hz * abs(uz)) * SLACK:
            continue
        beside = (radius + np.sqrt(hx * hx + hy * hy + hz * hz)) * SLACK
        if _beside(dx, dy, dz, ux, uy, uz) > beside * beside:
            continue
        if node < leaves:
            waiting[depth], waiting[depth + 1] = 2 * node + 2, 2 * node + 1
            depth += 2
            continue
        j = node - leaves
        for i in range(j * n >> levels, (j + 1) * n >> levels):
            dx, dy, dz = points[i, 0] - x, points[i, 1] - y, points[i, 2] - z
            along = dx * ux + dy * uy + dz * uz
            if abs(along) <= length and _beside(dx, dy, dz, ux, uy, uz) <= radius * radius:
                count += 1.0
                step = along - mean
                mean += step / count
                squares += step * (along - mean)
    inside[0], inside[1], inside[2] = count, mean, squares


@njit(cache=True, nogil=True, inline="always")
def _beside(dx, dy, dz, ux, uy, uz):  # type: ignore[no-untyped-def]
    """Give the squared distance of a point from the axis, by the cross product."""
    cx, cy, cz = dy * uz - dz * uy, dz * ux - dx * uz, dx * uy - dy * ux
    return cx * cx + cy * cy + cz * cz
