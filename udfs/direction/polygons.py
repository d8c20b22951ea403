"""Convex polygons, clipped by lines: the intersections of triangles, seen from above.

A polygon has `ROOM` consecutive places in two arrays x and y; its number of corners is separate.
A half-plane is `a (x - px) + b (y - py) + c >= 0`.
"""

from typing import Any

import numpy as np

from spatialq.runtime.arrays import Floats
from spatialq.runtime.compile_cache import njit

CROSSINGS = 6
"""How often the border of a polygon crosses a line, at most: twice, apart from rounding."""

FULL = 12
"""A polygon with more corners is halved before it is clipped by a triangle."""

ROOM = FULL + 4 * (CROSSINGS - 1)
"""Maximum number of corners: a triangle clips four times."""


@njit(cache=True, nogil=True, error_model="numpy")
def cut(
    x: Floats, y: Floats, at: int, n: int,
    a: float, b: float, c: float, px: float, py: float,
    inner: int, outer: int,
) -> tuple[int, int]:  # fmt: skip
    """Cut a polygon by a line.

    Parameters
    ----------
    x, y : float64[...]
        Polygons; the one at place `at` has n corners.
    a, b, c, px, py : float
        The half-plane.
    inner, outer : int
        Places for what is in the half-plane, and for what is not.

    Returns
    -------
    int, int
        How many corners the two have.
    """
    inside = 0
    outside = 0
    crossings = 0
    if n < 3:
        return 0, 0
    ux = x[at + n - 1]
    uy = y[at + n - 1]
    u = a * (ux - px) + b * (uy - py) + c
    for k in range(at, at + n):
        vx = x[k]
        vy = y[k]
        v = a * (vx - px) + b * (vy - py) + c
        if crossings < CROSSINGS and ((u > 0.0 and v < 0.0) or (u < 0.0 and v > 0.0)):
            crossings += 1
            t = u / (u - v)
            mx = ux + t * (vx - ux)
            my = uy + t * (vy - uy)
            x[inner + inside] = mx
            y[inner + inside] = my
            inside += 1
            x[outer + outside] = mx
            y[outer + outside] = my
            outside += 1
        if v >= 0.0:
            x[inner + inside] = vx
            y[inner + inside] = vy
            inside += 1
        if v <= 0.0:
            x[outer + outside] = vx
            y[outer + outside] = vy
            outside += 1
        ux = vx
        uy = vy
        u = v
    return inside, outside


@njit(cache=True, nogil=True, error_model="numpy")
def wider(x: Floats, y: Floats, at: int, n: int, limit: float) -> bool:
    """Whether a polygon is wider than a limit in every direction."""
    found = False  # what rounding shrank to a point has no edge
    for k in range(n):
        m = at + (k + 1) % n
        ux = x[at + k]
        uy = y[at + k]
        ex = x[m] - ux
        ey = y[m] - uy
        bound = limit * np.sqrt(ex * ex + ey * ey)
        if bound == 0.0:
            continue
        found = False
        for q in range(at, at + n):
            if ex * (y[q] - uy) - ey * (x[q] - ux) > bound:
                found = True
                break
        if not found:
            return False
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def area(x: Floats, y: Floats, at: int, n: int) -> float:
    """Measure a polygon."""
    double = 0.0
    for k in range(1, n - 1):
        double += (x[at + k] - x[at]) * (y[at + k + 1] - y[at]) - (x[at + k + 1] - x[at]) * (
            y[at + k] - y[at]
        )
    return 0.5 * double


@njit(cache=True, nogil=True, error_model="numpy")
def half_plane(facets: Any, t: int, s: int, side: int, tolerance: float) -> tuple[float, ...]:
    """Give one of the four half-planes where the facet t is over the facet s.

    Sides 0 to 2 are the edges of s; 3 is where t is higher by more than the tolerance.

    Returns
    -------
    float, float, float, float, float
        a, b, c, px, py.
    """
    px = facets[s, 2 * side % 6]
    py = facets[s, (2 * side + 1) % 6]
    if side < 3:
        after = (side + 1) % 3
        a = py - facets[s, 2 * after + 1]
        b = facets[s, 2 * after] - px
        return a, b, 0.0, px, py
    tx = facets[t, 0]
    ty = facets[t, 1]
    below = facets[s, 6] + facets[s, 7] * (tx - px) + facets[s, 8] * (ty - py)
    a = facets[t, 7] - facets[s, 7]
    b = facets[t, 8] - facets[s, 8]
    return a, b, facets[t, 6] - below - tolerance, tx, ty
