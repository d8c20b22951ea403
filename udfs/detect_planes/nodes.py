"""Loops over cells of the octree: moments of coarser cells, planar cells and their planes."""

import numpy as np

from spatialq.geometry.eigen import eigen
from spatialq.runtime.compile_cache import njit

from .cells import BITS, GRID, MOMENTS, NONE, OPEN

SIDE_SHARE = 10
"""Points farther from the plane of a node than its side divided by this are outliers."""

MIN_POINTS = 3
"""Minimum number of points of a plane."""

PART_POINTS = 6
"""Minimum number of points of a part whose thickness is compared with that of its cell."""

ROUNDING = 4.0
"""Variance of points of an exact plane, in steps squared."""

SPLIT = 4.0
"""A planar cell contains several surfaces if its variance across is more than this multiple of that
of its parts: half the cell is less than half as thick."""

LAYER_NODES = 4.0
"""A cell that may have layers must have the points of this many minimal nodes."""

LAYERS, THICKER = 9, 4.0
"""Mark of a cell that may have two layers: it has several surfaces, or its thickness is less than
THICKER times max_thickness."""


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
def halve(moments, fine, coarse, side, start, stop):
    """Sum the moments of the eight parts of each cell.

    Parameters
    ----------
    moments : float64[cells, MOMENTS]
        In and out: of all levels.
    fine, coarse : int
        The first parts, and the first cells of the level above.
    side : int
        Side of a part, in steps.
    """
    d = 0.5 * side
    for k in range(start, stop):
        total = moments[coarse + k]
        for i in range(MOMENTS):
            total[i] = 0.0
        for part in range(8):
            m = moments[fine + 8 * k + part]
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
def spectra(moments, fewest, values, start, stop):
    """Compute the variances of cells along their principal axes.

    Parameters
    ----------
    moments : float64[cells, MOMENTS]
    fewest : float
        Points of a cell whose variances are needed.
    values : float64[cells, 3]
        Out: ascending, in squares of half sides of the root cube; 0 with fewer points.
    """
    unit = float(1 << (BITS - 1)) ** 2
    lengths, axes = np.empty(3), np.empty((3, 3))
    for k in range(start, stop):
        lengths[0] = lengths[1] = lengths[2] = 0.0
        if moments[k, 0] >= fewest:
            spectrum(moments[k], lengths, axes)
        for i in range(3):
            values[k, i] = lengths[i] / unit


@njit(cache=True, nogil=True, error_model="numpy")
def judge(moments, values, n_first, max_thickness, min_isotropy, planar, start, stop):
    """Find the planar cells, however many points they have.

    Parameters
    ----------
    moments : float64[cells, MOMENTS]
    values : float64[cells, 3]
        See `spectra`.
    n_first : int
        Cells of the first level of the grid.
    planar : uint8[cells]
        Out: of a planar cell the number of its parts, see `same_parts`; LAYERS for a cell that may
        have two layers; 0 for the others.
    """
    for k in range(start, stop):
        planar[k] = 0
        thickness = values[k, 0] / max_thickness
        if values[k, 1] > min_isotropy * values[k, 2] and thickness < THICKER * values[k, 1]:
            n = same_parts(moments, values, n_first, k) if thickness < values[k, 1] else 0
            planar[k] = n if n > 0 else LAYERS


@njit(cache=True, nogil=True, error_model="numpy")
def same_parts(moments, values, n_first, cell):
    """Count the parts of a planar cell.

    It is 0 if they are much thinner than the cell, so that the cell contains several surfaces, and
    1 if nothing is known of them: in the last level of a grid, or with too few points.
    """
    first, size = np.int64(0), np.int64(n_first)
    while cell >= first + size:
        first, size = first + size, size << 3
    begin = first + size + 8 * (cell - first)
    if begin >= moments.shape[0]:
        return 1
    n = 0
    total = across = 0.0
    for part in range(begin, begin + 8):
        count = moments[part, 0]
        if count >= PART_POINTS:
            n += 1
            total += count
            # a plane through the points takes three degrees of freedom
            across += count * (values[part, 0] * (count / (count - 3.0)))
    if total < 0.5 * moments[cell, 0]:
        return 1
    unit = float(1 << (BITS - 1)) ** 2
    return n if values[cell, 0] * total <= SPLIT * max(across, ROUNDING / unit * total) else 0


