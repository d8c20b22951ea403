"""The Numba loops of the Delaunay triangulation: divide and conquer with exact predicates.

Points are sorted by x, then y, without two at one place, and coordinates are multiples of one power
of two below 2**53 of it, so that differences of coordinates are exact. `turn` and `in_circle` then
have the right sign for every input. Points on one circle are as if the one with the highest index
were lifted by the most: so there is one triangulation, whatever the parts it is joined from.

An edge is two half-edges, e and e ^ 1, in opposite directions. `origin` is where a half-edge
begins, `after` and `before` the next one around its origin, counterclockwise and clockwise. Edges
that are not used have the origin -1, and are a list that is linked by `after`.
"""

from typing import Any

import numpy as np

from spatialq.runtime.arrays import Bytes, Floats, Ints
from spatialq.runtime.compile_cache import njit

NOWHERE = -1
SPLIT = 134217729.0  # 2**27 + 1: divides a double into halves
CIRCLE_ERROR = 1.2e-15  # of `in_circle` in double precision, relative to the sum of absolute values
MAX_PARTS = 100  # of an exact sum of 96 terms
MAX_DEPTH = 64
LESS_THAN_SPLIT = 4  # points that are joined from two halves
BY_X, BY_Y = 0, 1


@njit(cache=True, nogil=True)
def product_error(a: float, b: float, product: float) -> float:
    """Exact difference of a * b from the product in double precision (T. J. Dekker, 1971)."""
    high = SPLIT * a
    high_a = high - (high - a)
    high = SPLIT * b
    high_b = high - (high - b)
    low_a, low_b = a - high_a, b - high_b
    return low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b)


