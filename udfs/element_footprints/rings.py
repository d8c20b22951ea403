"""Rings of polygons from the segments of a boundary, with the area on their left."""

import math
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise

Place = tuple[float, float]
Segment = tuple[Place, Place, int]
"""Begin, end, and the edge of which it is a part."""
LEVEL = -1
"""Stands for the edge where a segment is parallel to x."""
THIN = 3.0
"""Units: what is not wider is a gap between edges that were meant to meet, or such an overlap."""
BESIDE = 1e-3
"""Units by which a place beside a segment is off."""
Ring = list[Place]


def rings_of(segments: Iterable[Segment]) -> list[list[Ring]]:
    """Make polygons of the segments of a boundary.

    Parameters
    ----------
    segments : iterable
        As many end at a place as begin there, and they meet at their ends only.

    Returns
    -------
    list of polygons
        Each a list of rings: the outer one, anticlockwise, then its holes, clockwise. No ring
        passes a place twice.
    """
    edges: dict[tuple[Place, Place], int] = {}
    for begin, end, edge in segments:
        if edges.pop((end, begin), None) is None and begin != end:
            edges[begin, end] = edge
    following: dict[Place, list[Place]] = {}
    for begin, end in edges:
        following.setdefault(begin, []).append(end)
    outer: list[Ring] = []
    holes: list[Ring] = []
    crossings = {place for place, ends in following.items() if len(ends) > 1}
    for walk in _walks(following):
        for ring in _simple(walk):
            area, around = _area(ring), sum(math.dist(p, q) for p, q in _sides(ring))
            if abs(area) > THIN / 2 * around:
                (outer if area > 0 else holes).append(_straight(ring, edges, crossings))
    outer.sort(key=_area)
    polygons = [[ring] for ring in outer]
    for hole in holes:
        place = _beside(hole)
        within = (each for each in polygons if len(polygons) == 1 or _contains(each[0], place))
        if (polygon := next(within, None)) is not None:
            polygon.append(hole)
    return polygons


def _sides(ring: Ring) -> Iterator[tuple[Place, Place]]:
    return pairwise([*ring, ring[0]])


def _area(ring: Ring) -> float:
    x, y = ring[0]  # of small numbers the sum is exact
    return sum((p[0] - x) * (q[1] - y) - (q[0] - x) * (p[1] - y) for p, q in _sides(ring)) / 2


def _walks(following: dict[Place, list[Place]]) -> Iterator[Ring]:
    """Walk along all segments, turning left where there are several ways: around one area."""
    for begin, starts in following.items():
        while starts:
            walk, at = [begin], starts.pop()
            while at != begin:
                came, ways = walk[-1], following[at]
                walk.append(at)
                ahead = 0
                if len(ways) > 1:
                    ahead = max(range(len(ways)), key=lambda k: _turn(came, walk[-1], ways[k]))
                at = ways.pop(ahead)
            yield walk


def _simple(walk: Ring) -> Iterator[Ring]:
    """Split a walk where it passes a place again."""
    path: Ring = []
    passed: dict[Place, int] = {}
    for place in walk:
        if place in passed:
            start = passed[place]
            yield path[start:]
            for each in path[start:]:
                del passed[each]
            del path[start:]
        passed[place] = len(path)
        path.append(place)
    yield path


def _straight(
    ring: Ring, edges: dict[tuple[Place, Place], int], crossings: Collection[Place]
) -> Ring:
    """Leave out places within edges or lines that no other ring has."""
    parts = [edges[side] for side in _sides(ring)]  # part k follows place k
    kept = [
        place
        for k, place in enumerate(ring)
        if place in crossings or parts[k] != parts[k - 1] or (k == 0 and len(set(parts)) == 1)
    ]
    count = len(kept)
    return [
        at
        for k, at in enumerate(kept)
        if at in crossings or _off(kept[k - 1], at, kept[(k + 1) % count]) != 0
    ]


def _off(p: Place, q: Place, r: Place) -> float:
    """Give twice the area of a triangle: 0 if its corners are on a line."""
    return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])


def _turn(came: Place, at: Place, to: Place) -> float:
    """Give the angle of a turn, positive to the left."""
    ux, uy, vx, vy = at[0] - came[0], at[1] - came[1], to[0] - at[0], to[1] - at[1]
    return math.atan2(ux * vy - uy * vx, ux * vx + uy * vy)


def _beside(ring: Ring) -> Place:
    """Give a place to the left of the longest side of a ring."""
    (x0, y0), (x1, y1) = max(_sides(ring), key=lambda side: math.dist(*side))
    step = BESIDE / math.dist((x0, y0), (x1, y1))
    return (x0 + x1) / 2 - (y1 - y0) * step, (y0 + y1) / 2 + (x1 - x0) * step


def _contains(ring: Ring, place: Place) -> bool:
    x, y = place
    crossed = False
    for (x0, y0), (x1, y1) in _sides(ring):
        if (y0 > y) != (y1 > y) and x < x0 + (y - y0) / (y1 - y0) * (x1 - x0):
            crossed = not crossed
    return crossed
