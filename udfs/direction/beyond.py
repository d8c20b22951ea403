"""Whether an element lies over another one, decided by their facets."""

from typing import Any

import numpy as np

from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.compile_cache import njit

from .polygons import FULL, ROOM, area, cut, half_plane, wider
from .view import CLUSTER, MIN_TOLERANCE


@njit(cache=True, nogil=True, error_model="numpy")
def may_lie_over(b: Any, i: int, a: Any, j: int, tolerance: float) -> Any:
    """Whether the box b[i] reaches beyond the box a[j] where both are, seen from above."""
    return (
        min(b[i, 3], a[j, 3]) - max(b[i, 0], a[j, 0]) > tolerance
        and min(b[i, 4], a[j, 4]) - max(b[i, 1], a[j, 1]) > tolerance
        and b[i, 5] - a[j, 2] > tolerance
    )


@njit(cache=True, nogil=True, error_model="numpy")
def facet_may_lie_over(facets: Any, t: int, box: Any, j: int, tolerance: float) -> Any:
    """Whether a facet reaches beyond the box where both are, seen from above."""
    x0 = facets[t, 0]
    x1 = facets[t, 2]
    x2 = facets[t, 4]
    y0 = facets[t, 1]
    y1 = facets[t, 3]
    y2 = facets[t, 5]
    return (
        min(max(x0, x1, x2), box[j, 3]) - max(min(x0, x1, x2), box[j, 0]) > tolerance
        and min(max(y0, y1, y2), box[j, 4]) - max(min(y0, y1, y2), box[j, 1]) > tolerance
        and facets[t, 10] - box[j, 2] > tolerance
    )


@njit(cache=True, nogil=True, error_model="numpy")
def some_over(
    a: int, b: int,
    facets: Any, starts: Any, clusters: Any, cluster_starts: Any, boxes: Any,
    tolerance: float, x: Floats, y: Floats,
) -> bool:  # fmt: skip
    """Whether some points of the element b lie over points of the element a.

    Parameters
    ----------
    a, b : int
    facets, starts, clusters, cluster_starts, boxes
        See `View`.
    tolerance : float
    x, y : float64[3 * ROOM]
        Scratch.
    """
    for cb in range(cluster_starts[b], cluster_starts[b + 1]):
        if not may_lie_over(clusters, cb, boxes, a, tolerance):
            continue
        t0 = starts[b] + (cb - cluster_starts[b]) * CLUSTER
        t1 = min(t0 + CLUSTER, starts[b + 1])
        for ca in range(cluster_starts[a], cluster_starts[a + 1]):
            if not may_lie_over(clusters, cb, clusters, ca, tolerance):
                continue
            s0 = starts[a] + (ca - cluster_starts[a]) * CLUSTER
            s1 = min(s0 + CLUSTER, starts[a + 1])
            for t in range(t0, t1):
                if facets[t, 12] > tolerance and facet_may_lie_over(
                    facets, t, clusters, ca, tolerance
                ):
                    for s in range(s0, s1):
                        if lies_over(facets, t, s, tolerance, x, y):
                            return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def lies_over(facets: Any, t: int, s: int, tolerance: float, x: Floats, y: Floats) -> Any:
    """Whether the facet t is over the facet s where both are, seen from above."""
    if facets[s, 12] <= tolerance or facets[t, 10] - facets[s, 9] <= tolerance:
        return False
    for axis in range(2):
        low = min(facets[t, axis], facets[t, axis + 2], facets[t, axis + 4])
        high = max(facets[t, axis], facets[t, axis + 2], facets[t, axis + 4])
        if (
            high - min(facets[s, axis], facets[s, axis + 2], facets[s, axis + 4]) <= tolerance
            or max(facets[s, axis], facets[s, axis + 2], facets[s, axis + 4]) - low <= tolerance
        ):
            return False
    for k in range(3):
        x[k] = facets[t, 2 * k]
        y[k] = facets[t, 2 * k + 1]
    n = 3
    at = 0
    for side in range(4):
        a, b, c, px, py = half_plane(facets, t, s, side, tolerance)
        to = ROOM - at
        n, _ = cut(x, y, at, n, a, b, c, px, py, to, 2 * ROOM)
        at = to
        if n < 3:
            return False
    return wider(x, y, at, n, tolerance)


