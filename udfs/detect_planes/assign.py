"""Loops over points that assign each point to a plane and sum up the points of each plane.

A plane is only considered in cells near its nodes. A raster in the plane then decides: pixels that
are not part of a large enough surface, such as where another wall crosses the plane, are left out.

Points that follow each other in one cell are a *run*: all of them are compared with one plane after
the other, in a loop that vectorises. Any order of the points gives the same results; it is that of
cells which makes runs long.
"""

import numpy as np

from spatialq.runtime.compile_cache import njit

from .cells import BITS, BLOCK, steps

SIDES = 32
"""Number of directions in a plane; the farthest points along them form its boundary."""

PLACES = 20
"""Bits of a position in a plane's raster, in the keys of its farthest points."""

NEAR = 1 << 15
"""Units of the maximum distance from a plane, in sums."""

PART = 256
"""Units of a step, in sums of coordinates."""

SUMS = 6
"""Sums per plane: points, x, y, z, distance, squared distance."""

EDGE = 1 << 30
"""Flag in the label of a pixel that has a neighbour without points."""

COLUMNS = 6
"""Numbers per point of a block: its place, in steps; the distance of the nearest plane within whose
maximum distance it is, that plane, and the first such plane, -1 for none. They are in one array,
column by column, so that the compiler sees that columns do not overlap."""

X, Y, Z, DISTANCE, NEAREST, FRONT = (np.uint64(column * BLOCK) for column in range(COLUMNS))
"""Where columns begin. They are unsigned: an index that may be negative is not vectorised."""


@njit(cache=True, nogil=True, error_model="numpy")
def lookup(a, b, c, n, grid, cell):
    """Find the cell of each point of a block; cells are numbered x before y before z."""
    shift = np.int32(BITS - grid)
    for k in range(n):
        cell[k] = ((a[k] >> shift) << grid | b[k] >> shift) << grid | c[k] >> shift


@njit(cache=True, nogil=True, error_model="numpy")
def end_of_run(cell, start, n):
    """Give the end of the run of points that begins at `start`."""
    end = start + 1
    while end < n and cell[end] == cell[start]:
        end += 1
    return end


@njit(cache=True, nogil=True, error_model="numpy")
def compare(block, start, end, first, last, items, planes):
    """Find the planes near each point of a run.

    Parameters
    ----------
    block : float64[COLUMNS * BLOCK]
        In: the places of points; out: the other columns.
    start, end : int
        The run.
    first, last : int
        Range in `items` of the planes near its cell.
    items : int32[]
        Ascending in each cell.
    planes : float64[planes, 5]
        Normal, offset, maximum distance, in steps.
    """
    start, n = np.uint64(start), np.uint64(end - start)
    for i in range(n):
        k = start + np.uint64(i)
        block[DISTANCE + k], block[NEAREST + k], block[FRONT + k] = np.inf, -1.0, -1.0
    for item in range(last - 1, first - 1, -1):  # of planes at one distance the first one counts
        p = items[item]
        number = float(p)
        nx, ny, nz, offset, limit = (
            planes[p, 0], planes[p, 1], planes[p, 2], planes[p, 3], planes[p, 4],
        )  # fmt: skip
        for i in range(n):
            k = start + np.uint64(i)
            d = ((nx * block[X + k] + ny * block[Y + k]) + nz * block[Z + k]) - offset
            distance, best = abs(d), block[DISTANCE + k]
            nearest, front = block[NEAREST + k], block[FRONT + k]
            is_near = distance <= limit
            is_nearest = is_near & (distance <= best)
            block[DISTANCE + k] = distance if is_nearest else best
            block[NEAREST + k] = number if is_nearest else nearest
            block[FRONT + k] = number if is_near else front


@njit(cache=True, nogil=True, error_model="numpy")
def nearest(x, y, z, first, last, items, planes, rasters, starts, labels, place):
    """Find the nearest plane with a surface at a point.

    Parameters
    ----------
    x, y, z : float
        In steps.
    first, last : int
        Range in `items` of the planes near the point's cell.
    items : int32[]
    planes : float64[planes, 5]
        Normal, offset, maximum distance, in steps.
    rasters : float64[planes, 9]
        Two axes, the minimum along each in steps, and the inverse of the side of a pixel.
    starts : int64[planes, 3]
        First pixel, pixels in a row, pixels along the longer side.
    labels : int32[pixels]
        Surface of each pixel, or 0; EDGE may be added.
    place : float64[3]
        Out: distance in steps, and the position in pixels.

    Returns
    -------
    plane, pixel : int
        -1 if there is none.
    """
    best, found, at = np.inf, -1, np.int64(-1)
    for i in range(first, last):
        p = items[i]
        d = ((planes[p, 0] * x + planes[p, 1] * y) + planes[p, 2] * z) - planes[p, 3]
        off = abs(d)
        if off <= planes[p, 4] and off < best:
            u, v, pixel = pixel_at(x, y, z, p, rasters, starts)
            if labels[pixel] != 0:
                best, found, at = off, p, pixel
                place[0], place[1], place[2] = d, u, v
    return found, at


