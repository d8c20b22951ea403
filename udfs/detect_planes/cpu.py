"""`detect_planes` on the CPU: points and cells in threads; the stages are those of README.md."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.points import ids_of, not_finite, read_only
from spatialq.data.strays import ends_of
from spatialq.runtime import buffers, progress
from spatialq.runtime.threads import Workers, workers

from . import Options, assign, cells, nodes
from .boundary import sides
from .cells import MOMENTS, NONE
from .cpu_cells import CpuCells, total_of
from .detection import EXPLAINING, Detection, detect
from .octree import Cube

if TYPE_CHECKING:
    from numpy.typing import NDArray


POINTS_PER_THREAD = 50_000


def run(
    x: "NDArray[np.float64]",
    y: "NDArray[np.float64]",
    z: "NDArray[np.float64]",
    point_id: "NDArray[np.int64] | None",
    options: Options,
    outputs: "Sequence[str]",
) -> "dict[str, dict[str, NDArray[Any]]]":
    """Find the planes of a cloud, the plane of each point, and the nodes that voted.

    Parameters
    ----------
    x, y, z : float64[n]
    point_id : int64[n] or None
        None for 0, 1, 2 ...
    options : Options
    outputs : sequence of 'detect_planes', 'plane_points', 'plane_nodes', 'plane_peaks'
        Several come from one search.

    Returns
    -------
    dict of output -> dict of columns
        'detect_planes', one row per plane, the one with the most votes first: `plane_id` int64: 1,
        2, 3 ...; `nx`, `ny`, `nz`, `d`: n . p = d for the points p of the plane, with a unit vector
        n whose largest component is positive; `votes`: sum of the weights of its nodes;
        `point_count` int64; `cx`, `cy`, `cz`: mean of its points; `rmse` of their distances; `area`
        that they cover; `orientation` int8: index into ORIENTATIONS; `boundary`: WKB POLYGON Z
        or MULTIPOLYGON Z.
        'plane_points', one row per point, in the order of the input: `point_id` as given;
        `plane_id` int64, 0 for a point without a plane; `distance` float64: signed distance from
        the plane along its normal, NaN without a plane.
        'plane_nodes', one row per planar node, wide ones first: `level` int64; `cx`, `cy`, `cz`:
        mean of its `point_count` int64 points; `size`: its side; `nx`, `ny`, `nz`: its normal, with
        the largest component positive; `thickness`: standard deviation of its points across;
        `votes`: its weight; `plane_id` int64, 0 for none; `state` int8: index into NODE_STATES.
        'plane_peaks', one row per peak of the accumulator, in the order in which they are tried:
        `round` int64: of the votes, 1, 2, 3 ...; `theta`, `phi`: its direction, degrees; `rho`: its
        distance from the mean of all points; `votes` of its cell, smoothed; `node_count` int64: the
        nodes near it when the round begins.

    Raises
    ------
    ValueError
        If a coordinate is not finite.

    Notes
    -----
    A cloud without planes, such as an empty one, gives empty columns. The result does not depend
    on the order of the points or on the number of threads.

    References
    ----------
    Limberger, Oliveira: Real-time detection of planar regions in unorganized point clouds,
    Pattern Recognition 48 (2015) 2043-2053. README.md lists the differences.
    """
    found = detection(
        x, y, z, point_id, options, label="plane_points" in outputs,
        explain=not EXPLAINING.isdisjoint(outputs),
    )  # fmt: skip
    tables = {
        "detect_planes": found.columns, "plane_nodes": found.nodes, "plane_peaks": found.peaks,
    }  # fmt: skip
    if "plane_points" in outputs:
        ids = ids_of(point_id, x.size)
        of_points = {"point_id": ids, "plane_id": found.owner, "distance": found.distance}
        tables["plane_points"] = of_points
    return {name: tables[name] for name in outputs}


def detection(
    x: "NDArray[np.float64]",
    y: "NDArray[np.float64]",
    z: "NDArray[np.float64]",
    point_id: "NDArray[np.int64] | None",
    options: Options,
    *,
    label: bool,
    explain: bool = False,
) -> Detection:
    """Find the planes of a cloud as `run` does, see `detection.detect`."""
    points = [read_only(values) for values in (x, y, z)]
    progress.stage("extent", 0.1)
    cube = _cube(points, point_id, options.function)
    with workers() as threads:
        return detect(CpuCloud(threads, points, cube), cube, options, label=label, explain=explain)


def _cube(points: Any, point_id: Any, function: str) -> Cube:
    if points[0].size == 0:
        return Cube((0.0, 0.0, 0.0), 0.0)
    low, high = ends_of(points)
    if not np.isfinite([low, high]).all():
        x, y, z = points
        raise ValueError(not_finite(function, x, y, z, point_id))
    return Cube.around(low.tolist(), high.tolist())


class CpuCloud(CpuCells):
    """The points, and the points of open cells, in main memory; see `octree.Cloud`.

    Points are put into the order of cells, part by part, before they are first gone over: loops
    then find what they need of a cell in a cache, and runs of points in one cell (see `assign`).
    With `as_given` they stay as they are.
    """

    def __init__(
        self, threads: Workers, points: "list[NDArray[np.float64]]", cube: Cube, *,
        as_given: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(threads)
        self.points, self.cube = points, cube
        self.in_order = as_given
        self.at: Any = None  # positions of points that were put into order
        self.size = points[0].size
        self.parts = threads.spans(self.size, POINTS_PER_THREAD)
        self.copies = self.copies_for(self.size, POINTS_PER_THREAD)
        self.kept: Any = None
        self.first: Any = None  # moments of the first grid

    def of(self, at: Any) -> "CpuCloud":
        """Make a cloud of the points at some positions, in the order in which they are here."""
        points = [read_only(buffers.take(values, at)) for values in self.points]
        return CpuCloud(self.threads, points, self.cube, as_given=True)

    def _where(self) -> Any:
        if not self.in_order:
            self._put_in_order()
        return *self.points, *self.cube.low, self.cube.scale

    def _put_in_order(self) -> None:
        at, points = buffers.empty(self.size, np.int64), [buffers.empty(self.size) for _ in "xyz"]
        given = *self.points, *self.cube.low, self.cube.scale
        self.threads.map(lambda part: cells.order(*given, *part, at, *points), self.parts)
        self.points, self.at, self.in_order = [read_only(each) for each in points], at, True

    def _tables(self, size: int) -> "list[NDArray[np.int64]]":
        return [buffers.zeros(size, np.int64) for _ in range(self.copies)]

    def moments(self, n_cells: int, level: int) -> Any:
        """Sum up the points of open cells in their parts, see `octree.Cloud`."""
        if self.kept is None and self.first is not None:
            return self.first
        tables, where = self._tables(n_cells * MOMENTS), self._where()

        def add(part: tuple[int, int], table: "NDArray[np.int64]") -> None:
            if self.kept is None:
                cells.add_points(*where, *part, table)
            else:
                cells.add_open(*self.kept, *part, level, table)

        self.threads.map_into(tables, add, self.parts)
        table = total_of(tables).reshape(n_cells, MOMENTS)
        if self.kept is None:
            self.first = table
        return table

    def sift(self, level: int, state: Any, ranks: Any, planes: Any, corners: Any) -> Any:
        """Sum up outliers, and list the points of open cells, see `octree.Cloud`."""
        tables = self._tables(planes.shape[0] * MOMENTS)
        lists, where = (state, planes, corners), self._where()
        first = self.kept is None
        if first:
            self.kept = buffers.empty(self.size, np.int64), buffers.empty(self.size, np.int32)

        def sift(part: tuple[int, int], table: "NDArray[np.int64]") -> int:
            if first:
                return int(
                    cells.sift_points(
                        *where, *part, *lists, table, ranks, *self.kept,
                    )
                )  # fmt: skip
            return int(cells.sift_open(*self.kept, *part, level, *lists, table, ranks))

        ends = self.threads.map_into(tables, sift, self.parts)
        self.parts = [(start, end) for (start, _), end in zip(self.parts, ends, strict=True)]
        return total_of(tables).reshape(-1, MOMENTS)

    def add_sides(self, grid: int, levels: Any, planes: Any, corners: Any) -> Any:
        """Sum up the points on either side of nodes, see `cells.add_sides`."""
        n, node_of = levels.size, np.full(1 << 3 * grid, NONE, np.int32)
        nodes.fill_cells(levels, corners, grid, node_of, 0, n)
        tables, where = self._tables(2 * n * MOMENTS), self._where()
        self.threads.map_into(
            tables,
            lambda part, table: cells.add_sides(
                *where, *part, grid, node_of, planes, corners, table
            ),
            self.threads.spans(self.size, POINTS_PER_THREAD),
        )
        return total_of(tables).reshape(-1, MOMENTS)

    def sides(self, grid: int, levels: Any, codes: Any, planes: Any, corners: Any) -> Any:
        """Describe the points on either side of nodes, see `octree.Cloud`."""
        return self.describe(levels, codes, self.add_sides(grid, levels, planes, corners))

    def open_points(self) -> "tuple[NDArray[np.int64], NDArray[np.int32]]":
        """Give the points of open cells, and the number of the cell of each, see `go_on`."""
        points, slots = ([each[slice(*part)] for part in self.parts] for each in self.kept)
        return np.concatenate(points), np.concatenate(slots)

    def go_on(self, points: Any, slots: Any) -> None:
        """Go on with the points of open cells that were listed before; `sift` changes the lists."""
        self.kept, self.parts = (
            (points, slots),
            self.threads.spans(points.size, POINTS_PER_THREAD),
        )

    def forget(self) -> None:
        """Free the points of open cells."""
        self.kept, self.parts = None, self.threads.spans(self.size, POINTS_PER_THREAD)

    def unexplained(self, near: Any, planes: Any) -> Any:
        """List the points that no plane explains, by their positions in `points`."""
        where = self._where()
        parts = self.threads.spans(self.size, POINTS_PER_THREAD)
        left = buffers.empty(self.size, np.int64)
        ends = self.threads.map(
            lambda part: assign.rest(
                *where, *part, near.grid, near.cell_starts, near.items, near.plain, planes,
                left,
            ),
            parts,
        )  # fmt: skip
        found = [left[start:end] for (start, _), end in zip(parts, ends, strict=True)]
        at = buffers.scratch(sum(each.size for each in found), np.int64)
        np.concatenate(found, out=at)
        return at

    def rest(self, near: Any, planes: Any) -> "CpuCloud":
        """Give the points that no plane explains."""
        return self.of(self.unexplained(near, planes))

    def cover(self, near: Any, rasters: Any, planes: Any) -> Any:
        """Mark the pixels with points, and sum up the points of planes: see `assign.cover`."""
        sums = [np.zeros((len(planes), assign.SUMS), np.int64) for _ in range(self.copies)]
        covered = np.zeros(rasters.n_pixels, np.uint8)  # all threads write the same value
        where = self._where()
        self.threads.map_into(
            sums,
            lambda part, sums: assign.cover(
                *where, *part, near.grid, near.cell_starts, near.items, planes,
                rasters.frames, rasters.starts, covered, sums,
            ),
            self.threads.spans(self.size, POINTS_PER_THREAD),
        )  # fmt: skip
        return covered, total_of(sums)

    def settle(self, near: Any, rasters: Any, planes: Any, surfaces: Any, *, label: bool) -> Any:
        """Assign points to surfaces, and sum up the points of surfaces: see `assign.settle`."""
        n = len(surfaces.plane)
        sums = [np.zeros((n, assign.SUMS), np.int64) for _ in range(self.copies)]
        farthest = [np.full((n, assign.SIDES), -1) for _ in range(self.copies)]
        size, where = self.size if label else 0, self._where()
        owner, distance = buffers.empty(size, np.int32), buffers.empty(size)
        self.threads.map_into(
            list(zip(sums, farthest, strict=True)),
            lambda part, tables: assign.settle(
                *where, *part, near.grid, near.cell_starts, near.items, planes,
                rasters.frames, rasters.starts, surfaces.labels, sides(), *tables,
                self.at, owner, distance,
            ),
            self.threads.spans(self.size, POINTS_PER_THREAD),
        )  # fmt: skip
        return total_of(sums), np.maximum.reduce(farthest), owner, distance

    def name(self, owner: Any, distance: Any, ids: Any, step: float) -> Any:
        """Convert surfaces to plane_ids, and steps to units of the coordinates."""
        named = buffers.empty(self.size, np.int64)
        parts = self.threads.spans(self.size, POINTS_PER_THREAD)
        self.threads.map(lambda part: assign.name(owner, distance, ids, step, named, *part), parts)
        return named, distance
