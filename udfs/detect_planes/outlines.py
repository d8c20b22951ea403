"""Outlines of surfaces: rings around the connected pixels of rasters, with few vertices.

A ring passes between a pixel of a surface and each neighbour, at sides, that is none. Vertices are
integers, so that all tests of their order are exact and rings never cross: README.md has the rules.
"""

import numpy as np

from spatialq.runtime.compile_cache import njit

BITS = 4
UNIT = 1 << BITS
"""Units of a pixel, in the coordinates of vertices."""

BEYOND = 1
"""Distance of a ring from the centres of its pixels. With nine points per pixel, the true border is
on average 1/9 pixel outside these centres if it is parallel to rows or columns, and 1/17 pixel
inside them if it is diagonal."""

GAP = 4
"""Minimum area of a hole, in pixels."""

TOLERANCES = UNIT / 4, UNIT / 2, UNIT
"""Maximum distance from a simplified ring of the vertices left out, smallest first."""

AREAS_PER_CORNER = 32
"""A ring has at least the area of this many triangles that are cut off from it or added."""


@njit(cache=True, nogil=True, error_model="numpy")
def trace(covered, extents, at, xy, edges, rings, areas):
    """Trace the rings of all surfaces, with the surface on the left.

    Pixels of a surface touch at sides or corners, those of a hole at sides.

    Parameters
    ----------
    covered : uint8[pixels]
        1 for the pixels of surfaces, 0 for others, such as the outermost ones of each raster.
    extents : int64[rasters, 3]
        First pixel, rows, columns.
    at : int32[2 * pixels]
        In: 0; out: vertex between a pixel and the next one in its row, then between it and the next
        one in its column; they count from 1.
    xy, edges : int32[2 * pixels, 2], int32[2 * pixels]
        Out: vertices, ring by ring: position in the raster, in UNITs of a pixel; place in `at`.
    rings : int64[pixels, 3]
        Out: first vertex, raster, and the outer ring around a hole, which is the ring itself if it
        is not a hole. Outer rings are in the order of their first pixels.
    areas : int64[pixels]
        Out: twice the area, negative for holes.

    Returns
    -------
    int
        Number of rings; the last one is followed by a row with the number of vertices.
    """
    n = n_rings = 0
    for raster in range(extents.shape[0]):
        first, rows, columns = extents[raster, 0], extents[raster, 1], extents[raster, 2]
        for row in range(1, rows - 1):
            outer = 0  # of the surface at the last vertex in this row
            start = first + row * columns
            for k in range(start, start + columns - 1):
                if covered[k] == covered[k + 1]:
                    continue
                if at[2 * k] != 0:
                    # found by its vertex: rings are sorted by their first vertices
                    low, high = 0, n_rings
                    while high - low > 1:
                        middle = (low + high) // 2
                        if rings[middle, 0] < at[2 * k]:
                            low = middle
                        else:
                            high = middle
                    outer = rings[low, 2]
                    continue
                is_hole = covered[k] != 0
                if not is_hole:
                    outer = n_rings
                rings[n_rings, 0], rings[n_rings, 1], rings[n_rings, 2] = n, raster, outer
                # moving along the ring, the surface's pixel is on the left, the other one, to the
                # east, north, west or south of it, on the right
                column, up = (k - start if is_hole else k - start + 1), row
                side = 0 if is_hole else 2
                first_column, first_side = column, side
                begin, twice = n, np.int64(0)
                while True:
                    east, north = (side == 0) - (side == 2), (side == 1) - (side == 3)
                    pixel = first + up * columns + column
                    x = column * UNIT + (UNIT >> 1) + east * BEYOND
                    y = up * UNIT + (UNIT >> 1) + north * BEYOND
                    edge = 2 * (pixel - (side == 2) - (side == 3) * columns) + (north != 0)
                    xy[n, 0], xy[n, 1], edges[n] = x, y, edge
                    if n > begin:
                        twice += xy[n - 1, 0] * np.int64(y) - np.int64(x) * xy[n - 1, 1]
                    n += 1
                    at[edge] = n
                    ahead = pixel - north + east * columns
                    if covered[ahead + east + north * columns] != 0:  # turn right
                        column, up = column - north + east, up + east + north
                        side = (side + 3) & 3
                    elif covered[ahead] != 0:
                        column, up = column - north, up + east
                    else:  # turn left
                        side = (side + 1) & 3
                    if column == first_column and up == row and side == first_side:
                        break
                twice += xy[n - 1, 0] * np.int64(xy[begin, 1])
                twice -= xy[begin, 0] * np.int64(xy[n - 1, 1])
                areas[n_rings] = twice
                n_rings += 1
    rings[n_rings, 0] = n
    return n_rings


