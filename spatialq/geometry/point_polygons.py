"""Points in polygons, on the CPU: the cells of polygons, and the polygons that points are in."""

from typing import Any

import numpy as np

from spatialq.runtime.arrays import Floats, Int32s, Ints
from spatialq.runtime.compile_cache import njit

NOTHING = -1
"""In a cell that no polygon meets. Others have the code of one polygon, 2 k where the cell is
within polygon k and 2 k + 1 where its boundary may pass; or -2 - i, where `lists[i]` is how many
codes follow there."""
ROUNDING = 3.3306690738754716e-16
"""(3 + 16 e) e with e = 2^-53: relative error of a determinant, Shewchuk (1997), section 4.3."""
SPLITTER = 134217729.0
"""2^27 + 1, which divides a float into halves."""


@njit(cache=True, nogil=True, error_model="numpy")
def side(x0: float, y0: float, x1: float, y1: float, x: float, y: float) -> Any:
    """Tell on which side of an edge a point is: the sign is exact, > 0 to the left, 0 on its line.

    Shewchuk, J. R. (1997): Adaptive precision floating-point arithmetic and fast robust geometric
    predicates, Discrete & Computational Geometry 18(3); exact unless a product underflows.
    """
    left, right = (x1 - x0) * (y - y0), (y1 - y0) * (x - x0)
    found = left - right
    if abs(found) >= ROUNDING * (abs(left) + abs(right)):
        return found
    return _exact_side(x0, y0, x1, y1, x, y)


@njit(cache=True, nogil=True, error_model="numpy")
def _exact_side(x0: float, y0: float, x1: float, y1: float, x: float, y: float) -> Any:
    """Sum the sixteen parts of the determinant without rounding; give the largest part."""
    a, a_rest = _difference(x1, x0)
    b, b_rest = _difference(y, y0)
    c, c_rest = _difference(y1, y0)
    d, d_rest = _difference(x, x0)
    parts = np.zeros(17)
    count = 0
    for k in range(4):
        first = a if k < 2 else a_rest
        second = b if k % 2 == 0 else b_rest
        high, low = _product(first, second)
        count = _add(parts, count, low)
        count = _add(parts, count, high)
        first = c if k < 2 else c_rest
        second = d if k % 2 == 0 else d_rest
        high, low = _product(-first, second)
        count = _add(parts, count, low)
        count = _add(parts, count, high)
    for k in range(count - 1, -1, -1):
        if parts[k] != 0.0:
            return parts[k]
    return 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _difference(a: float, b: float) -> tuple[float, float]:
    """Give a - b and what rounding left of it."""
    found = a - b
    virtual = a - found
    return found, (a - (found + virtual)) + (virtual - b)


