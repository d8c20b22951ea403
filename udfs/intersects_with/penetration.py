"""How far two elements reach into each other: a branch and bound with a guarantee.

The penetration of a and b is the largest distance, over the points of their common part, to the
surface of either. It is searched in cells: a bound from above of the distance in a cell discards
it, or the cell is divided.

The bound: the distance from a convex piece of a surface is a convex function, and so is any mean
of several; over a convex cell it is greatest at a corner. So the greatest value at a corner of a
mean of distances from faces bounds the distance from the surface. With faces on both sides of a
ridge, such as the axis of a beam, the slopes cancel, and one cell covers a long stretch of it.

The cells: where the distance from e has a maximum in the common part of e and o, that is on the
surface of o, or it is a maximum in the inside of e, which has nearest faces on all sides. So the
cells are the triangles of o, and boxes of the inside that have such faces near them.
"""

from typing import Any

import numpy as np

from spatialq.geometry.solids import Solids
from spatialq.runtime.arrays import Bytes, Floats, Ints
from spatialq.runtime.compile_cache import njit

from .cell_frames import choose_frames
from .cells import STACK, WORK, accurate
from .inside_cells import over_inside
from .narrow_phase import comes_first
from .point_in_solid import is_inside, nearest
from .surface_cells import over_surface

MAX_CELLS = 200_000
"""Cells of a pair after which its search is given up, after some seconds.

Of 4,616 pairs of real models 8 need more than 20,000, 2 more than 60,000, none more than this.
"""


@njit(cache=True, nogil=True, error_model="numpy")
def penetrations(
    pairs_a: Ints,
    pairs_b: Ints,
    first: int,
    stop: int,
    solids: Solids,
    measures: Floats,
    floors: Floats,
    most: int,
    halt: Bytes,
    found: Floats,
) -> None:
    """Find how far the elements of the pairs first to stop reach into each other.

    Parameters
    ----------
    pairs_a, pairs_b : int64[n]
        Closed elements with a common interior.
    first, stop : int
    solids : Solids
    measures : float64[n, 5]
        See `narrow_phase.relate`: the last three are a point of the common part.
    floors : float64[n]
        See `penetration`.
    most : int
        See `penetration`.
    halt : uint8[1]
        1 to stop before the next pair.
    found : float64[n, 2]
        Out: the penetration, and 1 where it may be larger: the search was given up; else 0.
    """
    work = np.empty(WORK)
    for p in range(first, stop):
        if halt[0]:
            return
        a = pairs_a[p]
        b = pairs_b[p]
        if comes_first(b, a, solids):
            a = b
            b = pairs_a[p]
        reach, upper = penetration(
            measures[p, 2], measures[p, 3], measures[p, 4], floors[p], most, a, b, solids, work
        )
        found[p, 0] = reach
        found[p, 1] = 1.0 if upper > accurate(reach) else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def penetration(
    px: float,
    py: float,
    pz: float,
    floor: float,
    most: int,
    a: int,
    b: int,
    solids: Solids,
    work: Floats,
) -> Any:
    """Find how far two closed elements reach into each other.

    Parameters
    ----------
    px, py, pz : float
        A point of the common part.
    floor : float
        What is no larger than that need not be known.
    most : int
        Cells after which the search is given up.
    a, b : int
    solids : Solids
    work : float64[WORK]
        Scratch.

    Returns
    -------
    reach : float
        The penetration, or up to `ACCURATE` or `ACCURATE_SHARE` less; the floor if that is larger.
    upper : float
        A bound from above.
    """
    choose_frames(a, b, solids, work)
    reach = floor
    if is_inside(px, py, pz, a, solids) and is_inside(px, py, pz, b, solids):
        for e in (a, b):
            d2, _, _, _, _ = nearest(px, py, pz, np.inf, e, solids)
            if np.sqrt(d2) > reach:
                reach = np.sqrt(d2)
    upper = 0.0
    left = most
    box = work[STACK + 16]
    for axis in range(3):
        box[axis] = np.inf
        box[3 + axis] = -np.inf
    for way in range(4):
        e = a if way % 2 == 0 else b
        o = b if way % 2 == 0 else a
        own = work[STACK + 2 : STACK + 4] if way % 2 == 0 else work[STACK + 4 : STACK + 6]
        if way < 2:
            reach, upper, left = over_surface(e, o, own, reach, upper, left, solids, work)
        else:
            reach, upper, left = over_inside(e, o, own, reach, upper, left, solids, work)
    enough = accurate(reach)
    return reach, enough if enough > upper else upper
