"""The nearest neighbours of all points, found in parts as a search among all of them finds them.

A task searches among the points of a core and its halo. What it finds of a point is sure if the
last neighbour is nearer than the border of the halo. A point of which it is not, a *far* one, such
as noise or a point beside a gap, is sought for among the points of each core that may have a nearer
neighbour; the nearest of those that all cores find are its neighbours. So the width of the halo
decides how many points are far, not what is found.

Stray points are no neighbours. Theirs may be in any core.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, pi, sqrt
from typing import Any

import numpy as np

from spatialq.data.points import read_only
from spatialq.functions.stages import (
    Box,
    Cloud,
    Columns,
    OfAll,
    OfCores,
    Part,
    PointWork,
    TaskResult,
)
from spatialq.functions.stray_stages import POINT, without
from spatialq.geometry.neighbours import NeighbourLists, Neighbours
from spatialq.runtime.arrays import Array, Floats, Ints

WIDTH = 3.0
"""The halo, in radii of the circle that has as many points where these are evenly spread."""
FAR = "far_"
"""How names of arrays begin that have the far points of a core."""
FOUND = {"query": np.int64, **POINT, "squared": np.float64}
"""A neighbour of a far point: the row of that, the neighbour, and how far it is away, squared."""
AT_ONCE = 1 << 16
"""Neighbours that are chosen from together, at least."""


@dataclass(frozen=True)
class NearestSearch:
    """A search for the nearest neighbours of all points of a cloud."""

    k: int
    """How many, the point itself included."""
    halo: float
    cloud: Box

    @classmethod
    def of(cls, cloud: Cloud, k: int, least: float = 0.0) -> "NearestSearch":
        """Choose the halo of a search, which is at least so wide."""
        xmin, ymin, xmax, ymax = cloud.box
        share = k / cloud.size
        # points may also be in a line, or all at one place
        width = sqrt(share * (xmax - xmin) * (ymax - ymin) / pi) + share * (
            xmax - xmin + ymax - ymin
        )
        return cls(k, max(WIDTH * width, least) or 1.0, cloud.box)

    def limits(self, part: Part, x: Floats, y: Floats) -> Floats:
        """Give the squared distance of points of a core below which no point is missing."""
        (xmin, ymin, xmax, ymax), (west, south, east, north) = part.box, self.cloud
        away = np.full(x.size, inf)
        if xmin - self.halo > west:
            np.minimum(away, x - (xmin - self.halo), out=away)
        if ymin - self.halo > south:
            np.minimum(away, y - (ymin - self.halo), out=away)
        if xmax + self.halo < east:
            np.minimum(away, xmax + self.halo - x, out=away)
        if ymax + self.halo < north:
            np.minimum(away, ymax + self.halo - y, out=away)
        squared: Floats = away * away
        return squared


class CoreSearch:
    """The points of a core and its halo, and a search among them.

    Attributes
    ----------
    own : dict of arrays
        The points of the core that are not stray, in the order of their ids.
    strays : dict of arrays
        Those that are.
    near : Neighbours
    tree : int64[m]
        Which rows of `near.points` are of the core.
    """

    def __init__(self, part: Part, search: NearestSearch, strays: TaskResult | None = None) -> None:
        points, found = without(_in_order(part.points()), strays)
        self.strays = part.own(found)
        is_own = part.is_own(points)
        self.own = {name: values[is_own] for name, values in points.items()}
        self.near = Neighbours(points["x"], points["y"], points["z"])
        self.tree = np.flatnonzero(is_own[self.near.order])
        self._place = np.cumsum(is_own) - 1
        self._limits, self._k = search.limits(part, self.own["x"], self.own["y"]), search.k

    def places(self, tree: Ints) -> Ints:
        """Say which rows of `own` these of `tree` are."""
        found: Ints = self._place[self.near.order[tree]]
        return found

    def search(self, tree: Ints, use: Callable[[NeighbourLists], None]) -> dict[str, Array]:
        """Find the nearest neighbours of some points of the core.

        Parameters
        ----------
        tree : int64[m]
            Rows of `near.points`.
        use : callable
            Called as by `Neighbours.nearest`, with the points as queries. What it gets of far
            points is not right.

        Returns
        -------
        dict of arrays
            The far points, which `search_cores` needs of a task.
        """
        last = np.full(tree.size, inf)

        def look(found: NeighbourLists) -> None:
            use(found)
            if found.starts[1] == self._k:
                last[found.first : found.stop] = found.squared[found.starts[1:] - 1]

        self.near.nearest(self.near.points[tree], self._k, look)
        places = self.places(tree)
        limits = self._limits[places]
        is_far = (last >= limits) & (limits < inf)
        far = places[is_far]
        columns = {name: self.own[name][far] for name in POINT}
        columns |= {"place": far, "squared": last[is_far]}
        return {f"{FAR}{name}": values for name, values in columns.items()}


def search_cores(
    work: PointWork[Any],
    do: Callable[..., Columns],
    search: NearestSearch,
    *inputs: Any,
    strays: OfAll | None = None,
) -> tuple[OfCores, OfAll | None]:
    """Have `do(part, search, strays, *inputs)` called for each core, and far points sought for.

    Returns
    -------
    found : OfCores
        What `do` gives; among it what `CoreSearch.search` gives.
    far : OfAll or None
        For `far_lists`; None where no point is far or stray.
    """
    found = work.each("near", do, search, strays, *inputs, halo=search.halo)
    far = work.once("far", gather_far, found, strays)
    if not far.facts["far"]:
        return found, None
    of_cores = work.each("candidates", find_for_far, far, strays, search.k)
    return found, work.once("chosen", choose_for_far, of_cores, far, search.k)


def far_lists(
    found: TaskResult, far: TaskResult | None
) -> tuple[Any, Floats, Ints, NeighbourLists] | None:
    """Give the neighbours of the far points of a core; None where there are none.

    Returns
    -------
    xyz, queries, places, lists
        `places` says which points of the core they are; the others are as of `lists_of`.
    """
    points = {name: found.arrays[f"{FAR}{name}"] for name in POINT}
    if far is None or not points["x"].size:
        return None
    xyz, queries, lists = lists_of(points, far)
    return xyz, queries, np.array(found.arrays[f"{FAR}place"]), lists


def lists_of(
    points: Columns, far: TaskResult, most: int | None = None
) -> tuple[Any, Floats, NeighbourLists]:
    """Give the neighbours of points that are far or stray.

    Parameters
    ----------
    points : mapping
        `point_id`, x, y, z.
    far : TaskResult
        Of `search_cores`.
    most : int, optional
        How many for each point; by default all that were sought for.

    Returns
    -------
    xyz : three of float64[n]
        The points among which they are, read-only.
    queries : float64[m, 3]
        These points.
    lists : NeighbourLists
    """
    arrays = far.arrays
    row = np.searchsorted(arrays["far"], points["point_id"])
    first, stop = arrays["starts"][row], arrays["starts"][row + 1]
    if most is not None:
        stop = np.minimum(stop, first + most)
    starts = np.concatenate([[0], np.cumsum(stop - first)])
    rows = np.arange(starts[-1]) + np.repeat(first - starts[:-1], stop - first)
    queries = np.column_stack([points[axis] for axis in "xyz"])
    lists = NeighbourLists(0, row.size, starts, rows, arrays["squared"][rows])
    return tuple(read_only(arrays[axis]) for axis in "xyz"), queries, lists


def gather_far(found: Iterator[TaskResult], strays: TaskResult | None) -> TaskResult:
    """Put the far points of all cores and the stray points together, in the order of their ids."""
    names = [*POINT, "squared"]
    parts: list[Columns] = [{name: each.arrays[f"{FAR}{name}"] for name in names} for each in found]
    if strays is not None:
        parts.append({**strays.arrays, "squared": np.full(strays.arrays["x"].size, inf)})
    far = _in_order({name: np.concatenate([each[name] for each in parts]) for name in names})
    return TaskResult(far, {"far": far["x"].size})


def find_for_far(part: Part, far: TaskResult, strays: TaskResult | None, k: int) -> Columns:
    """Find the neighbours that far points may have in a core; without any it is not read."""
    arrays = far.arrays
    x, y, limit = arrays["x"], arrays["y"], arrays["squared"]
    xmin, ymin, xmax, ymax = part.box
    dx, dy = (
        np.maximum(np.maximum(low - values, values - high), 0.0)
        for low, values, high in ((xmin, x, xmax), (ymin, y, ymax))
    )
    chosen = np.flatnonzero(dx * dx + dy * dy <= limit)
    found: list[dict[str, Array]] = [{name: np.empty(0, kind) for name, kind in FOUND.items()}]
    points: Columns = found[0]
    if chosen.size:
        points, _ = without(_in_order(part.own(part.points())), strays)

    def look(some: NeighbourLists) -> None:
        query = np.repeat(chosen[some.first : some.stop], np.diff(some.starts))
        is_near = some.squared <= limit[query]
        rows = some.rows[is_near]
        columns = {name: points[name][rows] for name in POINT}
        found.append({"query": query[is_near], **columns, "squared": some.squared[is_near]})

    queries = np.column_stack([x[chosen], y[chosen], arrays["z"][chosen]])
    Neighbours(points["x"], points["y"], points["z"]).nearest(queries, k, look)
    return {name: np.concatenate([each[name] for each in found]) for name in FOUND}


def choose_for_far(of_cores: Iterator[TaskResult], far: TaskResult, k: int) -> Columns:
    """Choose the k nearest of what all cores have found of each far point."""
    parts: list[Columns] = [{name: np.empty(0, kind) for name, kind in FOUND.items()}]
    waiting = 0
    for each in of_cores:
        parts.append(each.arrays)
        waiting += each.arrays["query"].size
        # as many as are kept, so that each is sorted a few times only, however many cores there are
        if waiting > max(AT_ONCE, parts[0]["query"].size):
            parts, waiting = [_nearest_of(parts, k)], 0
    found, ids = _nearest_of(parts, k), far.arrays["point_id"]
    starts = np.searchsorted(found["query"], np.arange(ids.size + 1))
    return {"far": ids, "starts": starts, **{name: found[name] for name in (*"xyz", "squared")}}


def _nearest_of(parts: list[Columns], k: int) -> Columns:
    """Choose the k nearest for each query, in their order."""
    found = {name: np.concatenate([each[name] for each in parts]) for name in FOUND}
    order = np.lexsort((found["point_id"], found["squared"], found["query"]))
    query = found["query"][order]
    order = order[np.arange(query.size) - np.searchsorted(query, query) < k]
    return {name: values[order] for name, values in found.items()}


def _in_order(points: Columns) -> dict[str, Array]:
    """Put points in the order of their ids, in which a call on all files has them."""
    order = np.argsort(points["point_id"], kind="stable")
    return {name: values[order] for name, values in points.items()}
