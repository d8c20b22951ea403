"""Loops over cells of the octree: moments of coarser cells, planar cells and their planes."""

import numpy as np

from spatialq.geometry.eigen import eigen
from spatialq.runtime.compile_cache import njit

from .cells import BITS, GRID, MOMENTS, NONE, OPEN

FLAT = -3
"""The state of a cell within a planar one is FLAT minus the level of that one."""

SIDE_SHARE = 10
"""Points farther from the plane of a node than its side divided by this are outliers."""

MIN_POINTS = 3
"""Minimum number of points of a plane."""


@njit(cache=True, nogil=True, error_model="numpy")
def centre(t, side, m):
    """Convert the sums of one cell, see `centre_moments`."""
    h = 0.5 - 0.5 * side  # centre of a step relative to the centre of the cell
    n, x, y, z = float(t[0]), float(t[1]), float(t[2]), float(t[3])
    m[0] = n
    m[1] = x + h * n
    m[2] = y + h * n
    m[3] = z + h * n
    hh = h * h * n
    m[4] = (float(t[4]) + (h + h) * x) + hh
    m[5] = ((float(t[5]) + h * x) + h * y) + hh
    m[6] = ((float(t[6]) + h * x) + h * z) + hh
    m[7] = (float(t[7]) + (h + h) * y) + hh
    m[8] = ((float(t[8]) + h * y) + h * z) + hh
    m[9] = (float(t[9]) + (h + h) * z) + hh


@njit(cache=True, nogil=True, error_model="numpy")
def centre_moments(table, side, moments, start, stop):
    """Convert the sums of cells into moments about their centres.

    Parameters
    ----------
    table : int64[cells, MOMENTS]
        Sums of offsets from the minimum corner, in steps.
    side : int
        Side of a cell, in steps.
    moments : float64[cells, MOMENTS]
        Out.
    """
    for k in range(start, stop):
        if table[k, 0] == 0:
            for i in range(MOMENTS):
                moments[k, i] = 0.0
        else:
            centre(table[k], side, moments[k])


@njit(cache=True, nogil=True, error_model="numpy")
def shift_into(m, dx, dy, dz, total):
    """Add moments to others about another centre, which is at -(dx, dy, dz) from theirs."""
    n = m[0]
    total[0] += n
    total[1] += m[1] + dx * n
    total[2] += m[2] + dy * n
    total[3] += m[3] + dz * n
    total[4] += (m[4] + (dx + dx) * m[1]) + dx * dx * n
    total[5] += ((m[5] + dx * m[2]) + dy * m[1]) + dx * dy * n
    total[6] += ((m[6] + dx * m[3]) + dz * m[1]) + dx * dz * n
    total[7] += (m[7] + (dy + dy) * m[2]) + dy * dy * n
    total[8] += ((m[8] + dy * m[3]) + dz * m[2]) + dy * dz * n
    total[9] += (m[9] + (dz + dz) * m[3]) + dz * dz * n


@njit(cache=True, nogil=True, error_model="numpy")
def halve(fine, side, coarse, start, stop):
    """Sum the moments of the eight parts of each cell; `side` is that of a part, in steps."""
    d = 0.5 * side
    for k in range(start, stop):
        total = coarse[k]
        for i in range(MOMENTS):
            total[i] = 0.0
        for part in range(8):
            m = fine[8 * k + part]
            if m[0] > 0.0:
                shift_into(
                    m,
                    d if part & 4 else -d,
                    d if part & 2 else -d,
                    d if part & 1 else -d,
                    total,
                )


@njit(cache=True, nogil=True, error_model="numpy")
def spectrum(m, values, vectors):
    """Return the mean of moments; write eigenvalues and eigenvectors of their covariance."""
    n = m[0]
    x, y, z = m[1] / n, m[2] / n, m[3] / n
    eigen(
        m[4] / n - x * x, m[5] / n - x * y, m[6] / n - x * z,
        m[7] / n - y * y, m[8] / n - y * z, m[9] / n - z * z,
        values, vectors,
    )  # fmt: skip
    return x, y, z


@njit(cache=True, nogil=True, error_model="numpy")
def judge(
    moments, before, tested, s_ms, max_thickness, min_isotropy, flat, state, is_flat, start, stop
):  # fmt: skip
    """Find the planar cells of a level.

    Parameters
    ----------
    moments : float64[cells, MOMENTS]
    before : int32[cells / 8]
        States of the cells above; one for the root.
    tested : bool
        Whether this level may have planar nodes.
    flat : int
        FLAT minus the level.
    state : int32[cells]
        Out: the state of the cell above unless that is OPEN; otherwise NONE, OPEN or `flat`.
    is_flat : bool[cells]
        Out: whether a cell is a planar node.
    """
    values, vectors = np.empty(3), np.empty((3, 3))
    for k in range(start, stop):
        own = before[k >> 3]
        is_flat[k] = False
        if own == OPEN and moments[k, 0] < s_ms:
            own = NONE
        if own == OPEN and tested:
            spectrum(moments[k], values, vectors)
            if values[0] < max_thickness * values[1] and values[1] > min_isotropy * values[2]:
                own = flat
                is_flat[k] = True
        state[k] = own


@njit(cache=True, nogil=True, error_model="numpy")
def number(starts, first, last, ranks, is_last, state, start, stop):
    """Replace the states of the finest cells by the nodes that contain them.

    Parameters
    ----------
    starts : int64[levels + 1]
        First cell of each level of a grid.
    first, last : int
        Levels of the grid.
    ranks : int32[cells of all levels]
        Numbers of the cells that are nodes.
    is_last : bool
        Whether cells that are still open become NONE.
    state : int32[cells]
        In and out.
    """
    for k in range(start, stop):
        own = state[k]
        if own <= FLAT:
            level = FLAT - own
            state[k] = ranks[starts[level - first] + (k >> 3 * (last - level))]
        elif own == OPEN and is_last:
            state[k] = NONE


