"""Loops over cells near planes, and over the pixels of rasters in them."""

import numpy as np
from numba import njit

from .assign import EDGE
from .cells import BITS


@njit(cache=True, nogil=True, error_model="numpy")
def mark_plain(first, wide, grid, plain):
    """Mark the cells that nodes cover."""
    for k in range(wide.size):
        for i in range(first[k, 0], first[k, 0] + wide[k]):
            for j in range(first[k, 1], first[k, 1] + wide[k]):
                for h in range(first[k, 2], first[k, 2] + wide[k]):
                    plain[(i << grid | j) << grid | h] = 1


@njit(cache=True, nogil=True, error_model="numpy")
def near_cells(owner, first, wide, planes, grid, stamp):
    """List the cells around the nodes of planes that the planes cross, each once.

    Parameters
    ----------
    owner : int32[nodes], ascending
    first, wide : int64[nodes, 3], int64[nodes]
        Cells of a node; as many around them are looked at.
    stamp : int32[8^grid]
        -1; is changed.
    """
    cell = float(1 << (BITS - grid))
    size = 1024
    cells, of_plane, n = np.empty(size, np.int64), np.empty(size, np.int32), 0
    for k in range(owner.size):
        p = owner[k]
        nx, ny, nz = planes[p, 0], planes[p, 1], planes[p, 2]
        reach = 0.5 * cell * (abs(nx) + abs(ny) + abs(nz)) + planes[p, 4]
        w, last = wide[k], (1 << grid) - 1
        for i in range(max(first[k, 0] - w, 0), min(first[k, 0] + 2 * w - 1, last) + 1):
            for j in range(max(first[k, 1] - w, 0), min(first[k, 1] + 2 * w - 1, last) + 1):
                for h in range(max(first[k, 2] - w, 0), min(first[k, 2] + 2 * w - 1, last) + 1):
                    c = (i << grid | j) << grid | h
                    d = nx * (i + 0.5) * cell + ny * (j + 0.5) * cell + nz * (h + 0.5) * cell
                    if stamp[c] == p or abs(d - planes[p, 3]) > reach:
                        continue
                    stamp[c] = p
                    if n == size:
                        size *= 2
                        more, more_of = np.empty(size, np.int64), np.empty(size, np.int32)
                        more[:n], more_of[:n] = cells, of_plane
                        cells, of_plane = more, more_of
                    cells[n], of_plane[n] = c, p
                    n += 1
    return cells[:n], of_plane[:n]


@njit(cache=True, nogil=True, error_model="numpy")
def connect(covered, rows, columns, parent, label):
    """Label the pixels of a raster that hang together, by sides or corners.

    Parameters
    ----------
    covered : uint8[rows * columns]
    parent : int32[rows * columns]
        Is changed.
    label : int32[rows * columns]
        Out: 1, 2, 3 ... by their first pixels, 0 where there are no points.

    Returns
    -------
    int
        How many there are.
    """
    for k in range(rows * columns):
        parent[k] = k
        if covered[k] == 0:
            continue
        column = k % columns
        for other, inside in (
            (k - 1, column > 0),
            (k - columns - 1, column > 0 and k >= columns),
            (k - columns, k >= columns),
            (k - columns + 1, column < columns - 1 and k >= columns),
        ):
            if inside and covered[other] != 0:
                a, b = k, other
                while parent[a] != a:
                    parent[a] = parent[parent[a]]
                    a = parent[a]
                while parent[b] != b:
                    parent[b] = parent[parent[b]]
                    b = parent[b]
                parent[max(a, b)] = min(a, b)
    n = 0
    for k in range(rows * columns):
        label[k] = 0
        if covered[k] != 0:
            a = k
            while parent[a] != a:
                a = parent[a]
            if a == k:
                n += 1
                label[k] = n
            else:
                label[k] = label[a]
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def mark_edges(label, rows, columns):
    """Add EDGE to the labels of pixels that have a neighbour of another surface, or of none."""
    for i in range(rows):
        for j in range(columns):
            own = label[i * columns + j] & (EDGE - 1)
            if own == 0:
                continue
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    a, b = i + di, j + dj
                    out = a < 0 or b < 0 or a >= rows or b >= columns
                    if out or label[a * columns + b] & (EDGE - 1) != own:
                        label[i * columns + j] = own | EDGE