@njit(cache=True, nogil=True)
def turn(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> int:
    """Sign of the area of a, b, c: 1 where c is left of a -> b, 0 on one line; exact."""
    ux, uy, vx, vy = ax - cx, ay - cy, bx - cx, by - cy
    left, right = ux * vy, uy * vx
    if left == right:  # rounding keeps the order of two products but may make them equal
        left, right = product_error(ux, vy, left), product_error(uy, vx, right)
    return 1 if left > right else -1 if left < right else 0


@njit(cache=True, nogil=True)
def is_left(x: Floats, y: Floats, p: int, a: int, b: int) -> bool:
    """Whether point p is left of a -> b."""
    return bool(turn(x[a], y[a], x[b], y[b], x[p], y[p]) > 0)


@njit(cache=True, nogil=True)
def add(parts: Any, n: int, value: float) -> int:
    """Add to an exact sum of n parts that do not overlap, smallest first; returns the new n."""
    kept = 0
    for i in range(n):
        part = parts[i]
        total = value + part
        rest = total - value
        error = (value - (total - rest)) + (part - rest)
        value = total
        if error != 0:
            parts[kept] = error
            kept += 1
    if value != 0:
        parts[kept] = value
        kept += 1
    return kept


@njit(cache=True, nogil=True)
def add_lifted(
    parts: Any, n: int, ux: float, uy: float, vx: float, vy: float, wx: float, wy: float
) -> int:
    """Add |u|^2 (v x w) to an exact sum."""
    xx, yy, left, right = ux * ux, uy * uy, vx * wy, -vy * wx
    lift = (product_error(ux, ux, xx), product_error(uy, uy, yy), xx, yy)
    area = (product_error(vx, wy, left), product_error(-vy, wx, right), left, right)
    for a in lift:
        for b in area:
            if a != 0 and b != 0:
                product = a * b
                n = add(parts, n, product_error(a, b, product))
                n = add(parts, n, product)
    return n


@njit(cache=True, nogil=True)
def in_circle(x: Floats, y: Floats, a: int, b: int, c: int, d: int, parts: Any) -> bool:
    """Whether point d is inside the circle of a, b, c, which turn left; exact.

    On the circle it is inside if lifting the point with the highest index makes it so.
    """
    ax, ay = x[a] - x[d], y[a] - y[d]
    bx, by = x[b] - x[d], y[b] - y[d]
    cx, cy = x[c] - x[d], y[c] - y[d]
    bc, cb, ca, ac, ab, ba = bx * cy, by * cx, cx * ay, cy * ax, ax * by, ay * bx
    aa, bb, cc = ax * ax + ay * ay, bx * bx + by * by, cx * cx + cy * cy
    area = aa * (bc - cb) + bb * (ca - ac) + cc * (ab - ba)
    most = aa * (abs(bc) + abs(cb)) + bb * (abs(ca) + abs(ac)) + cc * (abs(ab) + abs(ba))
    if abs(area) > CIRCLE_ERROR * most:
        return bool(area > 0)
    if d in (a, b, c):
        return False
    n = add_lifted(parts, 0, ax, ay, bx, by, cx, cy)
    n = add_lifted(parts, n, bx, by, cx, cy, ax, ay)
    n = add_lifted(parts, n, cx, cy, ax, ay, bx, by)
    if n > 0:
        return bool(parts[n - 1] > 0)
    highest = max(a, b, c, d)
    if highest == a:
        return bool(is_left(x, y, d, b, c))
    if highest == b:
        return bool(is_left(x, y, d, c, a))
    return bool(highest == c and is_left(x, y, d, a, b))


@njit(cache=True, nogil=True)
def precedes(y: Floats, i: int, j: int, axis: int) -> bool:
    """Whether point i comes before j by x, then y; or by y, then -x, which is that turned by 90."""
    if axis == BY_X:
        return i < j
    return bool(y[i] < y[j] or (y[i] == y[j] and i > j))


@njit(cache=True, nogil=True)
def halve(y: Any, order: Any, axis: int) -> None:
    """Move the first half of some points along an axis to the front (quickselect)."""
    low, high, middle = 0, order.size - 1, order.size // 2
    while low < high:
        pivot = order[low + (high - low) * 7 // 13]  # not at a place where sorted runs meet
        i, j = low, high
        while i <= j:
            while precedes(y, order[i], pivot, axis):
                i += 1
            while precedes(y, pivot, order[j], axis):
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@njit(cache=True, nogil=True)
def new_edge(origin: Any, after: Any, before: Any, free: Any, start: int, end: int) -> int:
    """Take an edge from the list of free ones, alone at either end."""
    e = free[0]
    free[0] = after[e]
    origin[e], origin[e ^ 1] = start, end
    after[e] = before[e] = e
    after[e ^ 1] = before[e ^ 1] = e ^ 1
    return int(e)


@njit(cache=True, nogil=True)
def insert(after: Any, before: Any, e: int, behind: int) -> None:
    """Put a half-edge that is alone counterclockwise behind another of the same origin."""
    following = after[behind]
    after[behind], before[e] = e, behind
    after[e], before[following] = following, e


@njit(cache=True, nogil=True)
def connect(origin: Any, after: Any, before: Any, free: Any, a: int, b: int) -> int:
    """Add an edge from the end of a to the origin of b, with one face left of the three."""
    e = new_edge(origin, after, before, free, origin[a ^ 1], origin[b])
    insert(after, before, e, before[a ^ 1])
    insert(after, before, e ^ 1, b)
    return int(e)


@njit(cache=True, nogil=True)
def remove(origin: Any, after: Any, before: Any, free: Any, e: int) -> None:
    """Give an edge back to the list of free ones."""
    e -= e & 1
    for half in (e, e + 1):
        after[before[half]], before[after[half]] = after[half], before[half]
        origin[half] = NOWHERE
    after[e] = free[0]
    free[0] = e


@njit(cache=True, nogil=True)
def begin(x: Floats, y: Floats, three: Any, origin: Any, after: Any, before: Any, free: Any) -> int:
    """Triangulate two or three points; returns a half-edge of the hull, as `join` does."""
    i, j = min(three), max(three)
    if three.size == 2:
        return int(new_edge(origin, after, before, free, i, j))
    middle = three[0] + three[1] + three[2] - i - j
    a = new_edge(origin, after, before, free, i, middle)
    b = new_edge(origin, after, before, free, middle, j)
    insert(after, before, b, a ^ 1)
    to = turn(x[i], y[i], x[middle], y[middle], x[j], y[j])
    if to != 0:
        connect(origin, after, before, free, b, a)
    return int(a if to >= 0 else a ^ 1)


@njit(cache=True, nogil=True)
def join(
    x: Any, y: Any, origin: Any, after: Any, before: Any, free: Ints,
    left: int, right: int, axis: int, stop: Bytes,
) -> int:  # fmt: skip
    """Join the triangulations of two sets of points, all of the left ones first along an axis.

    L. Guibas, J. Stolfi: Primitives for the manipulation of general subdivisions and the
    computation of Voronoi diagrams, ACM Transactions on Graphics 4 (1985), section 9.

    Parameters
    ----------
    left, right : int
        A half-edge of the hull of either, with nothing on its right.
    free : int64[2]
        The first free edge and the last one, of both sets.
    stop : uint8[1]
        Leave off if it is not 0.

    Returns
    -------
    int
        A half-edge of the hull, with nothing on its right.
    """
    parts = np.empty(MAX_PARTS)
    # on the left, the half-edge out of the last point with nothing on its left
    e, inner = left, left ^ 1
    while True:
        if precedes(y, origin[inner], origin[e ^ 1], axis):
            inner = e ^ 1
        e = after[e ^ 1]
        if e == left:
            break
    left = inner
    # on the right, the half-edge out of the first point with nothing on its right
    e, inner = right, right
    while True:
        if precedes(y, origin[e], origin[inner], axis):
            inner = e
        e = after[e ^ 1]
        if e == right:
            break
    right = inner
    while not stop[0]:  # the tangent below both
        if is_left(x, y, origin[right], origin[left], origin[left ^ 1]):
            left = before[left ^ 1]
        elif is_left(x, y, origin[left], origin[right ^ 1], origin[right]):
            right = after[right ^ 1]
        else:
            break
    base = connect(origin, after, before, free, right ^ 1, left)
    hull = base ^ 1
    while not stop[0]:  # upwards, one edge after the other
        from_, to = origin[base], origin[base ^ 1]
        left = after[base ^ 1]
        left_valid = is_left(x, y, origin[left ^ 1], to, from_)
        if left_valid:
            following = after[left]
            while in_circle(x, y, to, from_, origin[left ^ 1], origin[following ^ 1], parts):
                remove(origin, after, before, free, left)
                left, following = following, after[following]
        right = before[base]
        right_valid = is_left(x, y, origin[right ^ 1], to, from_)
        if right_valid:
            following = before[right]
            while in_circle(x, y, to, from_, origin[right ^ 1], origin[following ^ 1], parts):
                remove(origin, after, before, free, right)
                right, following = following, before[following]
        if not (left_valid or right_valid):
            break
        if not left_valid or (
            right_valid and in_circle(x, y, origin[left ^ 1], to, from_, origin[right ^ 1], parts)
        ):
            base = connect(origin, after, before, free, right, base ^ 1)
        else:
            base = connect(origin, after, before, free, base ^ 1, left ^ 1)
    return int(hull)


@njit(cache=True, nogil=True)
def triangulate_tile(
    x: Floats, y: Floats, points: Any, first_edge: int, origin: Any, after: Any, before: Any,
    free: Ints, stop: Bytes,
) -> int:  # fmt: skip
    """Triangulate some of the points by themselves.

    Parameters
    ----------
    x, y : float64[n]
        All points.
    points : int[k], at least two
        Those of the tile; they are sorted.
    first_edge : int
        Half-edge that the first entry of the next three arrays is about.
    origin, after, before : int[6 k], out
    free : int64[2], out
        First and last free edge.
    stop : uint8[1]

    Returns
    -------
    int
        A half-edge of the hull, with nothing on its right.
    """
    points.sort()
    tile_x, tile_y, order = x[points], y[points], np.arange(points.size, dtype=points.dtype)
    for e in range(origin.size):
        origin[e], after[e], before[e] = NOWHERE, e + 2, 0
    free[0], free[1] = 0, origin.size - 2
    lows, highs = np.zeros(MAX_DEPTH, np.int64), np.zeros(MAX_DEPTH, np.int64)
    states = np.zeros(MAX_DEPTH, np.int64)
    hulls = np.zeros((MAX_DEPTH, 2), np.int64)
    depth, hull = 0, 0
    highs[0] = points.size
    while depth >= 0 and not stop[0]:
        low, high, state = lows[depth], highs[depth], states[depth]
        if high - low < LESS_THAN_SPLIT:
            hull = begin(tile_x, tile_y, order[low:high], origin, after, before, free)
        elif state == 2:
            hulls[depth, 1] = hull
            hull = join(
                tile_x, tile_y, origin, after, before, free,
                hulls[depth, 0], hulls[depth, 1], depth % 2, stop,
            )  # fmt: skip
        else:
            middle = low + (high - low) // 2
            if state == 0:
                halve(tile_y, order[low:high], depth % 2)
                lows[depth + 1], highs[depth + 1] = low, middle
            else:
                hulls[depth, 0] = hull
                lows[depth + 1], highs[depth + 1] = middle, high
            states[depth] += 1
            states[depth + 1] = 0
            depth += 1
            continue
        depth -= 1
    for e in range(origin.size):
        after[e] += first_edge
        before[e] += first_edge
        if origin[e] != NOWHERE:
            origin[e] = points[origin[e]]
    free += first_edge
    return int(hull + first_edge)


@njit(cache=True, nogil=True)
def note_edges(origin: Any, start: int, stop: int, leaving: Any) -> None:
    """Note for each point one of the half-edges [start, stop) that leave it, if there is any."""
    for e in range(start, stop):
        if origin[e] != NOWHERE:
            leaving[origin[e]] = e


@njit(cache=True, nogil=True)
def list_triangles(
    x: Floats, y: Floats, origin: Any, after: Any, before: Any, leaving: Any, start: int, stop: int,
    triangles: Any,
) -> int:  # fmt: skip
    """List the triangles whose first corner is one of the points [start, stop); return how many.

    The first corner of a triangle is that with the lowest index. Triangles are sorted by it; those
    with the same one follow each other counterclockwise from its neighbour with the lowest index.
    Where `triangles` has no rows, they are only counted.
    """
    n, wanted = 0, len(triangles) > 0
    for a in range(start, stop):
        e = first = leaving[a]
        while True:
            e = after[e]
            if origin[e ^ 1] < origin[first ^ 1]:
                first = e
            if e == leaving[a]:
                break
        e = first
        while True:
            following = after[e]
            b, c = origin[e ^ 1], origin[following ^ 1]
            if (
                a < b
                and a < c
                and origin[before[e ^ 1] ^ 1] == c
                and turn(x[a], y[a], x[b], y[b], x[c], y[c]) > 0
            ):
                if wanted:
                    triangles[n, 0], triangles[n, 1], triangles[n, 2] = a, b, c
                n += 1
            e = following
            if e == first:
                break
    return n


@njit(cache=True, nogil=True)
def hull_chain(x: Any, y: Any, points: Any, kept: Any) -> int:
    """Corners of the convex hull that a path along sorted points leaves on its right.

    `points` ascend for the lower half of the hull, and descend for the upper one. The corners are
    put into `kept`; returns their number.
    """
    n = 0
    for p in points:
        while n > 1 and not is_left(x, y, p, kept[n - 2], kept[n - 1]):
            n -= 1
        kept[n] = p
        n += 1
    return n
