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
def connect(covered, starts, shapes, parent, label):
    """Label the pixels of rasters that hang together, by sides or corners.

    Parameters
    ----------
    covered : uint8[pixels]
    starts, shapes
        Of `surfaces.Rasters`.
    parent : int32[pixels]
        Is changed.
    label : int32[pixels]
        Out: parts of rasters, numbered from 1 on by their first pixels; 0 where there are no
        points.

    Returns
    -------
    firsts, sizes : int64[parts]
        The first pixel of each, and how many it has.
    """
    n = 0
    for p in range(len(starts)):
        first, columns = starts[p, 0], shapes[p, 1]
        for k in range(first, first + shapes[p, 0] * columns):
            parent[k], label[k] = k, 0
            if covered[k] == 0:
                continue
            column, top = (k - first) % columns, k < first + columns
            for other, inside in (
                (k - 1, column > 0),
                (k - columns - 1, column > 0 and not top),
                (k - columns, not top),
                (k - columns + 1, column < columns - 1 and not top),
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
    for k in range(covered.size):
        n += covered[k] != 0 and parent[k] == k
    firsts, sizes, n = np.empty(n, np.int64), np.zeros(n, np.int64), 0
    for k in range(covered.size):
        if covered[k] != 0:
            a = k
            while parent[a] != a:
                a = parent[a]
            if a == k:
                firsts[n] = k
                n += 1
                label[k] = n
            else:
                label[k] = label[a]
            sizes[label[k] - 1] += 1
    return firsts, sizes


@njit(cache=True, nogil=True, error_model="numpy")
def paint(numbers, starts, shapes, label, halves):
    """Turn parts of rasters to surfaces, and tell the pixels along the edges of these.

    Parameters
    ----------
    numbers : int32[parts + 1]
        Surface of each part, from 1 on, or 0.
    label : int32[pixels]
        In: part of each pixel, or 0; out: see `assign.nearest`.
    halves : int64[surfaces]
        In and out: 2 for each pixel inside, 1 for each along an edge.
    """
    for k in range(label.size):
        label[k] = numbers[label[k]]
    for p in range(len(starts)):
        first, rows, columns = starts[p, 0], shapes[p, 0], shapes[p, 1]
        for i in range(rows):
            for j in range(columns):
                k = first + i * columns + j
                own = label[k] & (EDGE - 1)
                if own == 0:
                    continue
                halves[own - 1] += 2
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        a, b = i + di, j + dj
                        out = a < 0 or b < 0 or a >= rows or b >= columns
                        if out or label[first + a * columns + b] & (EDGE - 1) != own:
                            label[k] = own | EDGE
                halves[own - 1] -= (label[k] & EDGE) != 0
