"""`detect_planes` and `plane_points` in parts: a search pass by pass.

A task reads the points of each core once. The search itself is a task that sees no points: where it
needs a pass over all of them, this is a stage with a task for each core, and the next task of the
search puts together what these have found, and goes on. See `passes`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from spatialq.functions.stages import Columns, OfAll, OfCores, Part, PointWork, TaskResult

from . import Options
from .detection import Detection
from .octree import Cube
from .passes import (
    Naming,
    Pass,
    Passes,
    Pending,
    go_over,
    planes_of,
    put_together,
    search_with,
)
from .sparse import Squares

AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Search:
    """What all tasks of a search get."""

    size: int
    cube: Cube
    """Around all points, as the kernel makes it."""
    options: Options
    label: bool

    def go_on(self, results: Sequence[Callable[[], Columns]]) -> tuple[Detection, Naming | None]:
        """Search, as far as the results of passes allow.

        Raises
        ------
        Pending
            If another pass is needed.
        """
        passes = Passes(results)
        found = search_with(self.size, self.cube, self.options, passes, label=self.label)
        return found, passes.naming


def detect_planes(work: PointWork[Options]) -> None:
    """Find the planes of all points."""
    search = search_of(work, label=False)
    _, searches, _ = search_planes(work, search)
    work.table("planes", list_planes, search, searches)


def plane_points(work: PointWork[Options]) -> None:
    """Find the planes of all points, and those of each core."""
    points, searches, settled = search_planes(work, search_of(work, label=True))
    work.rows(assign_planes, points, searches[-1], settled)


def search_of(work: PointWork[Options], *, label: bool) -> Search:
    """Make the search in all points; `label` if each of them is to get its plane."""
    cloud, cube = work.cloud, Cube((0.0, 0.0, 0.0), 0.0)
    if cloud.size:
        cube = Cube.around(cloud.low, cloud.high)
    return Search(cloud.size, cube, work.options, label)


def search_planes(
    work: PointWork[Options], search: Search
) -> tuple[OfCores, tuple[OfAll, ...], OfCores | None]:
    """Search; give the stages of the points, of the search, and the one that settles the planes.

    The first, the last one of the second, and the third are the inputs of `assign_planes`; the
    second is that of `list_planes`.
    """
    points = work.each("points", read_own)
    _doubt(work, points)
    passes: list[OfCores] = []
    searches: list[OfAll] = []
    while True:
        last = passes[-1] if passes else None
        found = work.once(f"search{len(searches):03}", go_on, search, tuple(searches), last)
        searches.append(found)
        if found.facts["pass"] is None:
            return points, tuple(searches), _found(passes, found.facts["settled"])
        needed = (_found(passes, found.facts[name]) for name in ("listed", "kept"))
        passes.append(work.each(f"pass{len(passes):03}", do_pass, points, found, *needed))


def _doubt(work: PointWork[Options], points: OfCores) -> None:
    """Say that there are too few points, as `sparse.doubt` says it of those of a call."""
    cloud = work.cloud
    squares = Squares.of(cloud.low, cloud.high, cloud.size, work.options, work.metres)
    if squares is not None:
        counted = work.each("squares", count_squares, points, squares)
        work.doubt(work.once("density", look_at_squares, squares, counted).facts["doubt"])


def _found(passes: Sequence[OfCores], number: int | None) -> OfCores | None:
    return None if number is None else passes[number]


def read_own(part: Part) -> TaskResult:
    """Give the points of a core, as the kernel takes them."""
    points = part.own(part.points())
    columns = {name: points[name] for name in (*AXES, "point_id")}
    return TaskResult(columns, {"points": columns["x"].size})


def count_squares(_: Part, points: TaskResult, squares: Squares) -> Columns:
    """Count the points of a core in squares."""
    places, counts = squares.count(points.arrays["x"], points.arrays["y"])
    return {"places": places, "counts": counts}


def look_at_squares(squares: Squares, counted: Iterator[TaskResult]) -> TaskResult:
    """Give the `doubt` that the points of all cores in squares cause."""
    parts = [each.arrays for each in counted]
    places, counts = (np.concatenate([each[name] for each in parts]) for name in parts[0])
    _, number = np.unique(places, return_inverse=True)
    return TaskResult({}, {"doubt": squares.doubt(np.bincount(number, counts).astype(np.int64))})


def go_on(
    search: Search, searches: Sequence[TaskResult], last: Iterator[TaskResult] | None
) -> TaskResult:
    """Go on with a search.

    Parameters
    ----------
    search : Search
    searches : sequence of TaskResult
        What this function has found so far.
    last : iterator of TaskResult, optional
        What the pass has found that the last one of these asked for.

    Returns
    -------
    TaskResult
        With the fact `pass`, the name of the next pass, and all else of it; or None if the search
        has ended. Then `settled` is the number of the pass that points need to get their planes.
    """
    results = _results(searches)
    arrays: dict[str, Any] = {}
    if last is not None:
        passed = put_together(_wanted(searches[-1]), (each.arrays for each in last))
        results.append(lambda: passed)
        arrays |= {f"found.{name}": each for name, each in passed.items()}
    try:
        _, naming = search.go_on(results)
    except Pending as pending:
        wanted = pending.wanted
        arrays |= {f"wanted.{name}": each for name, each in wanted.arrays.items()}
        facts = {"pass": wanted.name, "listed": wanted.listed, "kept": wanted.kept}
        return TaskResult(arrays, {**facts, "cube": asdict(wanted.cube), "values": wanted.values})
    if naming is None:
        return TaskResult(arrays, {"pass": None, "settled": None})
    facts = {"pass": None, "settled": naming.settled}
    return TaskResult(arrays | {"ids": naming.ids}, {**facts, "step": naming.step})


def _results(searches: Sequence[TaskResult]) -> list[Callable[[], Columns]]:
    """Give what each pass has found: the task of the search after it has put it together."""
    return [partial(_group, each, "found") for each in searches[1:]]


def _group(found: TaskResult, name: str) -> dict[str, Any]:
    start = f"{name}."
    return {
        key.removeprefix(start): each for key, each in found.arrays.items() if key.startswith(start)
    }


def _wanted(found: TaskResult) -> Pass:
    """Give the pass that a search asks for."""
    facts = found.facts
    x, y, z = facts["cube"]["low"]
    cube = Cube((x, y, z), facts["cube"]["side"])
    arrays = _group(found, "wanted")
    return Pass(facts["pass"], cube, facts["listed"], facts["kept"], facts["values"], arrays)


def do_pass(
    _: Part,
    points: TaskResult,
    wanted: TaskResult,
    listed: TaskResult | None,
    kept: TaskResult | None,
) -> Columns:
    """Do a pass over the points of a core."""
    xyz = [points.arrays[axis] for axis in AXES]
    there = None if listed is None else listed.arrays["listed"]
    return go_over(_wanted(wanted), xyz, there, None if kept is None else kept.arrays)


def list_planes(search: Search, searches: Sequence[TaskResult]) -> Columns:
    """Give the planes."""
    return search.go_on(_results(searches))[0].columns


def assign_planes(
    _: Part,
    points: TaskResult,
    search: TaskResult,
    settled: TaskResult | None,
) -> Columns:
    """Give the planes of the points of a core."""
    columns, facts = points.arrays, search.facts
    naming = None
    if settled is not None:
        naming = Naming(facts["settled"], search.arrays["ids"], facts["step"])
    found = {} if settled is None else settled.arrays
    plane_id, distance = planes_of(columns["x"].size, naming, found)
    return {**columns, "plane_id": plane_id, "distance": distance}
