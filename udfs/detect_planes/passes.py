"""The search for planes in points that are elsewhere, such as in many files: pass by pass.

The search needs points in passes over all of them, of which each gives sums of whole numbers and
maxima. These do not depend on how points are divided into *runs*. So the search itself goes on
without points: where it needs a pass, it ends with `Pending`, the pass is done for each run
(`go_over`), what the runs gave is put together (`put_together`), and the search begins again with
the results of all passes so far. What it does between passes takes little time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.data.points import read_only
from spatialq.runtime import buffers
from spatialq.runtime.threads import Workers, workers

from . import Options, assign
from .cells import FINER, GRID, MOMENTS, OPEN
from .cpu import CpuCloud
from .cpu_cells import CpuCells
from .detection import Detection, detect
from .octree import MAX_LEVEL, Cube
from .surfaces import Near, Rasters, Surfaces

Arrays = Mapping[str, Any]
NOTHING = np.empty(0, np.int64)


@dataclass(frozen=True)
class Pass:
    """A pass over all points."""

    name: str
    """What is done: a method of clouds."""
    cube: Cube
    listed: int | None
    """Number of the pass that listed the points to consider; None for all."""
    kept: int | None
    """Number of the pass that listed the points of open cells, if these are meant."""
    values: dict[str, Any]
    """Values of JSON that are needed; `tables`: rows and columns of sums, by their names."""
    arrays: dict[str, Any]


class Pending(Exception):
    """The search needs a pass."""

    def __init__(self, wanted: Pass) -> None:
        super().__init__(wanted.name)
        self.wanted = wanted


@dataclass(frozen=True)
class Naming:
    """How points get their planes, see `assign.name`."""

    settled: int
    """Number of the pass that has found their surfaces."""
    ids: Any
    step: float


class Passes:
    """The passes of a search.

    Parameters
    ----------
    done : callables
        Give what each pass so far has found, see `put_together`.
    """

    def __init__(self, done: Sequence[Callable[[], Arrays]]) -> None:
        self._done = done
        self.count = 0
        self.naming: Naming | None = None

    def __call__(self, wanted: Pass) -> Arrays:
        """Give the result of the next pass.

        Raises
        ------
        Pending
            If it was not done yet.
        """
        if self.count == len(self._done):
            raise Pending(wanted)
        self.count += 1
        return self._done[self.count - 1]()


def search_with(
    size: int, cube: Cube, options: Options, passes: Passes, *, label: bool
) -> Detection:
    """Find planes, as far as the passes that are done allow.

    Parameters
    ----------
    size : int
        Number of all points.
    cube : Cube
        Around them.
    options : Options
    passes : Passes
        Gets its `naming` if `label`, unless there is no plane.

    Raises
    ------
    Pending
        If another pass is needed.
    """
    with workers() as threads:
        return detect(Elsewhere(threads, size, cube, passes), cube, options, label=label)


class Elsewhere(CpuCells):
    """A cloud of points that are elsewhere, see `octree.Cloud`."""

    def __init__(
        self, threads: Workers, size: int, cube: Cube, passes: Passes, listed: int | None = None
    ) -> None:
        super().__init__(threads)
        self.size, self.cube, self.passes, self.listed = size, cube, passes, listed
        self.kept: int | None = None
        self.first: Any = None  # moments of the first grid
        self.finer: Any = None  # moments of the grid in open cells

    def _over(self, name: str, arrays: Arrays, kept: int | None = None, **values: Any) -> Arrays:
        chosen = {key: np.ascontiguousarray(each) for key, each in arrays.items()}
        return self.passes(Pass(name, self.cube, self.listed, kept, values, chosen))

    @property
    def _last(self) -> int:
        """Number of the last pass."""
        return self.passes.count - 1

    def full(self, shape: Any, value: Any, kind: Any = np.float64) -> Any:
        """Allocate nothing for each point."""
        del shape
        return np.full(0, value, kind)

    def moments(self, n_cells: int, level: int) -> Any:
        """Sum up the points of open cells in their parts, see `octree.Cloud`."""
        if self.kept is not None:
            return self.finer
        if self.first is None:
            found = self._over("moments", {}, level=level, tables={"sums": (n_cells, MOMENTS)})
            self.first = _dense(found, "sums", n_cells)
        return self.first

    def sift(self, level: int, state: Any, ranks: Any, planes: Any, corners: Any) -> Any:
        """Sum up outliers, list the points of open cells, and sum these up for the next grid."""
        arrays = {"state": state, "ranks": ranks, "planes": planes, "corners": corners}
        n_cells = int(np.count_nonzero(state == OPEN)) << 3 * FINER if level < MAX_LEVEL else 0
        tables = {"sums": (len(planes), MOMENTS), "finer": (n_cells, MOMENTS)}
        found = self._over("sift", arrays, self.kept, level=level, tables=tables)
        self.kept = self._last
        self.finer = _dense(found, "finer", n_cells)
        return _dense(found, "sums", len(planes))

    def sides(self, grid: int, levels: Any, codes: Any, planes: Any, corners: Any) -> Any:
        """Describe the points on either side of nodes, see `octree.Cloud`."""
        arrays, rows = {"levels": levels, "planes": planes, "corners": corners}, 2 * levels.size
        found = self._over("sides", arrays, grid=grid, tables={"sums": (rows, MOMENTS)})
        return self.describe(levels, codes, _dense(found, "sums", rows))

    def forget(self) -> None:
        """Go back to all points."""
        self.kept = self.finer = None

    def rest(self, near: Near, planes: Any) -> "Elsewhere":
        """Give the points that no plane explains: see `assign.rest`."""
        n_cells = 1 << 3 * GRID
        tables = {"first": (n_cells, MOMENTS)}
        found = self._over(
            "rest", _near(near) | {"planes": planes}, grid=near.grid, tables=tables
        )  # fmt: skip
        count = int(found["count"][0])
        cloud = Elsewhere(self.threads, count, self.cube, self.passes, self._last)
        cloud.first = _dense(found, "first", n_cells)
        return cloud

    def cover(self, near: Near, rasters: Rasters, planes: Any) -> Any:
        """Mark the pixels with points, and sum up the points of planes: see `assign.cover`."""
        arrays = _near(near) | _rasters(rasters) | {"planes": planes}
        rows, n = len(planes), rasters.n_pixels
        tables = {"sums": (rows, assign.SUMS)}
        found = self._over("cover", arrays, grid=near.grid, pixels=n, tables=tables)
        covered = np.zeros(n, np.uint8)
        covered[found["pixels"]] = 1
        return covered, _dense(found, "sums", rows, assign.SUMS)

    def settle(
        self, near: Near, rasters: Rasters, planes: Any, surfaces: Surfaces, *, label: bool
    ) -> Any:
        """Assign points to surfaces, and sum up the points of surfaces: see `assign.settle`."""
        n = len(surfaces.plane)
        arrays = _near(near) | _rasters(rasters) | {"planes": planes, "labels": surfaces.labels}
        tables = {"sums": (n, assign.SUMS)}
        found = self._over("settle", arrays, grid=near.grid, label=label, tables=tables)
        farthest = np.full((n, assign.SIDES), -1)
        farthest[found["reached"]] = found["farthest"]
        return _dense(found, "sums", n, assign.SUMS), farthest, NOTHING, NOTHING

    def name(self, owner: Any, distance: Any, ids: Any, step: float) -> Any:
        """Note how points get their planes."""
        self.passes.naming = Naming(self._last, ids, step)
        return owner, distance


def _near(near: Near) -> dict[str, Any]:
    return {"cell_starts": near.cell_starts, "items": near.items, "plain": near.plain}


def _rasters(rasters: Rasters) -> dict[str, Any]:
    return {"frames": rasters.frames, "starts": rasters.starts, "shapes": rasters.shapes}


def _dense(found: Arrays, name: str, rows: int, width: int = MOMENTS) -> Any:
    """Make a table of the rows that are not zero."""
    table = buffers.zeros((rows, width), np.int64)
    table[found[f"{name}_at"]] = found[name]
    return table


def _sparse(name: str, table: Any) -> dict[str, Any]:
    """Give the rows that are not zero: they have points, of which the first column is the count."""
    at = buffers.positions(table[:, 0] != 0)
    return {f"{name}_at": at, name: buffers.take(table, at)}


def go_over(wanted: Pass, xyz: Sequence[Any], listed: Any, kept: "Arrays | None") -> Arrays:
    """Do a pass over the points of a run.

    Parameters
    ----------
    wanted : Pass
    xyz : three of float64[n]
        All points of the run.
    listed : int64[] or None
        Those to consider: what the pass `wanted.listed` has found there as `listed`.
    kept : arrays or None
        What the pass `wanted.kept` has found there; its lists are changed.

    Returns
    -------
    arrays
        What is put together for all runs, see `put_together`; and for the run itself `listed`,
        positions of points; `points` and `slots`, see `cells.add_open`; `owner` and `distance`,
        see `assign.settle`.
    """
    if listed is not None:
        xyz = [buffers.take(values, listed) for values in xyz]
    with workers() as threads:
        points, as_given = [read_only(values) for values in xyz], wanted.name not in _IN_ORDER
        cloud = CpuCloud(threads, points, wanted.cube, as_given=as_given)
        found = _LOOPS[wanted.name](cloud, wanted, kept)
    if "listed" in found and listed is not None:
        found["listed"] = listed[found["listed"]]
    return found


def put_together(wanted: Pass, found: Iterable[Arrays]) -> Arrays:
    """Put together what a pass has found in all runs: sums, maxima, and pixels with points."""
    n_reached = wanted.values["tables"]["sums"][0] if wanted.name == "settle" else 0
    farthest = np.full((n_reached, assign.SIDES), -1)
    covered = np.zeros(wanted.values.get("pixels", 0), np.bool_)
    count = 0
    tables = {
        name: buffers.zeros(shape, np.int64)
        for name, shape in wanted.values.get("tables", {}).items()
    }
    for each in found:
        for name, table in tables.items():
            table[each[f"{name}_at"]] += each[name]
        if wanted.name == "settle":
            at = each["reached"]
            farthest[at] = np.maximum(farthest[at], each["farthest"])
        if wanted.name == "cover":
            covered[each["pixels"]] = True
        if wanted.name == "rest":
            count += int(each["count"][0])
    reached = np.flatnonzero((farthest >= 0).any(1))
    merged = {
        "reached": reached, "farthest": farthest[reached], "pixels": np.flatnonzero(covered),
        "count": np.array([count]),
    }  # fmt: skip
    for name, table in tables.items():
        merged |= _sparse(name, table)
    return merged


def planes_of(n: int, naming: Naming | None, settled: Arrays) -> tuple[Any, Any]:
    """Give the plane of each point of a run.

    Parameters
    ----------
    n : int
        Points of the run.
    naming : Naming or None
        None if there is no plane.
    settled : arrays
        What the pass `naming.settled` has found there; distances are changed.

    Returns
    -------
    plane_id : int64[n]
        0 for none.
    distance : float64[n]
        NaN for none.
    """
    if naming is None:
        return buffers.full(n, 0, np.int64), buffers.full(n, np.nan)
    plane_id, distance = buffers.empty(n, np.int64), settled["distance"]
    assign.name(settled["owner"], distance, naming.ids, naming.step, plane_id, 0, n)
    return plane_id, distance


def _rest(cloud: CpuCloud, wanted: Pass, _: Any) -> dict[str, Any]:
    at = cloud.unexplained(_near_of(wanted), wanted.arrays["planes"])
    first = cloud.of(at).moments(1 << 3 * GRID, GRID)
    return {"listed": buffers.take(cloud.at, at), "count": np.array([at.size])} | _sparse(
        "first", first
    )


def _moments(cloud: CpuCloud, wanted: Pass, _: Any) -> dict[str, Any]:
    n_cells, _ = wanted.values["tables"]["sums"]
    return _sparse("sums", cloud.moments(n_cells, wanted.values["level"]))


def _sift(cloud: CpuCloud, wanted: Pass, kept: Any) -> dict[str, Any]:
    if kept is not None:
        cloud.go_on(kept["points"], kept["slots"])
    level, names = wanted.values["level"], ("state", "ranks", "planes", "corners")
    outliers = cloud.sift(level, *(wanted.arrays[name] for name in names))
    points, slots = cloud.open_points()
    found = _sparse("sums", outliers) | {"points": points, "slots": slots}
    # few of all open cells: only for those is a table made
    cells, numbers = np.unique(slots, return_inverse=True)
    if level >= MAX_LEVEL:
        cells, points = cells[:0], points[:0]
    cloud.go_on(points, numbers.astype(np.int32))
    finer = _sparse("finer", cloud.moments(cells.size << 3 * FINER, level + FINER))
    at, inside = finer["finer_at"], (1 << 3 * FINER) - 1
    finer["finer_at"] = cells[at >> 3 * FINER].astype(np.int64) << 3 * FINER | at & inside
    return found | finer


def _sides(cloud: CpuCloud, wanted: Pass, _: Any) -> dict[str, Any]:
    names = "levels", "planes", "corners"
    arrays = (wanted.arrays[name] for name in names)
    return _sparse("sums", cloud.add_sides(wanted.values["grid"], *arrays))


def _cover(cloud: CpuCloud, wanted: Pass, _: Any) -> dict[str, Any]:
    rasters = _rasters_of(wanted)
    covered, sums = cloud.cover(_near_of(wanted), rasters, wanted.arrays["planes"])
    return _sparse("sums", sums) | {"pixels": np.flatnonzero(covered)}


def _settle(cloud: CpuCloud, wanted: Pass, _: Any) -> dict[str, Any]:
    arrays = wanted.arrays
    surfaces = Surfaces(
        np.zeros(wanted.values["tables"]["sums"][0], np.int64), NOTHING, arrays["labels"]
    )
    sums, farthest, owner, distance = cloud.settle(
        _near_of(wanted), _rasters_of(wanted), arrays["planes"], surfaces,
        label=wanted.values["label"],
    )  # fmt: skip
    reached = np.flatnonzero((farthest >= 0).any(1))
    rows = {"reached": reached, "farthest": farthest[reached]}
    return _sparse("sums", sums) | rows | {"owner": owner, "distance": distance}


def _near_of(wanted: Pass) -> Near:
    arrays = wanted.arrays
    pairs = NOTHING, np.empty(0, np.int32)  # which no pass needs
    lists = arrays["cell_starts"], arrays["items"], *pairs, arrays["plain"]
    return Near(wanted.values["grid"], *lists)


def _rasters_of(wanted: Pass) -> Rasters:
    return Rasters(*(wanted.arrays[name] for name in ("frames", "starts", "shapes")))


_LOOPS: Mapping[str, Callable[[CpuCloud, Pass, Any], dict[str, Any]]] = {
    "moments": _moments, "sift": _sift, "sides": _sides, "rest": _rest, "cover": _cover,
    "settle": _settle,
}  # fmt: skip

_IN_ORDER = {"rest", "cover", "settle"}
"""Passes that put points into the order of cells first, since they gain more than that takes."""
