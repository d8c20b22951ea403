"""Loops over cells near planes, and over the pixels of rasters in planes."""

import numpy as np

from spatialq.runtime.compile_cache import njit

from .assign import EDGE
from .cells import BITS


@njit(cache=True, nogil=True, error_model="numpy")
def find_blocks(level, code, grid, first, plain):
    """Find the cells that nodes cover, or that contain nodes.

    Parameters
    ----------
    level, code : int64[nodes]
    grid : int
        Level of the cells.
    first : int64[nodes, 3]
        Out: minimum cell of each node.
    plain : uint8[8^grid]
        In and out: 1 where a node covers a cell.
    """
    for k in range(level.size):
        up, down = max(grid - level[k], 0), max(level[k] - grid, 0)
        for axis in range(3):
            at = np.int64(0)
            for bit in range(level[k]):
                at |= (code[k] >> (3 * bit + 2 - axis) & 1) << bit
            first[k, axis] = at << up >> down
        if down > 0:
            continue
        for i in range(first[k, 0], first[k, 0] + (1 << up)):
            for j in range(first[k, 1], first[k, 1] + (1 << up)):
                for h in range(first[k, 2], first[k, 2] + (1 << up)):
                    plain[(i << grid | j) << grid | h] = 1


@njit(cache=True, nogil=True, error_model="numpy")
def near_cells(owner, first, wide, planes, grid, stamp, cells, of_plane):
    """List the cells around the nodes of planes that the planes cross, each once.

    Parameters
    ----------
    owner : int32[nodes], ascending
    first, wide : int64[nodes, 3], int64[nodes]
        Cells of a node; as many cells around them are searched.
    stamp : int32[8^grid]
        Scratch, filled with -1.
    cells, of_plane : int64[size], int32[size]
        Out: the first `size` pairs of a cell and its plane.

    Returns
    -------
    int
        Number of pairs, which may be more than `size`.
    """
    cell = float(1 << (BITS - grid))
    n = 0
    for k in range(owner.size):
        p = owner[k]
        nx, ny, nz = planes[p, 0], planes[p, 1], planes[p, 2]
        reach = 0.5 * cell * (abs(nx) + abs(ny) + abs(nz)) + planes[p, 4]
        w, last = wide[k], (1 << grid) - 1
        for i in range(max(first[k, 0] - w, 0), min(first[k, 0] + 2 * w - 1, last) + 1):
            for j in range(max(first[k, 1] - w, 0), min(first[k, 1] + 2 * w - 1, last) + 1):
                for h in range(max(first[k, 2] - w, 0), min(first[k, 2] + 2 * w - 1, last) + 1):
                    c = (i << grid | j) << grid | h
                    if stamp[c] == p:
                        continue
                    stamp[c] = p
                    d = nx * (i + 0.5) * cell + ny * (j + 0.5) * cell + nz * (h + 0.5) * cell
                    if abs(d - planes[p, 3]) > reach:
                        continue
                    if n < cells.size:
                        cells[n], of_plane[n] = c, p
                    n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def find_runs(covered, rows, columns, firsts, lasts, starts):
    """List the runs of pixels with points, row by row.

    Parameters
    ----------
    covered : uint8[rows * columns]
    firsts, lasts : int32[runs]
        Out: first pixel and one past the last; must be large enough for any raster.
    starts : int32[rows + 1]
        Out: first run of each row.
    """
    n = 0
    for i in range(rows):
        starts[i] = n
        inside = False
        for k in range(i * columns, (i + 1) * columns):
            if covered[k] != 0:
                if not inside:
                    firsts[n] = k
                    inside = True
            elif inside:
                lasts[n] = k
                n += 1
                inside = False
        if inside:
            lasts[n] = (i + 1) * columns
            n += 1
    starts[rows] = n


@njit(cache=True, nogil=True, error_model="numpy")
def connect(firsts, lasts, starts, columns, number):
    """Give numbers to surfaces: runs that touch at sides or corners, ordered by their first runs.

    Parameters
    ----------
    firsts, lasts, starts
        From `find_runs`.
    number : int32[runs]
        Out: 0, 1, 2 ...

    Returns
    -------
    int
        Number of surfaces.
    """
    for k in range(number.size):
        number[k] = k
    for i in range(1, starts.size - 1):
        above, end = starts[i - 1], starts[i]
        for k in range(starts[i], starts[i + 1]):
            while above < end and lasts[above] + columns < firsts[k]:
                above += 1
            other = above
            while other < end and firsts[other] + columns <= lasts[k]:
                a, b = k, other
                while number[a] != a:
                    number[a] = number[number[a]]
                    a = number[a]
                while number[b] != b:
                    number[b] = number[number[b]]
                    b = number[b]
                number[max(a, b)] = min(a, b)
                other += 1
    n = 0
    for k in range(number.size):
        if number[k] == k:
            number[k] = n
            n += 1
        else:
            number[k] = number[number[k]]
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def fill_runs(firsts, lasts, numbers, own):
    """Write the label of each run to its pixels."""
    for k in range(numbers.size):
        for pixel in range(firsts[k], lasts[k]):
            own[pixel] = numbers[k]


@njit(cache=True, nogil=True, error_model="numpy")
def mark_edges(own, columns, labels, start, stop):
    """Add EDGE to the labels of pixels with a neighbour of another surface, or of none.

    Parameters
    ----------
    own : int32[pixels]
        Labels; the outermost pixels of a raster have none.
    labels : int32[pixels]
        Out.
    start, stop : int
        Range of pixels that excludes the outermost ones.
    """
    a, b, c = own[start - columns - 1 :], own[start - columns :], own[start - columns + 1 :]
    d, e, f = own[start - 1 :], own[start:], own[start + 1 :]
    g, h, i = own[start + columns - 1 :], own[start + columns :], own[start + columns + 1 :]
    out = labels[start:]
    for k in range(stop - start):
        v = e[k]
        other = (a[k] ^ v) | (b[k] ^ v) | (c[k] ^ v) | (d[k] ^ v)
        other |= (f[k] ^ v) | (g[k] ^ v) | (h[k] ^ v) | (i[k] ^ v)
        out[k] = v | (EDGE if (other != 0) & (v != 0) else 0)


@njit(cache=True, nogil=True, error_model="numpy")
def sort_by_cell(cells, of_plane, starts, items):
    """List the planes of each cell.

    Parameters
    ----------
    cells, of_plane : int64[n], int32[n]
        Planes in ascending order.
    starts : int32[cells + 1]
        In: 0; out: first plane of each cell.
    items : int32[n]
        Out.
    """
    for k in range(cells.size):
        starts[cells[k] + 1] += 1
    for cell in range(starts.size - 1):
        starts[cell + 1] += starts[cell]
    for k in range(cells.size):
        items[starts[cells[k]]] = of_plane[k]
        starts[cells[k]] += 1
    for cell in range(starts.size - 1, 0, -1):
        starts[cell] = starts[cell - 1]
    starts[0] = 0