@njit(cache=True, nogil=True, error_model="numpy")
def pixel_at(x, y, z, p, rasters, starts):
    """Give the position of a point in the raster of a plane, and its pixel; see `nearest`."""
    r = rasters[p]
    u = (((r[0] * x + r[1] * y) + r[2] * z) - r[6]) * r[8]
    v = (((r[3] * x + r[4] * y) + r[5] * z) - r[7]) * r[8]
    return u, v, starts[p, 0] + np.int64(v) * starts[p, 1] + np.int64(u)


@njit(cache=True, nogil=True, error_model="numpy")
def places(x, y, z, low_x, low_y, low_z, scale, first, n, grid, a, b, c, cell, block):
    """Write the places of the `n` points from `first` on into a block, and find their cells."""
    last = first + n
    x, y, z = x[first:last], y[first:last], z[first:last]
    steps(x, y, z, low_x, low_y, low_z, scale, a, b, c)
    lookup(a, b, c, n, grid, cell)
    for i in range(n):
        k = np.uint64(i)
        block[X + k] = (x[k] - low_x) * scale
        block[Y + k] = (y[k] - low_y) * scale
        block[Z + k] = (z[k] - low_z) * scale


@njit(cache=True, nogil=True, error_model="numpy")
def cover(
    x, y, z, low_x, low_y, low_z, scale, start, stop,
    grid, cell_starts, items, planes, rasters, starts, covered, sums,
):  # fmt: skip
    """Mark the pixels that have points, and sum up the distances of the points from their planes.

    Parameters
    ----------
    grid : int
        Level of the cells.
    cell_starts : int32[8^grid + 1]
        Start of the planes of each cell in `items`; cells are numbered x before y before z.
    covered : uint8[pixels]
        In and out.
    sums : int64[planes, SUMS]
        In and out: the points that are nearest to each plane, in column 4 their distances, and in
        column 1 the points near it that are near no plane before it.
    """
    a, b, c = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    cell, block = np.empty(BLOCK, np.int32), np.empty(COLUMNS * BLOCK)
    for first in range(start, stop, BLOCK):
        n = min(BLOCK, stop - first)
        places(x, y, z, low_x, low_y, low_z, scale, first, n, grid, a, b, c, cell, block)
        end = 0
        while end < n:
            begin, end = end, end_of_run(cell, end, n)
            item, last = cell_starts[cell[begin]], cell_starts[cell[begin] + 1]
            if item == last:
                continue
            compare(block, begin, end, item, last, items, planes)
            for k in range(begin, end):
                i = np.uint64(k)
                p = np.int64(block[NEAREST + i])
                if p < 0:
                    continue
                px, py, pz = block[X + i], block[Y + i], block[Z + i]
                covered[pixel_at(px, py, pz, p, rasters, starts)[2]] = 1
                off = ((planes[p, 0] * px + planes[p, 1] * py) + planes[p, 2] * pz) - planes[p, 3]
                units = np.int64(np.floor(off / planes[p, 4] * NEAR + 0.5))
                sums[p, 0] += 1
                sums[p, 4] += units
                sums[p, 5] += units * units
                sums[np.int64(block[FRONT + i]), 1] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def settle(
    x, y, z, low_x, low_y, low_z, scale, start, stop,
    grid, cell_starts, items, planes, rasters, starts, labels, sides,
    sums, farthest, at, owner, distance,
):  # fmt: skip
    """Assign each point to a surface, and sum up the points of each surface.

    Parameters
    ----------
    sides : float64[SIDES, 2]
        Directions in a raster.
    sums : int64[surfaces, SUMS]
        In and out: points, their coordinates in units of 1/PART step, distances and their squares
        in units of the maximum distance / NEAR.
    farthest : int64[surfaces, SIDES]
        In and out: keys that combine how far the farthest point is along each direction, and its
        position.
    at : int64[n]
        Rows of the points in `owner` and `distance`.
    owner, distance : int32[n], float64[n]
        Out, unless empty: surface, or 0; distance from its plane in steps, NaN without one.
    """
    a, b, c = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    cell, block = np.empty(BLOCK, np.int32), np.empty(COLUMNS * BLOCK)
    place = np.empty(3)
    wants_owner = owner.size > 0
    for first in range(start, stop, BLOCK):
        n = min(BLOCK, stop - first)
        places(x, y, z, low_x, low_y, low_z, scale, first, n, grid, a, b, c, cell, block)
        end = 0
        while end < n:
            begin, end = end, end_of_run(cell, end, n)
            item, last = cell_starts[cell[begin]], cell_starts[cell[begin] + 1]
            compare(block, begin, end, item, last, items, planes)
            for k in range(begin, end):
                i = np.uint64(k)
                px, py, pz = block[X + i], block[Y + i], block[Z + i]
                p, pixel = np.int64(block[NEAREST + i]), np.int64(-1)
                if p >= 0:
                    u, v, pixel = pixel_at(px, py, pz, p, rasters, starts)
                    if labels[pixel] != 0:
                        off = (planes[p, 0] * px + planes[p, 1] * py) + planes[p, 2] * pz
                        place[0], place[1], place[2] = off - planes[p, 3], u, v
                    else:  # another one may have a surface there
                        p, pixel = nearest(
                            px, py, pz, item, last, items, planes, rasters, starts, labels, place
                        )  # fmt: skip
                if wants_owner:
                    there = at[first + k]
                    owner[there], distance[there] = 0, np.nan
                if p < 0:
                    continue
                label = labels[pixel]
                row = (label & (EDGE - 1)) - 1
                if wants_owner:
                    owner[there], distance[there] = row + 1, place[0]
                off = np.int64(np.floor(place[0] / planes[p, 4] * NEAR + 0.5))
                sums[row, 0] += 1
                sums[row, 1] += np.int64(px * PART)
                sums[row, 2] += np.int64(py * PART)
                sums[row, 3] += np.int64(pz * PART)
                sums[row, 4] += off
                sums[row, 5] += off * off
                if label & EDGE:
                    keep_farthest(place[1], place[2], starts[p, 2], sides, farthest[row])


