"""Loops over points: bounds, moments of the octree's cells, outliers of its nodes.

Coordinates are integers in steps of 1/2^21 of the side of the root cube, so that all sums are
integers: their order does not matter, and all devices get the same. Cells of a level are numbered
in Morton order, x before y before z: the eight parts of cell c are 8 c to 8 c + 7.
"""

import numpy as np

from spatialq.runtime.compile_cache import njit

BITS = 21
"""The side of the root cube has 2^BITS steps."""

GRID = 5
"""Level of the first grid of cells."""

MAX_GRID = 6
"""Maximum level of the cells in which planes are looked up, in whose order points are read."""

FINER = 1
"""Number of levels that each further grid is finer than the cells it divides."""

MOMENTS = 10
"""Moments per cell: points, x, y, z, xx, xy, xz, yy, yz, zz."""

NONE, OPEN = -1, -2
"""States of a cell outside all planar nodes: without planes, or to be searched in its parts."""

BLOCK = 512
"""Points whose coordinates are converted to steps together, so that the loop vectorises."""

TOP = (1 << BITS) - 1


@njit(cache=True, nogil=True, error_model="numpy")
def spread(v):
    """Move the six bits of a number three places apart."""
    v = (v | v << 8) & 0x300F
    v = (v | v << 4) & 0x30C3
    return (v | v << 2) & 0x9249


@njit(cache=True, nogil=True, error_model="numpy")
def steps(x, y, z, low_x, low_y, low_z, scale, a, b, c):
    """Convert coordinates to steps."""
    top = np.int32(TOP)
    for k in range(x.size):
        a[k] = max(min(np.int32((x[k] - low_x) * scale), top), np.int32(0))
        b[k] = max(min(np.int32((y[k] - low_y) * scale), top), np.int32(0))
        c[k] = max(min(np.int32((z[k] - low_z) * scale), top), np.int32(0))


@njit(cache=True, nogil=True, error_model="numpy")
def cells_of(a, b, c, n, level, cell):
    """Find the cell of each point at a level, MAX_GRID at most."""
    shift = np.int32(BITS - level)
    for k in range(n):
        cell[k] = spread(a[k] >> shift) << 2 | spread(b[k] >> shift) << 1 | spread(c[k] >> shift)


@njit(cache=True, nogil=True, error_model="numpy")
def gather(values, at, taken):
    """Take values by their positions."""
    for k in range(at.size):
        taken[k] = values[at[k]]


@njit(cache=True, nogil=True, error_model="numpy")
def order(x, y, z, low_x, low_y, low_z, scale, start, stop, at, in_order_x, in_order_y, in_order_z):
    """Put points into the order of the cells of level MAX_GRID.

    Parameters
    ----------
    at : int64[n]
        Out: positions of the points.
    in_order_x, in_order_y, in_order_z : float64[n]
        Out: their coordinates.
    """
    a, b, c = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    cell, ends = np.empty(stop - start, np.int32), np.zeros(1 << 3 * MAX_GRID, np.int32)
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        steps(
            x[first:last], y[first:last], z[first:last], low_x, low_y, low_z, scale, a, b, c
        )  # fmt: skip
        cells_of(a, b, c, last - first, MAX_GRID, cell[first - start :])
    for k in range(cell.size):
        ends[cell[k]] += 1
    end = 0
    for each in range(ends.size):
        end, ends[each] = end + ends[each], end
    for k in range(cell.size):
        at[start + ends[cell[k]]] = start + k
        ends[cell[k]] += 1
    gather(x, at[start:stop], in_order_x[start:stop])
    gather(y, at[start:stop], in_order_y[start:stop])
    gather(z, at[start:stop], in_order_z[start:stop])


@njit(cache=True, nogil=True, error_model="numpy")
def add_moments(table, row, a, b, c):
    """Add a point to the moments of a cell; its coordinates are relative to the cell."""
    first = np.uint64(row) * np.uint64(MOMENTS)
    table[first] += 1
    table[first + np.uint64(1)] += a
    table[first + np.uint64(2)] += b
    table[first + np.uint64(3)] += c
    table[first + np.uint64(4)] += a * a
    table[first + np.uint64(5)] += a * b
    table[first + np.uint64(6)] += a * c
    table[first + np.uint64(7)] += b * b
    table[first + np.uint64(8)] += b * c
    table[first + np.uint64(9)] += c * c


@njit(cache=True, nogil=True, error_model="numpy")
def add_points(x, y, z, low_x, low_y, low_z, scale, start, stop, table):
    """Add points to the moments of the first grid's cells.

    Parameters
    ----------
    table : int64[8^GRID * MOMENTS]
        In and out: sums of offsets from the minimum corner of each cell, in steps.
    """
    a, b = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    c, cell = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    mask = np.int64((1 << (BITS - GRID)) - 1)
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        steps(
            x[first:last], y[first:last], z[first:last], low_x, low_y, low_z, scale, a, b, c
        )  # fmt: skip
        cells_of(a, b, c, last - first, GRID, cell)
        for k in range(last - first):
            add_moments(table, np.int64(cell[k]), a[k] & mask, b[k] & mask, c[k] & mask)