@njit(cache=True, nogil=True, error_model="numpy")
def walk(
    moments, planar, n_first, first, last, s_level, deepest, s_ms, state, is_node, start, stop
):
    """Find the coarsest planar cell around each of the finest cells of a grid.

    Parameters
    ----------
    moments : float64[cells, MOMENTS]
    planar : uint8[cells]
        See `judge`.
    n_first, first, last : int
        Cells of the first level of the grid; its first and its last level.
    s_level, deepest : int
        Levels that may have nodes.
    s_ms : float
        Minimum number of points of a node.
    state : int32[cells of the last level]
        Out: the planar cell, NONE, or OPEN.
    is_node : bool[cells]
        In and out: set for the planar cells, and for those that may have layers, which stay open.
    """
    for k in range(start, stop):
        own, before = OPEN if last < deepest else NONE, 0
        for level in range(first, last + 1):
            cell = before + (k >> 3 * (last - level))
            if moments[cell, 0] < s_ms:
                own = NONE
                break
            if s_level <= level <= deepest and planar[cell] != 0:
                may_have_layers = planar[cell] == LAYERS
                if not may_have_layers or moments[cell, 0] >= LAYER_NODES * s_ms:
                    is_node[cell] = True
                if not may_have_layers:
                    own = cell
                    break
            before += n_first << 3 * (level - first)
        state[k] = own


@njit(cache=True, nogil=True, error_model="numpy")
def locate(cell, n_first, first, base, open_cells):
    """Give the level and the Morton code of a cell of a grid, see `place`."""
    level, size = np.int64(first), np.int64(n_first)
    while cell >= size:
        cell, level, size = cell - size, level + 1, size << 3
    down = 3 * (level - base)
    return level, open_cells[cell >> down] << down | cell & ((1 << down) - 1)


@njit(cache=True, nogil=True, error_model="numpy")
def corner_of(level, code):
    """Give the minimum corner of a cell, in steps."""
    x, y, z = np.int64(0), np.int64(0), np.int64(0)
    for bit in range(level):
        x |= (code >> (3 * bit + 2) & 1) << bit
        y |= (code >> (3 * bit + 1) & 1) << bit
        z |= (code >> 3 * bit & 1) << bit
    down = BITS - level
    return x << down, y << down, z << down


@njit(cache=True, nogil=True, error_model="numpy")
def place(at, n_first, first, base, open_cells, moments, planes, corners, start, stop):
    """Fit the planes that determine the outliers of nodes.

    Parameters
    ----------
    at : int64[nodes]
        Their cells in a grid.
    n_first, first, base : int
        Cells of the first level of the grid; that level; level of the open cells that it divides.
    open_cells : int64[]
        Morton codes of the open cells.
    moments : float64[cells, MOMENTS]
    planes : float64[nodes, 5]
        Out: normal, offset, maximum distance, in steps.
    corners : int64[nodes, 4]
        Out: the minimum corner in steps, and the number of bits by which offsets from it are
        shifted to have no more bits than in a cell of the first grid.
    """
    values, vectors = np.empty(3), np.empty((3, 3))
    for k in range(start, stop):
        level, code = locate(at[k], n_first, first, base, open_cells)
        a, b, c = corner_of(level, code)
        corners[k, 0], corners[k, 1], corners[k, 2] = a, b, c
        corners[k, 3] = GRID - level if level < GRID else 0
        side = float(1 << (BITS - level))
        x, y, z = spectrum(moments[at[k]], values, vectors)
        nx, ny, nz = vectors[0, 0], vectors[0, 1], vectors[0, 2]
        # the coordinate of a step is that of its minimum corner
        x, y, z = x + (a + 0.5 * side) - 0.5, y + (b + 0.5 * side) - 0.5, z + (c + 0.5 * side) - 0.5
        planes[k, 0], planes[k, 1], planes[k, 2] = nx, ny, nz
        planes[k, 3] = nx * x + ny * y + nz * z
        planes[k, 4] = side / SIDE_SHARE


@njit(cache=True, nogil=True, error_model="numpy")
def describe(at, n_first, first, base, open_cells, moments, planar, outliers, rows, start, stop):
    """Describe each node, without its outliers, by one row.

    Outliers are subtracted if enough points for a plane are left.

    Parameters
    ----------
    at, n_first, first, base, open_cells, moments
        See `place`.
    planar : uint8[cells]
        See `judge`.
    outliers : int64[nodes, MOMENTS]
        Sums of offsets from the minimum corners of nodes, shifted as described at `place`.
    rows : float64[nodes, 25]
        Out: see `describe_moments`.
    """
    m, apart = np.empty(MOMENTS), np.empty(MOMENTS)
    for k in range(start, stop):
        level, code = locate(at[k], n_first, first, base, open_cells)
        for i in range(MOMENTS):
            m[i] = moments[at[k], i]
        if outliers[k, 0] > 0 and m[0] - outliers[k, 0] >= MIN_POINTS:
            about_centre(outliers[k], level, apart)
            for i in range(MOMENTS):
                m[i] -= apart[i]
        describe_moments(level, code, planar[at[k]], m, rows[k])