@njit(cache=True, nogil=True, error_model="numpy")
def all_over(
    a: int, b: int,
    facets: Any, starts: Any, clusters: Any, cluster_starts: Any,
    tolerance: float, below: Ints,
) -> bool:  # fmt: skip
    """Whether all points of the element b lie over points of the element a.

    From every facet of b the part over some facet of a is cut away. If a piece wider than the
    tolerance is left, or many narrow pieces, some points of b lie over no point of a.

    Parameters
    ----------
    a, b, facets, starts, clusters, cluster_starts, tolerance
        See `some_over`.
    below : int64[]
        Scratch, with room for all facets of a.
    """
    room = 64
    x = np.empty(room * ROOM)
    y = np.empty(room * ROOM)
    sizes = np.empty(room, np.int64)
    next_facet = np.empty(room, np.int64)
    for t in range(starts[b], starts[b + 1]):
        if facets[t, 12] <= tolerance:
            continue
        count = 0
        for ca in range(cluster_starts[a], cluster_starts[a + 1]):
            if facet_may_lie_over(facets, t, clusters, ca, 0.0):
                s0 = starts[a] + (ca - cluster_starts[a]) * CLUSTER
                for s in range(s0, min(s0 + CLUSTER, starts[a + 1])):
                    below[count] = s
                    count += 1
        left = 0.0
        for k in range(3):
            x[k] = facets[t, 2 * k]
            y[k] = facets[t, 2 * k + 1]
        sizes[0] = 3
        next_facet[0] = 0
        top = 0
        while top >= 0:
            n = sizes[top]
            at = top * ROOM
            if top + 7 > room:
                room *= 2
                x = doubled(x)
                y = doubled(y)
                sizes = doubled(sizes)
                next_facet = doubled(next_facet)
            if not wider(x, y, at, n, MIN_TOLERANCE):
                top -= 1
            elif n > FULL:
                halve(x, y, sizes, next_facet, top)
                top += 1
            elif next_facet[top] == count:
                left += area(x, y, at, n)
                if wider(x, y, at, n, tolerance) or left > tolerance * facets[t, 11]:
                    return False
                top -= 1
            else:
                top = cut_away(
                    facets, t, below[next_facet[top]], tolerance, x, y, sizes, next_facet, top
                )
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def doubled(values: Any) -> Any:
    """Copy an array into one of twice the size."""
    more = np.empty(2 * values.size, values.dtype)
    more[: values.size] = values
    return more


@njit(cache=True, nogil=True, error_model="numpy")
def halve(x: Floats, y: Floats, sizes: Any, next_facet: Any, top: int) -> None:
    """Cut the polygon on top of the stack in two, from its first corner to the one opposite."""
    at = top * ROOM
    n = sizes[top]
    half = n // 2
    new = at + ROOM
    x[new] = x[at]
    y[new] = y[at]
    for k in range(half, n):
        x[new + k - half + 1] = x[at + k]
        y[new + k - half + 1] = y[at + k]
    sizes[top] = half + 1
    sizes[top + 1] = n - half + 1
    next_facet[top + 1] = next_facet[top]


@njit(cache=True, nogil=True, error_model="numpy")
def cut_away(
    facets: Any,
    t: int,
    s: int,
    tolerance: float,
    x: Floats,
    y: Floats,
    sizes: Any,
    next_facet: Any,
    top: int,
) -> int:
    """Cut from the polygon on top of the stack the part over the facet s.

    The parts that are left replace it. Positions `top + 1` to `top + 6` are written to.

    Returns
    -------
    int
        The top of the stack now.
    """
    following = next_facet[top] + 1
    at = top * ROOM
    n = sizes[top]
    inner = at + 5 * ROOM
    spare = at + 6 * ROOM
    for k in range(n):
        x[inner + k] = x[at + k]
        y[inner + k] = y[at + k]
    last = top
    for side in range(4):
        a, b, c, px, py = half_plane(facets, t, s, side, tolerance)
        n, outside = cut(x, y, inner, n, a, b, c, px, py, spare, (last + 1) * ROOM)
        inner, spare = spare, inner
        if not wider(x, y, inner, n, MIN_TOLERANCE):
            next_facet[top] = following  # nothing to cut away
            return top
        if outside >= 3:
            last += 1
            sizes[last] = outside
            next_facet[last] = following
    if last == top:
        return top - 1
    for k in range(sizes[last]):
        x[at + k] = x[last * ROOM + k]
        y[at + k] = y[last * ROOM + k]
    sizes[top] = sizes[last]
    next_facet[top] = following
    return last - 1