@njit(cache=True, nogil=True, error_model="numpy")
def keep_farthest(u, v, size, sides, farthest):
    """Keep a point of a raster `size` pixels long if it is the farthest in some direction."""
    unit = float((1 << PLACES) - 1) / float(size)
    a, b = np.int64(u * unit), np.int64(v * unit)
    for s in range(SIDES):
        far = np.int64((sides[s, 0] * u + sides[s, 1] * v) * unit) + (1 << (PLACES + 1))
        key = (far << PLACES | a) << PLACES | b
        if key > farthest[s]:
            farthest[s] = key


@njit(cache=True, nogil=True, error_model="numpy")
def name(owner, distance, ids, step, named, start, stop):
    """Convert surfaces to plane_ids, and steps to units of the coordinates.

    Parameters
    ----------
    owner : int32[n]
        Surfaces from 1 on, or 0.
    distance : float64[n]
        In and out.
    ids : int64[surfaces + 1]
        The plane_id of "no surface", then of each surface; 0 if the surface is not a plane.
    step : float
        Length of a step in units of the coordinates.
    named : int64[n]
        Out.
    """
    for k in range(start, stop):
        named[k] = ids[owner[k]]
        distance[k] = distance[k] * step if named[k] > 0 else np.nan


@njit(cache=True, nogil=True, error_model="numpy")
def rest(
    x, y, z, low_x, low_y, low_z, scale, start, stop,
    grid, cell_starts, items, plain, planes, left,
):  # fmt: skip
    """List the points that no plane explains.

    Parameters
    ----------
    grid, cell_starts, items, plain
        See `surfaces.Near`; points of plain cells are explained.
    left : int64[n]
        Out, from `start` on: positions.

    Returns
    -------
    int
        End of the list.
    """
    a, b, c = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    cell, block = np.empty(BLOCK, np.int32), np.empty(COLUMNS * BLOCK)
    listed = start
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        steps(x[first:last], y[first:last], z[first:last], low_x, low_y, low_z, scale, a, b, c)
        n = last - first
        lookup(a, b, c, n, grid, cell)
        for k in range(n):
            i = np.uint64(k)
            block[X + i], block[Y + i], block[Z + i] = a[i], b[i], c[i]
        end = 0
        while end < n:
            begin, end = end, end_of_run(cell, end, n)
            here = cell[begin]
            if plain[here] != 0:
                continue
            compare(block, begin, end, cell_starts[here], cell_starts[here + 1], items, planes)
            for k in range(begin, end):
                if block[NEAREST + np.uint64(k)] < 0.0:
                    left[listed] = first + k
                    listed += 1
    return listed