@njit(cache=True, nogil=True, error_model="numpy")
def fill_cells(levels, corners, grid, node_of, start, stop):
    """Write the number of each node into its cells.

    Parameters
    ----------
    levels : int64[nodes], ascending
        Up to `grid`: coarser nodes first, within which there may be finer ones.
    corners : int64[nodes, 4]
        See `place`.
    grid : int
        Level of the cells, which are numbered x before y before z.
    node_of : int32[8^grid]
        In: NONE; out: the finest node.
    """
    shift = BITS - grid
    for k in range(start, stop):
        wide = 1 << (grid - levels[k])
        a, b, c = corners[k, 0] >> shift, corners[k, 1] >> shift, corners[k, 2] >> shift
        for i in range(a, a + wide):
            for j in range(b, b + wide):
                for h in range(c, c + wide):
                    node_of[(i << grid | j) << grid | h] = k


@njit(cache=True, nogil=True, error_model="numpy")
def describe_sums(levels, codes, sums, rows, start, stop):
    """Describe parts of nodes by the sums of their points.

    Parameters
    ----------
    levels, codes : int64[nodes]
    sums : int64[2 * nodes, MOMENTS]
        As those of outliers in `describe`; each node has two parts.
    rows : float64[2 * nodes, 25]
        Out: see `describe_moments`; with fewer than MIN_POINTS only the number of points.
    """
    m = np.empty(MOMENTS)
    for k in range(start, stop):
        if sums[k, 0] < MIN_POINTS:
            rows[k, 3] = sums[k, 0]
            continue
        level, code = levels[k >> 1], codes[k >> 1]
        about_centre(sums[k], level, m)
        describe_moments(level, code, 1, m, rows[k])


@njit(cache=True, nogil=True, error_model="numpy")
def about_centre(sums, level, moments):
    """Convert the sums of points of a node into moments about its centre, in steps.

    Parameters
    ----------
    sums : int64[MOMENTS]
        Of offsets from the minimum corner, shifted as described at `place`.
    moments : float64[MOMENTS]
        Out.
    """
    shift = GRID - level if level < GRID else 0
    centre(sums, 1 << (BITS - level - shift), moments)
    step = float(1 << shift)
    for i in range(1, 4):
        moments[i] *= step
    for i in range(4, MOMENTS):
        moments[i] *= step * step


@njit(cache=True, nogil=True, error_model="numpy")
def describe_moments(level, code, parts, m, row):
    """Describe a node by one row; lengths are in half sides of the root.

    Parameters
    ----------
    parts : int
        See `judge`.
    m : float64[MOMENTS]
        About the centre of the node, in steps.
    row : float64[25]
        Out: level, code, parts, points, mean relative to the centre of the root cube, covariance
        xx, xy, xz, yy, yz, zz, its eigenvalues, ascending, its eigenvectors.
    """
    half = float(1 << (BITS - 1))
    unit = half * half
    values, vectors = np.empty(3), np.empty((3, 3))
    a, b, c = corner_of(level, code)
    middle = 0.5 * float(1 << (BITS - level))
    n = m[0]
    x, y, z = m[1] / n, m[2] / n, m[3] / n
    row[0], row[1], row[2], row[3] = level, code, parts, n
    row[4] = ((x + (a + middle)) - half) / half
    row[5] = ((y + (b + middle)) - half) / half
    row[6] = ((z + (c + middle)) - half) / half
    row[7] = (m[4] / n - x * x) / unit
    row[8] = (m[5] / n - x * y) / unit
    row[9] = (m[6] / n - x * z) / unit
    row[10] = (m[7] / n - y * y) / unit
    row[11] = (m[8] / n - y * z) / unit
    row[12] = (m[9] / n - z * z) / unit
    eigen(row[7], row[8], row[9], row[10], row[11], row[12], values, vectors)
    for i in range(3):
        row[13 + i] = values[i]
        for j in range(3):
            row[16 + 3 * i + j] = vectors[i, j]
