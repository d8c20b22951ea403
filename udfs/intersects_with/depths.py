"""How deep the common interiors of pairs are, and which of them count: the same on all devices."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spatialq.geometry.solids import Solids
from spatialq.runtime import progress
from spatialq.runtime.threads import in_threads

from . import Options
from .narrow_phase import OVERLAP, TOUCH
from .penetration import MAX_CELLS, penetrations

MIN_TOLERANCE = 1e-6
"""Metres."""

CONTACT = 0.001
"""Metres: what is thinner than the tolerance may reach farther, and is looked for at this one."""

MAX_PAIRS = 16
"""Pairs of a part of the work, which take unequal time."""


class Related(NamedTuple):
    """What is found of n pairs."""

    relation: Any
    """int8[n], see `RELATIONS`."""
    measures: Any
    """float64[n, 5]: thickness, distance, x, y, z."""
    penetration: Any
    """float64[n]"""
    is_least: Any
    """bool[n]: whether the penetration may be larger."""


def relate(
    xp: Any,
    related: Callable[..., tuple[Any, Any]],
    reaches: Callable[[Any, Any, Any], Any],
    boxes: Any,
    side: Any,
    rows_a: Any,
    rows_b: Any,
    options: Options,
) -> Related:
    """Relate pairs at the tolerance, which is one of the penetration or of the thickness.

    Parameters
    ----------
    xp : module
        NumPy, or what stands for it on a device.
    related : callable
        Gives the relation and the measures of some of the pairs at a tolerance, and whether pairs
        that touch are to be told.
    reaches : callable
        Gives float64[m, 2] of some of the pairs, see `reaches`.
    boxes, side
        See `Solids`.
    rows_a, rows_b : int[n]
        The pairs.
    options : Options
    """
    t = max(options.tolerance, MIN_TOLERANCE)
    relation, measures = related(slice(None), t, touches=options.relations)
    is_closed = (side[rows_a] != 0) & (side[rows_b] != 0)
    is_common = relation >= OVERLAP
    penetration = xp.where(is_common & ~is_closed, np.nan, 0.0)
    is_least = xp.zeros(len(rows_a), np.bool_)
    rows = xp.flatnonzero(is_common & is_closed)
    codes, of_rows = relation[rows], measures[rows]
    relation[rows] = TOUCH
    measures[rows, 0] = 0.0
    if t > CONTACT:
        may = is_closed & ~is_common & (farthest(xp, boxes, rows_a, rows_b) > t)
        thin = xp.flatnonzero(may)
        found, of_thin = related(thin, CONTACT, touches=False)
        common = xp.flatnonzero(found >= OVERLAP)
        rows = xp.concatenate([rows, thin[common]])
        codes = xp.concatenate([codes, found[common]])
        of_rows = xp.concatenate([of_rows, of_thin[common]])
    thickness = of_rows[:, 0]
    # a penetration that makes no difference need not be known
    found = reaches(rows, of_rows, xp.where(thickness > t, 0.0, t))
    keep = (thickness > t) | (found[:, 0] > t)
    if options.min_thickness is not None:
        keep &= thickness >= options.min_thickness
    rows, codes, of_rows, found = rows[keep], codes[keep], of_rows[keep], found[keep]
    relation[rows], measures[rows], penetration[rows] = codes, of_rows, found[:, 0]
    is_least[rows] = found[:, 1] > 0
    return Related(relation, measures, penetration, is_least)


def farthest(xp: Any, boxes: Any, rows_a: Any, rows_b: Any) -> Any:
    """Bound the penetration of pairs by what is in the boxes of both."""
    a, b = boxes[rows_a], boxes[rows_b]
    low, high = xp.maximum(a[:, :3], b[:, :3]), xp.minimum(a[:, 3:], b[:, 3:])
    far = xp.zeros(len(a))
    for own in (a, b):
        half = 0.5 * (own[:, 3:] - own[:, :3])
        sides = xp.minimum(xp.minimum(high - own[:, :3], own[:, 3:] - low), half)
        far = xp.maximum(far, sides.min(axis=1))
    return far


def reaches(solids: Solids, rows_a: Any, rows_b: Any, measures: Any, floors: Any) -> Any:
    """Find the penetrations of pairs, see `penetration.penetrations`."""
    found = np.empty((len(rows_a), 2))

    def some(span: tuple[int, int]) -> None:
        stop = progress.stop_flag()
        penetrations(rows_a, rows_b, *span, solids, measures, floors, MAX_CELLS, stop, found)

    in_threads(some, len(rows_a), most=MAX_PAIRS)
    return found