@njit(cache=True, nogil=True, error_model="numpy")
def _product(a: float, b: float) -> tuple[float, float]:
    """Give a b and what rounding left of it."""
    found = a * b
    c = SPLITTER * a
    a_high = c - (c - a)
    c = SPLITTER * b
    b_high = c - (c - b)
    a_low, b_low = a - a_high, b - b_high
    rest = a_low * b_low - (((found - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return found, rest


@njit(cache=True, nogil=True, error_model="numpy")
def _add(parts: Any, count: int, value: float) -> int:
    """Add a number to parts that ascend in size and do not overlap."""
    carried = value
    for k in range(count):
        found = carried + parts[k]
        virtual = found - carried
        parts[k] = (carried - (found - virtual)) + (parts[k] - virtual)
        carried = found
    parts[count] = carried
    return count + 1


@njit(cache=True, nogil=True, error_model="numpy")
def rows_of_edges(
    edges: Floats, starts: Ints, bottom: Floats, scale: Floats, row_starts: Ints
) -> Any:
    """List the edges that meet each row of each polygon.

    Parameters
    ----------
    edges : float64[n, 4]
        x0, y0, x1, y1 with y0 <= y1; those of polygon k begin at `starts[k]`.
    starts : int64[polygons + 1]
    bottom, scale : float64[polygons]
        The row of y is that of (y - bottom) scale, the polygons' rows begin at `row_starts`.
    row_starts : int64[polygons + 1]

    Returns
    -------
    begins : int64[rows + 1]
    listed : float64[m, 4]
        The edges, those of a row one after the other.
    """
    rows = row_starts[row_starts.size - 1]
    begins = np.zeros(rows + 1, np.int64)
    listed = np.zeros((0, 4))
    for is_second in range(2):
        for k in range(starts.size - 1):
            last = row_starts[k + 1] - row_starts[k] - 1
            for e in range(starts[k], starts[k + 1]):
                low = min(int((edges[e, 1] - bottom[k]) * scale[k]), last)
                high = min(int((edges[e, 3] - bottom[k]) * scale[k]), last)
                for row in range(row_starts[k] + low, row_starts[k] + high + 1):
                    if is_second:
                        begins[row] -= 1
                        for m in range(4):
                            listed[begins[row], m] = edges[e, m]
                    else:
                        begins[row] += 1
        if not is_second:
            total = 0
            for row in range(rows):
                total += begins[row]
                begins[row] = total
            begins[rows] = total
            listed = np.zeros((total, 4))
    return begins, listed


@njit(cache=True, nogil=True, error_model="numpy")
def cells_of_polygons(
    grid: Floats, nx: int, ny: int, edges: Any, starts: Any, boxes: Floats,
    bottom: Any, scale: Any, row_starts: Any, begins: Any, listed: Any, most: int,
) -> Any:  # fmt: skip
    """Tell of each cell which polygons it is within, and whose boundaries may pass it.

    Parameters
    ----------
    grid : float64[4]
        x and y of the south-western corner, cells in a unit of x, and of y.
    nx, ny : int
    boxes : float64[polygons, 4]
        xmin, ymin, xmax, ymax; infinite where there are no edges.
    most : int
        Cells in the boxes of all polygons.
    edges, starts, bottom, scale, row_starts, begins, listed
        See `rows_of_edges`.

    Returns
    -------
    cells : int32[ny * nx]
        See `NOTHING`.
    lists : int32[m]
    """
    west, south, per_x, per_y = grid[0], grid[1], grid[2], grid[3]
    passed = np.full(nx * ny, -1, np.int32)
    place, code = np.empty(most, np.int32), np.empty(most, np.int32)
    found = 0
    for k in range(starts.size - 1):
        if starts[k] == starts[k + 1]:
            continue
        for e in range(starts[k], starts[k + 1]):
            x0, y0, x1, y1 = edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3]
            left, right = min(x0, x1), max(x0, x1)
            first = min(int((left - west) * per_x), nx - 1)
            last = min(int((right - west) * per_x), nx - 1)
            beside = (0.01 / per_x if per_x > 0 else 0.0) + 1e-15 * max(abs(left), abs(right))
            above = (0.01 / per_y if per_y > 0 else 0.0) + 1e-15 * max(abs(y0), abs(y1))
            low = min(int((y0 - south) * per_y), ny - 1)
            high = min(int((y1 - south) * per_y), ny - 1)
            for row in range(low, high + 1):
                begin, end = first, last
                if low < high and first < last:  # the part of the edge that is in the row
                    bottom_of_row = max(south + row / per_y - above, y0)
                    top_of_row = min(south + (row + 1) / per_y + above, y1)
                    slope = (x1 - x0) / (y1 - y0)
                    a, b = x0 + (bottom_of_row - y0) * slope, x0 + (top_of_row - y0) * slope
                    begin = max(begin, int(max(min(a, b) - beside - west, 0.0) * per_x))
                    end = min(end, int(max(max(a, b) + beside - west, 0.0) * per_x))
                for column in range(begin, end + 1):
                    passed[row * nx + column] = k
        first = min(int((boxes[k, 0] - west) * per_x), nx - 1)
        last = min(int((boxes[k, 2] - west) * per_x), nx - 1)
        low = min(int((boxes[k, 1] - south) * per_y), ny - 1)
        high = min(int((boxes[k, 3] - south) * per_y), ny - 1)
        for row in range(low, high + 1):
            is_known, is_within = False, False
            for column in range(first, last + 1):
                cell = row * nx + column
                if passed[cell] == k:
                    is_known = False
                    place[found], code[found] = cell, 2 * k + 1
                    found += 1
                    continue
                if not is_known:  # what no boundary passes is within or outside as a whole
                    x, y = west + (column + 0.5) / per_x, south + (row + 0.5) / per_y
                    is_within = False
                    if boxes[k, 1] <= y <= boxes[k, 3]:
                        at = row_starts[k] + min(
                            int((y - bottom[k]) * scale[k]), row_starts[k + 1] - row_starts[k] - 1
                        )
                        for n in range(begins[at], begins[at + 1]):
                            if listed[n, 1] <= y < listed[n, 3]:
                                x0, y0, x1, y1 = (
                                    listed[n, 0],
                                    listed[n, 1],
                                    listed[n, 2],
                                    listed[n, 3],
                                )
                                is_within ^= side(x0, y0, x1, y1, x, y) > 0.0
                    is_known = True
                if is_within:
                    place[found], code[found] = cell, 2 * k
                    found += 1
    counts = np.zeros(nx * ny, np.int32)
    for n in range(found):
        counts[place[n]] += 1
    total = 0
    for cell in range(nx * ny):
        if counts[cell] > 1:
            total += 1 + counts[cell]
    lists = np.zeros(max(total, 1), np.int32)
    cells = passed
    total = 0
    for cell in range(nx * ny):
        cells[cell] = NOTHING
        if counts[cell] > 1:
            cells[cell] = -2 - total
            total += 1 + counts[cell]
    for n in range(found):
        cell = place[n]
        if counts[cell] == 1:
            cells[cell] = code[n]
        else:
            at = -2 - cells[cell]
            lists[at] += 1
            lists[at + lists[at]] = code[n]
    return cells, lists


@njit(cache=True, nogil=True, error_model="numpy")
def locate(
    x: Floats, y: Floats, first: int, stop: int, box: Floats, grid: Any, nx: int, ny: int,
    cells: Any, lists: Any, bottom: Any, scale: Any, row_starts: Any,
    begins: Any, listed: Any, rows: Ints, places: Int32s,
) -> Any:  # fmt: skip
    """Find the polygons that points are in, up to where the arrays of the result are full.

    Parameters
    ----------
    x, y : float64[n]
        Of which those from `first` to `stop` are looked at.
    box : float64[4]
        xmin, ymin, xmax, ymax of all polygons.
    rows : int64[m]
        The points of the pairs.
    places : int32[m]
        Their polygons, in ascending order for each point.
    grid, nx, ny, cells, lists, bottom, scale, row_starts, begins, listed
        See `cells_of_polygons`.

    Returns
    -------
    found : int
        Pairs.
    reached : int
        The first point that was not looked at.
    is_finite : bool
        Whether the others have neither NaN nor infinity.
    """
    west, south, per_x, per_y = grid[0], grid[1], grid[2], grid[3]
    xmin, ymin, xmax, ymax = box[0], box[1], box[2], box[3]
    found, is_finite = 0, True
    for i in range(first, stop):
        px, py = x[i], y[i]
        if not (xmin <= px <= xmax and ymin <= py <= ymax):
            is_finite &= px - px == 0.0 and py - py == 0.0
            continue
        column = min(int((px - west) * per_x), nx - 1)
        cell = cells[min(int((py - south) * per_y), ny - 1) * nx + column]
        if cell == NOTHING:
            continue
        several, at = 1, 0
        if cell < NOTHING:
            at = -2 - cell
            several = lists[at]
        if found + several > rows.size:
            return found, i, is_finite
        for n in range(several):
            code = cell if cell >= 0 else lists[at + 1 + n]
            k = code >> 1
            is_within = code & 1 == 0
            if not is_within:
                row = int((py - bottom[k]) * scale[k])
                if py < bottom[k]:
                    continue
                row = row_starts[k] + min(row, row_starts[k + 1] - row_starts[k] - 1)
                for m in range(begins[row], begins[row + 1]):
                    y0, y1 = listed[m, 1], listed[m, 3]
                    if py < y0 or py > y1:
                        continue
                    x0, x1 = listed[m, 0], listed[m, 2]
                    if px > max(x0, x1):
                        continue
                    if px < min(x0, x1):
                        is_within ^= py < y1
                        continue
                    where = 0.0 if y0 == y1 else side(x0, y0, x1, y1, px, py)
                    if where == 0.0:
                        is_within = True
                        break
                    is_within ^= where > 0.0 and py < y1
            # written in any case: a branch on what nothing foretells would take longer
            rows[found], places[found] = i, k
            found += is_within
    return found, stop, is_finite
