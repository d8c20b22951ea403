"""Loops over points: the plane of each, and what the points of a plane have in common.

A plane is looked for only in cells near its nodes, and its points are told by a raster in it:
what is no part of a surface large enough, such as where another wall crosses it, is left out.
"""

import numpy as np

from spatialq.runtime.compile_cache import njit

from .cells import BITS, BLOCK, steps

SIDES = 32
"""Directions in a plane whose farthest points make its boundary."""

PLACES = 20
"""Bits of a place in a plane's raster, in the keys of its farthest points."""

NEAR = 1 << 15
"""Steps to the greatest distance from a plane, in sums."""

PART = 256
"""Parts of a step, in sums of coordinates."""

SUMS = 6
"""Of a plane: points, x, y, z, distance, squared distance."""

EDGE = 1 << 30
"""Added to the label of a pixel that has a neighbour without points."""


@njit(cache=True, nogil=True, error_model="numpy")
def nearest(x, y, z, first, last, items, planes, rasters, starts, labels, place):
    """Find the nearest plane with a surface at a point.

    Parameters
    ----------
    x, y, z : float
        In steps.
    first, last : int
        Where the planes are that may be in the point's cell.
    items : int32[]
    planes : float64[planes, 5]
        Normal, offset, greatest distance, in steps.
    rasters : float64[planes, 9]
        Two axes, the least place along each in steps, and the inverse of a pixel's side.
    starts : int64[planes, 3]
        First pixel, pixels in a row, pixels along the longer side.
    labels : int32[pixels]
        Surface that a pixel belongs to, or 0; EDGE may be added. Empty: all belong to one.
    place : float64[3]
        Out: distance in steps, and the place in pixels.

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
            r = rasters[p]
            u = (((r[0] * x + r[1] * y) + r[2] * z) - r[6]) * r[8]
            v = (((r[3] * x + r[4] * y) + r[5] * z) - r[7]) * r[8]
            pixel = starts[p, 0] + np.int64(v) * starts[p, 1] + np.int64(u)
            if labels.size == 0 or labels[pixel] != 0:
                best, found, at = off, p, pixel
                place[0], place[1], place[2] = d, u, v
    return found, at


@njit(cache=True, nogil=True, error_model="numpy")
def cover(
    x, y, z, low_x, low_y, low_z, scale, start, stop,
    grid, cell_starts, items, planes, rasters, starts, anywhere, covered, sums,
):  # fmt: skip
    """Mark the pixels that have points, and add up how far these are from their planes.

    Parameters
    ----------
    grid : int
        Level of the cells.
    cell_starts : int32[8^grid + 1]
        Where the planes of a cell are in `items`; cells x before y before z.
    anywhere : int32[0]
        No labels.
    covered : uint8[pixels]
        In and out.
    sums : int64[planes, SUMS]
        In and out: the points and their distances.
    """
    a, b, c = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    place = np.empty(3)
    shift = np.int32(BITS - grid)
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        steps(x[first:last], y[first:last], z[first:last], low_x, low_y, low_z, scale, a, b, c)
        for k in range(last - first):
            cell = ((a[k] >> shift) << grid | b[k] >> shift) << grid | c[k] >> shift
            if cell_starts[cell] == cell_starts[cell + 1]:
                continue
            p, pixel = nearest(
                (x[first + k] - low_x) * scale, (y[first + k] - low_y) * scale,
                (z[first + k] - low_z) * scale, cell_starts[cell], cell_starts[cell + 1],
                items, planes, rasters, starts, anywhere, place,
            )  # fmt: skip
            if p >= 0:
                covered[pixel] = 1
                sums[p, 0] += 1
                sums[p, 4] += np.int64(np.floor(place[0] / planes[p, 4] * NEAR + 0.5))


@njit(cache=True, nogil=True, error_model="numpy")
def settle(
    x, y, z, low_x, low_y, low_z, scale, start, stop,
    grid, cell_starts, items, planes, rasters, starts, labels, sides,
    sums, farthest, owner, distance,
):  # fmt: skip
    """Give each point to a surface, and add up the surfaces' points.

    Parameters
    ----------
    sides : float64[SIDES, 2]
        Directions in a raster.
    sums : int64[surfaces, SUMS]
        In and out: points, their coordinates in parts of steps, distances and their squares in
        parts of the greatest.
    farthest : int64[surfaces, SIDES]
        In and out: how far points go each way, and where that point is, in one number.
    owner, distance : int32[n], float64[n]
        Out, unless empty: surface, or 0; distance from its plane in steps.
    """
    a, b, c = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    place = np.empty(3)
    shift = np.int32(BITS - grid)
    told = owner.size > 0
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        steps(x[first:last], y[first:last], z[first:last], low_x, low_y, low_z, scale, a, b, c)
        for k in range(last - first):
            cell = ((a[k] >> shift) << grid | b[k] >> shift) << grid | c[k] >> shift
            px, py, pz = (
                (x[first + k] - low_x) * scale,
                (y[first + k] - low_y) * scale,
                (z[first + k] - low_z) * scale,
            )
            p, pixel = nearest(
                px, py, pz, cell_starts[cell], cell_starts[cell + 1],
                items, planes, rasters, starts, labels, place,
            )  # fmt: skip
            if p < 0:
                if told:
                    owner[first + k], distance[first + k] = 0, np.nan
                continue
            label = labels[pixel]
            row = (label & (EDGE - 1)) - 1
            if told:
                owner[first + k], distance[first + k] = row + 1, place[0]
            off = np.int64(np.floor(place[0] / planes[p, 4] * NEAR + 0.5))
            sums[row, 0] += 1
            sums[row, 1] += np.int64(px * PART)
            sums[row, 2] += np.int64(py * PART)
            sums[row, 3] += np.int64(pz * PART)
            sums[row, 4] += off
            sums[row, 5] += off * off
            if label & EDGE:
                reach(place[1], place[2], starts[p, 2], sides, farthest[row])


@njit(cache=True, nogil=True, error_model="numpy")
def reach(u, v, size, sides, farthest):
    """Note a point of a raster so many pixels long, if none is farther one way."""
    unit = float((1 << PLACES) - 1) / float(size)
    a, b = np.int64(u * unit), np.int64(v * unit)
    for s in range(SIDES):
        far = np.int64((sides[s, 0] * u + sides[s, 1] * v) * unit) + (1 << (PLACES + 1))
        key = (far << PLACES | a) << PLACES | b
        if key > farthest[s]:
            farthest[s] = key


@njit(cache=True, nogil=True, error_model="numpy")
def name(owner, distance, ids, step, named, start, stop):
    """Turn surfaces to plane_ids, and steps to units of the coordinates.

    Parameters
    ----------
    owner : int32[n]
        Surfaces from 1 on, or 0.
    distance : float64[n]
        In and out.
    ids : int64[surfaces + 1]
        Of no surface, then of each: 0 where it is no plane.
    step : float
        In units of the coordinates.
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
        Where they end.
    """
    a, b, c = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    shift = np.int32(BITS - grid)
    end = start
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        steps(x[first:last], y[first:last], z[first:last], low_x, low_y, low_z, scale, a, b, c)
        for k in range(last - first):
            cell = ((a[k] >> shift) << grid | b[k] >> shift) << grid | c[k] >> shift
            if plain[cell] != 0:
                continue
            explained = False
            for i in range(cell_starts[cell], cell_starts[cell + 1]):
                p = items[i]
                d = ((planes[p, 0] * a[k] + planes[p, 1] * b[k]) + planes[p, 2] * c[k]) - planes[
                    p, 3
                ]
                if abs(d) <= planes[p, 4]:
                    explained = True
                    break
            if not explained:
                left[end] = first + k
                end += 1
    return end
