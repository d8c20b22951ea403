"""The outline of a mesh seen from above: the union of its triangles, as polygons.

README.md describes the method. Coordinates are in units of a grid, so that edges of neighbouring
triangles are the same edge.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from spatialq.runtime.arrays import Floats, Ints

from .rings import LEVEL, Segment, rings_of

DECIMALS = 5
UNIT = 10.0**-DECIMALS
"""Metres of the grid to which vertices are rounded: 0.01 mm."""
CELLS = 10**9
"""The grid is coarser for a mesh that has more than these along one side."""
NEAR = 0.05
"""Units by which places on a level are the same place."""
SAME = 2.0**-20
"""Units by which levels are the same level: between levels, even flat edges move little more."""
PAIRS = 2**22
"""Pairs of edges that are looked at together."""


@dataclass(frozen=True)
class Edges:
    """Edges of an area that go up: float64[n] each, in units."""

    x0: Floats
    y0: Floats
    x1: Floats
    y1: Floats
    enters: Ints
    """How many more triangles there are to the right of an edge than to the left."""

    def at(self, chosen: Any, y: float) -> Floats:
        """Find where edges are at a height: at their ends exactly their ends."""
        x0, y0, x1, y1 = (each[chosen] for each in (self.x0, self.y0, self.x1, self.y1))
        share = (y - y0) / (y1 - y0)
        return np.asarray(np.where(y == y1, x1, x0 + share * (x1 - x0)))


def outline(xy: Floats, triangles: Ints) -> list[list[Any]]:
    """Find the union of triangles.

    Parameters
    ----------
    xy : float64[n, 2]
        Metres.
    triangles : int64[m, 3]
        In any orientation; those without an area are ignored.

    Returns
    -------
    list of polygons
        Each a list of rings, float64[corners, 2], not closed: the outer one, anticlockwise, then
        holes, clockwise. None where no triangle has an area.
    """
    if not triangles.size:
        return []
    used = xy[np.unique(triangles)]
    origin, extent = np.floor(used.min(axis=0)), np.ptp(used, axis=0).max()
    unit = UNIT * max(1.0, 10.0 ** np.ceil(np.log10(max(extent, UNIT) / UNIT / CELLS)))
    edges = _edges(np.rint((xy - origin) / unit).astype(np.int64), triangles)
    polygons = rings_of(_boundary(edges))
    return [[_metres(np.array(ring), origin, unit) for ring in polygon] for polygon in polygons]


def _metres(ring: Floats, origin: Floats, unit: float) -> Floats:
    """Give vertices in metres; those of the grid are decimal numbers again."""
    metres = origin + ring * unit
    return np.where(ring == np.rint(ring), np.round(metres, DECIMALS), metres)


def _edges(xy: Ints, triangles: Ints) -> Edges:
    """Give the edges that remain when all triangles are anticlockwise and opposite edges cancel."""
    places, names = np.unique(xy, axis=0, return_inverse=True)
    corners = names.reshape(-1)[triangles]
    a, b, c = (places[corners[:, k]] for k in range(3))
    (ux, uy), (vx, vy) = (b - a).T, (c - a).T
    turn = ux * vy - uy * vx
    corners = np.where((turn < 0)[:, None], corners[:, ::-1], corners)[turn != 0]
    begin, end = corners.ravel(), np.roll(corners, -1, axis=1).ravel()
    # places are sorted by x and y, but up is by y
    goes_up = places[begin, 1] < places[end, 1]
    is_level = places[begin, 1] == places[end, 1]
    key = np.where(goes_up, begin, end) * len(places) + np.where(goes_up, end, begin)
    keys, which = np.unique(key[~is_level], return_inverse=True)
    # an area is to the left of its edges: one that goes down has it to the right
    ways = np.where(goes_up, -1, 1)[~is_level]
    enters = np.zeros(keys.size, np.int64)
    np.add.at(enters, which, ways)
    low, high = (places[each[enters != 0]].astype(float) for each in np.divmod(keys, len(places)))
    return Edges(low[:, 0], low[:, 1], high[:, 0], high[:, 1], enters[enters != 0])


def _levels(edges: Edges) -> Floats:
    """Give the heights between which edges do not cross."""
    heights = [edges.y0, edges.y1]
    n = edges.y0.size
    rows = max(1, PAIRS // max(n, 1))
    dx, dy = edges.x1 - edges.x0, edges.y1 - edges.y0
    for start in range(0, n, rows):
        some = slice(start, start + rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            turn = dx[some, None] * dy - dy[some, None] * dx
            apart_x, apart_y = edges.x0 - edges.x0[some, None], edges.y0 - edges.y0[some, None]
            along = (apart_x * dy - apart_y * dx) / turn
            across = (apart_x * dy[some, None] - apart_y * dx[some, None]) / turn
            meets = (along > 0) & (along < 1) & (across > 0) & (across < 1)
        row, _ = np.nonzero(meets)
        heights.append(edges.y0[some][row] + along[meets] * dy[some][row])
    found = np.concatenate(heights)
    whole = np.rint(found)
    found = np.unique(np.where(np.abs(found - whole) < SAME, whole, found))
    return found[np.diff(found, prepend=-np.inf) > SAME]


@dataclass(frozen=True)
class Slab:
    """The sides of the union between two levels: a left side, its right side, the next left one."""

    edges: Ints
    bottoms: Floats
    tops: Floats
    """Where the sides are at the lower and upper level; they do not cross."""

    @classmethod
    def between(cls, edges: Edges, low: float, high: float) -> "Slab":
        """Find the sides by the order of the edges midway."""
        there = np.flatnonzero((edges.y0 <= low) & (edges.y1 >= high))
        there = there[np.argsort(edges.at(there, (low + high) / 2), kind="stable")]
        is_covered = np.cumsum(edges.enters[there]) > 0
        sides = there[np.flatnonzero(np.diff(is_covered, prepend=False))]
        # rounding lets edges that meet at a level pass each other
        bottoms, tops = (np.maximum.accumulate(edges.at(sides, y)) for y in (low, high))
        return cls(sides, bottoms, tops)


def _boundary(edges: Edges) -> Iterator[Segment]:
    """Give the boundary of the union, which is to its left: parts of edges and of levels."""
    levels = _levels(edges)
    if not levels.size:
        return
    nothing = Slab(np.empty(0, np.int64), np.empty(0), np.empty(0))
    slabs = [Slab.between(edges, low, high) for low, high in pairwise(levels)]
    places = []
    for y, below, above in zip(levels, [nothing, *slabs], [*slabs, nothing], strict=True):
        count = below.tops.size
        there = _together(np.concatenate([below.tops, above.bottoms]))
        # one goes up on a right side, and down on a left one
        arrives = np.concatenate([_ways(count), -_ways(there.size - count)])
        yield from _level(y, there, arrives)
        places.append((there[:count], there[count:]))
    for k, slab in enumerate(slabs):
        ends = zip(slab.edges.tolist(), places[k][1], places[k + 1][0], strict=True)
        for side, (edge, bottom, top) in enumerate(ends):
            low, high = (bottom, levels[k]), (top, levels[k + 1])
            yield (low, high, edge) if side % 2 else (high, low, edge)


def _ways(count: int) -> Ints:
    """Give -1 for left sides and 1 for right ones."""
    return np.arange(count) % 2 * 2 - 1


def _together(places: Floats) -> Floats:
    """Make places one that are near each other."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.diff(ordered, prepend=-np.inf) > NEAR
    joined = np.empty(places.size)
    joined[order] = ordered[np.maximum.accumulate(np.where(first, np.arange(places.size), 0))]
    return joined


def _level(y: float, places: Floats, arrives: Ints) -> Iterator[Segment]:
    """Give the parts of a level on which the union is above or below, but not both."""
    there, which = np.unique(places, return_inverse=True)
    surplus = np.zeros(there.size, np.int64)
    np.add.at(surplus, which, arrives)
    for (west, east), flow in zip(pairwise(there), np.cumsum(surplus)[:-1], strict=True):
        if flow:
            ends = (west, y), (east, y)
            yield (*ends, LEVEL) if flow > 0 else (*ends[::-1], LEVEL)