@njit(cache=True, nogil=True, error_model="numpy")
def place(at, starts, first, base, open_cells, levels, codes, corners, centres, start, stop):
    """Compute the positions of cells.

    Parameters
    ----------
    at : int64[n]
        Indices of the cells in a grid.
    starts : int64[levels + 1]
        First cell of each level in the grid.
    first, base : int
        First level of the grid; level of the open cells that it divides.
    open_cells : int64[]
        Morton codes of the open cells.
    levels, codes : int32[n], int64[n]
        Out.
    corners : int64[n, 4]
        Out: the minimum corner in steps, and the number of bits by which offsets from it are
        shifted to have no more bits than in a cell of the first grid.
    centres : float64[n, 3]
        Out: in steps.
    """
    for k in range(start, stop):
        row = 0
        while at[k] >= starts[row + 1]:
            row += 1
        level, cell = np.int64(first + row), at[k] - starts[row]
        down = 3 * (level - base)
        code = open_cells[cell >> down] << down | cell & ((1 << down) - 1)
        levels[k], codes[k] = level, code
        x, y, z = np.int64(0), np.int64(0), np.int64(0)
        for bit in range(level):
            x |= (code >> (3 * bit + 2) & 1) << bit
            y |= (code >> (3 * bit + 1) & 1) << bit
            z |= (code >> 3 * bit & 1) << bit
        down = BITS - level
        corners[k, 0], corners[k, 1], corners[k, 2] = x << down, y << down, z << down
        corners[k, 3] = GRID - level if level < GRID else 0
        half = 0.5 * float(1 << down)
        centres[k, 0] = float(x << down) + half
        centres[k, 1] = float(y << down) + half
        centres[k, 2] = float(z << down) + half


@njit(cache=True, nogil=True, error_model="numpy")
def first_planes(levels, moments, centres, planes, start, stop):
    """Fit the planes that determine outliers: normal, offset, maximum distance, in steps."""
    values, vectors = np.empty(3), np.empty((3, 3))
    for k in range(start, stop):
        x, y, z = spectrum(moments[k], values, vectors)
        nx, ny, nz = vectors[0, 0], vectors[0, 1], vectors[0, 2]
        # the coordinate of a step is that of its minimum corner
        x, y, z = x + centres[k, 0] - 0.5, y + centres[k, 1] - 0.5, z + centres[k, 2] - 0.5
        planes[k, 0], planes[k, 1], planes[k, 2] = nx, ny, nz
        planes[k, 3] = nx * x + ny * y + nz * z
        planes[k, 4] = float(1 << (BITS - levels[k])) / SIDE_SHARE


@njit(cache=True, nogil=True, error_model="numpy")
def without(levels, outliers, moments, start, stop):
    """Subtract the outliers of nodes from their moments, if enough points for a plane are left.

    Parameters
    ----------
    levels : int32[nodes]
    outliers : int64[nodes, MOMENTS]
        Sums of offsets from the minimum corners of nodes, shifted as described at `place`.
    moments : float64[nodes, MOMENTS]
        In and out: about the nodes' centres, in steps.
    """
    centred = np.empty(MOMENTS)
    for k in range(start, stop):
        if outliers[k, 0] == 0 or moments[k, 0] - outliers[k, 0] < MIN_POINTS:
            continue
        level = np.int64(levels[k])
        shift = GRID - level if level < GRID else 0
        centre(outliers[k], 1 << (BITS - level - shift), centred)
        unit = float(1 << shift)
        moments[k, 0] -= centred[0]
        for i in range(1, 4):
            moments[k, i] -= centred[i] * unit
        for i in range(4, MOMENTS):
            moments[k, i] -= centred[i] * (unit * unit)


@njit(cache=True, nogil=True, error_model="numpy")
def describe(levels, codes, moments, centres, rows, start, stop):
    """Describe each node by one row; lengths are in half sides of the root cube.

    Parameters
    ----------
    levels, codes : int32[nodes], int64[nodes]
    moments : float64[nodes, MOMENTS]
    centres : float64[nodes, 3]
        Centres of the nodes, in steps.
    rows : float64[nodes, 24]
        Out: level, code, points, mean relative to the centre of the root cube, covariance xx, xy,
        xz, yy, yz, zz, its eigenvalues, ascending, its eigenvectors.
    """
    half = float(1 << (BITS - 1))
    unit = half * half
    values, vectors = np.empty(3), np.empty((3, 3))
    for k in range(start, stop):
        m, row = moments[k], rows[k]
        n = m[0]
        x, y, z = m[1] / n, m[2] / n, m[3] / n
        row[0], row[1], row[2] = levels[k], codes[k], n
        row[3] = ((x + centres[k, 0]) - half) / half
        row[4] = ((y + centres[k, 1]) - half) / half
        row[5] = ((z + centres[k, 2]) - half) / half
        row[6] = (m[4] / n - x * x) / unit
        row[7] = (m[5] / n - x * y) / unit
        row[8] = (m[6] / n - x * z) / unit
        row[9] = (m[7] / n - y * y) / unit
        row[10] = (m[8] / n - y * z) / unit
        row[11] = (m[9] / n - z * z) / unit
        eigen(row[6], row[7], row[8], row[9], row[10], row[11], values, vectors)
        for i in range(3):
            row[12 + i] = values[i]
            for j in range(3):
                row[15 + 3 * i + j] = vectors[i, j]
