"""The nearest neighbours of all points, found in parts as a search among all of them finds them.

A task searches among the points of a core and its halo. What it finds of a point is sure if the
last neighbour is nearer than the border of the halo. A point of which it is not, a *far* one, such
as noise or a point beside a gap, is sought for among the points of each core that may have a nearer
neighbour; the nearest of those that all cores find are its neighbours. So the width of the halo
decides how many points are far, not what is found.
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
from spatialq.geometry.neighbours import NeighbourLists, Neighbours
from spatialq.runtime.arrays import Array, Floats, Ints

WIDTH = 3.0
"""The halo, in radii of the circle that has as many points where these are evenly spread."""
FAR = "far_"
"""How names of arrays begin that have the far points of a core."""
POINT = {"point_id": np.int64, "x": np.float64, "y": np.float64, "z": np.float64}
FOUND = {"query": np.int64, **POINT, "squared": np.float64}
"""A neighbour of a far point: the row of that, the neighbour, and how far it is away, squared."""


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
        The points of the core, in the order of their ids.
    near : Neighbours
    tree : int64[m]
        Which rows of `near.points` are of the core.
    """

    def __init__(self, part: Part, search: NearestSearch) -> None:
        points = _in_order(part.points())
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

    def nearest(self, tree: Ints, use: Callable[[NeighbourLists], None]) -> dict[str, Array]:
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
            The far points, which `nearest` needs of a task.
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


def nearest(
    work: PointWork[Any], do: Callable[..., Columns], search: NearestSearch, *inputs: Any
) -> tuple[OfCores, OfAll | None]:
    """Have `do(part, search, *inputs)` called for each core, and the far points sought for.

    Returns
    -------
    found : OfCores
        What `do` gives; among it what `CoreSearch.nearest` gives.
    far : OfAll or None
        For `far_lists`; None where no point is far.
    """
    found = work.each("near", do, search, *inputs, halo=search.halo)
    far = work.once("far", gather, found)
    if not far.facts["far"]:
        return found, None
    of_cores = work.each("candidates", find, far, search.k)
    return found, work.once("nearest", choose, of_cores, far, search.k)


def far_lists(
    found: TaskResult, far: TaskResult | None
) -> tuple[Any, Floats, Ints, NeighbourLists] | None:
    """Give the neighbours of the far points of a core; None where there are none.

    Returns
    -------
    xyz : three of float64[n]
        The points among which they are, read-only.
    queries : float64[m, 3]
        The far points.
    places : int64[m]
        Which points of the core these are.
    lists : NeighbourLists
    """
    ids = found.arrays[f"{FAR}point_id"]
    if far is None or not ids.size:
        return None
    arrays = far.arrays
    row = np.searchsorted(arrays["far"], ids)
    first, stop = arrays["starts"][row], arrays["starts"][row + 1]
    starts = np.concatenate([[0], np.cumsum(stop - first)])
    rows = np.arange(starts[-1]) + np.repeat(first - starts[:-1], stop - first)
    queries = np.column_stack([found.arrays[f"{FAR}{axis}"] for axis in "xyz"])
    lists = NeighbourLists(0, ids.size, starts, rows, arrays["squared"][rows])
    xyz = tuple(read_only(arrays[axis]) for axis in "xyz")
    return xyz, queries, np.array(found.arrays[f"{FAR}place"]), lists


def gather(found: Iterator[TaskResult]) -> TaskResult:
    """Put the far points of all cores together, in the order of their ids."""
    names = [*POINT, "squared"]
    parts = [{name: each.arrays[f"{FAR}{name}"] for name in names} for each in found]
    far = _in_order({name: np.concatenate([each[name] for each in parts]) for name in names})
    return TaskResult(far, {"far": far["x"].size})


def find(part: Part, far: TaskResult, k: int) -> Columns:
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
    points = _in_order(part.own(part.points())) if chosen.size else found[0]

    def look(some: NeighbourLists) -> None:
        query = np.repeat(chosen[some.first : some.stop], np.diff(some.starts))
        is_near = some.squared <= limit[query]
        rows = some.rows[is_near]
        columns = {name: points[name][rows] for name in POINT}
        found.append({"query": query[is_near], **columns, "squared": some.squared[is_near]})

    queries = np.column_stack([x[chosen], y[chosen], arrays["z"][chosen]])
    Neighbours(points["x"], points["y"], points["z"]).nearest(queries, k, look)
    return {name: np.concatenate([each[name] for each in found]) for name in FOUND}


def choose(of_cores: Iterator[TaskResult], far: TaskResult, k: int) -> Columns:
    """Choose the k nearest of what all cores have found of each far point."""
    parts = [each.arrays for each in of_cores]
    found = {name: np.concatenate([each[name] for each in parts]) for name in FOUND}
    order = np.lexsort((found["point_id"], found["squared"], found["query"]))
    found = {name: values[order] for name, values in found.items()}
    query = found.pop("query")
    is_near = np.arange(query.size) - np.searchsorted(query, query) < k
    ids = far.arrays["point_id"]
    starts = np.searchsorted(query[is_near], np.arange(ids.size + 1))
    chosen = {name: found[name][is_near] for name in ("x", "y", "z", "squared")}
    return {"far": ids, "starts": starts, **chosen}


def _in_order(points: Columns) -> dict[str, Array]:
    """Put points in the order of their ids, in which a call on all files has them."""
    order = np.argsort(points["point_id"], kind="stable")
    return {name: values[order] for name, values in points.items()}