@njit(cache=True, nogil=True, error_model="numpy")
def add_open(points, slots, start, stop, level, table):
    """Add the points of open cells to the moments of their parts, FINER levels down.

    Parameters
    ----------
    points : int64[n]
        Three coordinates in steps, BITS bits each.
    slots : int32[n]
        Number of each point's cell among the open cells.
    level : int
        Level of the parts.
    table : int64[open cells * 8^FINER * MOMENTS]
        In and out.
    """
    shift = BITS - level
    mask = (1 << shift) - 1
    for k in range(start, stop):
        a, b, c = points[k] >> 2 * BITS, points[k] >> BITS & TOP, points[k] & TOP
        add_moments(
            table, slots[k] << 3 * FINER | part_of(a, b, c, shift), a & mask, b & mask, c & mask
        )


@njit(cache=True, nogil=True, error_model="numpy")
def part_of(a, b, c, shift):
    """Give the number of a point's part of an open cell: FINER bits of each coordinate."""
    code = 0
    for bit in range(FINER):
        at = shift + bit
        code |= ((a >> at & 1) << 2 | (b >> at & 1) << 1 | (c >> at & 1)) << 3 * bit
    return code


@njit(cache=True, nogil=True, error_model="numpy")
def sift_point(a, b, c, node, planes, corners, outliers):
    """Add a point of a planar node to its outliers if it is too far from the plane."""
    d = planes[node, 0] * a + planes[node, 1] * b + planes[node, 2] * c - planes[node, 3]
    if abs(d) > planes[node, 4]:
        s = corners[node, 3]
        add_moments(
            outliers,
            np.int64(node),
            (a - corners[node, 0]) >> s,
            (b - corners[node, 1]) >> s,
            (c - corners[node, 2]) >> s,
        )


@njit(cache=True, nogil=True, error_model="numpy")
def sift_points(
    x, y, z, low_x, low_y, low_z, scale, start, stop,
    state, planes, corners, outliers, ranks, points, slots,
):  # fmt: skip
    """Sum up the outliers of planar nodes, and list the points of open cells.

    Parameters
    ----------
    state : int32[8^GRID]
        Node that contains the cell, NONE or OPEN.
    planes : float64[nodes, 5]
        Normal, offset, and maximum distance of a point from the plane, in steps.
    corners : int64[nodes, 4]
        Minimum corner of a node, and the number of bits by which offsets from it are shifted.
    outliers : int64[nodes * MOMENTS]
        In and out.
    ranks : int32[8^GRID]
        Number of a cell among the open cells.
    points, slots : int64[n], int32[n]
        Out, from `start` on.

    Returns
    -------
    int
        End of the list.
    """
    a, b = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    c, cell = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    end = start
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        steps(
            x[first:last], y[first:last], z[first:last], low_x, low_y, low_z, scale, a, b, c
        )  # fmt: skip
        cells_of(a, b, c, last - first, GRID, cell)
        for k in range(last - first):
            node = state[cell[k]]
            if node >= 0:
                sift_point(
                    np.int64(a[k]), np.int64(b[k]), np.int64(c[k]), node, planes, corners, outliers
                )  # fmt: skip
            elif node == OPEN:
                points[end] = np.int64(a[k]) << 2 * BITS | np.int64(b[k]) << BITS | np.int64(c[k])
                slots[end] = ranks[cell[k]]
                end += 1
    return end


@njit(cache=True, nogil=True, error_model="numpy")
def sift_open(points, slots, start, stop, level, state, planes, corners, outliers, ranks):
    """Do the same as `sift_points` for points that a previous call listed, in place."""
    shift = BITS - level
    end = start
    for k in range(start, stop):
        a, b, c = points[k] >> 2 * BITS, points[k] >> BITS & TOP, points[k] & TOP
        cell = slots[k] << 3 * FINER | part_of(a, b, c, shift)
        node = state[cell]
        if node >= 0:
            sift_point(a, b, c, node, planes, corners, outliers)
        elif node == OPEN:
            points[end] = points[k]
            slots[end] = ranks[cell]
            end += 1
    return end


@njit(cache=True, nogil=True, error_model="numpy")
def add_sides(
    x, y, z, low_x, low_y, low_z, scale, start, stop, grid, node_of, planes, corners, table
):  # fmt: skip
    """Sum up the points of nodes on either side of their planes.

    Parameters
    ----------
    grid : int
        Level of the cells, which are numbered x before y before z.
    node_of : int32[8^grid]
        Node that contains the cell, or NONE.
    planes, corners
        Of the nodes, see `sift_points`.
    table : int64[2 * nodes * MOMENTS]
        In and out: the side against the normal first. Outliers are left out.
    """
    a, b, c = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    shift = np.int32(BITS - grid)
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        steps(
            x[first:last], y[first:last], z[first:last], low_x, low_y, low_z, scale, a, b, c
        )  # fmt: skip
        for k in range(last - first):
            node = node_of[((a[k] >> shift) << grid | b[k] >> shift) << grid | c[k] >> shift]
            if node < 0:
                continue
            u, v, w = np.int64(a[k]), np.int64(b[k]), np.int64(c[k])
            d = planes[node, 0] * u + planes[node, 1] * v + planes[node, 2] * w - planes[node, 3]
            if abs(d) <= planes[node, 4]:
                s = corners[node, 3]
                add_moments(
                    table,
                    2 * node + (d > 0.0),
                    (u - corners[node, 0]) >> s,
                    (v - corners[node, 1]) >> s,
                    (w - corners[node, 2]) >> s,
                )