@njit(cache=True, nogil=True, error_model="numpy")
def is_empty(at, first, columns, xy, a, b, c, tolerance):
    """Tell whether a triangle of vertices contains no vertex but its own.

    Parameters
    ----------
    at : int32[2 * pixels]
        See `trace`, without vertices that were removed.
    first, columns : int
        Of the raster.
    a, b, c : int
        Vertices, anticlockwise.
    tolerance : float
        Maximum distance of b from the line through a and c.
    """
    half = UNIT >> 1
    ax, ay, bx, by, cx, cy = xy[a, 0], xy[a, 1], xy[b, 0], xy[b, 1], xy[c, 0], xy[c, 1]
    low, high = (min(min(ay, by), cy) - half) >> BITS, (max(max(ay, by), cy) - half) >> BITS
    west, east = float(min(min(ax, bx), cx)), float(max(max(ax, bx), cx))
    dx, dy = float(cx - ax), float(cy - ay)
    reach = tolerance * np.sqrt(dx * dx + dy * dy)
    for row in range(low, high + 1):
        left, right = west, east
        if dy != 0.0:  # near the line between two rows of centres of pixels
            p = ax + ((row << BITS) + half - ay) * dx / dy
            q = p + UNIT * dx / dy
            left = max(left, min(p, q) - abs(reach / dy))
            right = min(right, max(p, q) + abs(reach / dy))
        start = first + row * columns
        for k in range(
            2 * (start + ((np.int64(left) - 1 - half) >> BITS)),
            2 * (start + ((np.int64(right) + 1 - half) >> BITS)) + 2,
        ):
            v = at[k] - 1
            if v < 0 or v == a or v == b or v == c:  # noqa: SIM109 (Numba: much slower to compile)
                continue
            x, y = np.int64(xy[v, 0]), np.int64(xy[v, 1])
            if (
                (bx - ax) * (y - ay) >= (by - ay) * (x - ax)
                and (cx - bx) * (y - by) >= (cy - by) * (x - bx)
                and (ax - cx) * (y - cy) >= (ay - cy) * (x - cx)
            ):
                return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def simplify(extents, tolerances, at, xy, edges, rings, areas, kept):
    """Leave out vertices of rings such that the rings still do not touch.

    A vertex may go if no other one is in the triangle with its neighbours. This is tried with one
    tolerance after the other, so that those that matter least go first.

    Parameters
    ----------
    tolerances : float64[]
    at, xy, edges, rings, areas
        From `trace`, without the rows that were not needed.
    kept : bool[vertices]
        Out: the vertices that remain; none of small holes.
    """
    n_rings = areas.size
    before, after = np.empty(kept.size, np.int32), np.empty(kept.size, np.int32)
    for ring in range(n_rings):
        first, end = rings[ring, 0], rings[ring + 1, 0]
        is_kept = areas[ring] > 0 or areas[ring] <= -2 * GAP * UNIT * UNIT
        for v in range(first, end):
            kept[v] = is_kept
            before[v], after[v] = v - 1, v + 1
            if not is_kept:
                at[edges[v]] = 0
        before[first], after[end - 1] = end - 1, first
    for ring in range(n_rings):
        first, end = rings[ring, 0], rings[ring + 1, 0]
        if not kept[first]:
            continue
        raster, n = rings[ring, 1], end - first
        most = abs(areas[ring]) / AREAS_PER_CORNER
        b = np.int64(first)
        for tolerance in tolerances:
            removed = 1
            while removed > 0:
                removed = 0
                for _ in range(n):
                    if n == 3:
                        break
                    a, c = before[b], after[b]
                    ax, ay = np.int64(xy[a, 0]), np.int64(xy[a, 1])
                    dx, dy = xy[c, 0] - ax, xy[c, 1] - ay
                    twice = dx * (xy[b, 1] - ay) - dy * (xy[b, 0] - ax)
                    fits = abs(twice) <= most
                    squares = float(dx * dx + dy * dy)
                    limit = tolerance * tolerance * squares
                    margin = tolerance * np.sqrt(squares)
                    v = a
                    while fits:
                        v = v + 1 if v + 1 < end else first
                        if v == c:
                            break
                        x, y = xy[v, 0] - ax, xy[v, 1] - ay
                        off, along = float(dx * y - dy * x), dx * x + dy * y
                        fits = off * off <= limit and -margin <= along <= squares + margin
                    if fits and twice != 0:
                        p, q = (a, c) if twice < 0 else (c, a)
                        fits = is_empty(
                            at, extents[raster, 0], extents[raster, 2], xy, p, b, q, tolerance
                        )
                    if fits:
                        after[a], before[c] = c, a
                        kept[b] = False
                        at[edges[b]] = 0
                        removed += 1
                        n -= 1
                        b = np.int64(after[c])
                    else:
                        b = np.int64(c)
