"""`detect_planes` on the GPU: points and cells on the device, planes in main memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.points import ids_of, in_one_memory, not_finite, to_host
from spatialq.data.tiles import runs_of
from spatialq.runtime import buffers, cuda, progress

from . import assign
from .accumulator import RADIUS, ball
from .boundary import sides
from .cells import GRID, MOMENTS
from .detection import EXPLAINING, Detection, detect
from .octree import EXACT, MIN_S_MS, WIDTHS, Cube, Summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from . import Options

SOURCE = Path(__file__).parent / "kernels.cu"
THREADS = 256
POINTS_PER_BLOCK = 2048  # at least
BLOCKS = 8  # per multiprocessor
WARP = 32
MANY_THREADS = 1024  # of a block that works alone on something
ROWS_WITH_LENGTH = 1000  # rows of a list that are downloaded with its length


def run(
    x: Any, y: Any, z: Any, point_id: Any, options: "Options", outputs: "Sequence[str]",
    tiles: int = 1,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """Find the planes of a cloud, the plane of each point, and the nodes that voted.

    Parameters
    ----------
    x, y, z : float64[n]
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n] or None
        In the same memory as the coordinates; None for 0, 1, 2 ...
    options : Options
    outputs : sequence of 'detect_planes', 'plane_points', 'plane_nodes', 'plane_peaks'
    tiles : int
        Runs of points that the cloud, of NumPy arrays, is divided into, so that only one or two at
        a time are on the device, beside the cells of the octree; the result is the same.

    Returns
    -------
    dict of output -> dict of columns
        As from `cpu.run`, in the memory of the coordinates, except that `boundary` is always a
        NumPy array.

    Raises
    ------
    ValueError
        As from `cpu.run`.
    """
    found = detection(
        x, y, z, point_id, options, label="plane_points" in outputs,
        explain=not EXPLAINING.isdisjoint(outputs), tiles=tiles,
    )  # fmt: skip
    tables = {
        "detect_planes": found.columns, "plane_nodes": found.nodes, "plane_peaks": found.peaks,
    }  # fmt: skip
    owner, distance = found.owner, found.distance
    device = cuda.device()
    with device.use():
        if device.is_here(x):
            tables = {
                output: _uploaded(device, columns)
                for output, columns in tables.items()
                if output in outputs
            }
        elif "plane_points" in outputs and tiles == 1:
            owner, distance = to_host(device, owner), to_host(device, distance)
        if "plane_points" in outputs:
            ids = ids_of(point_id, x.shape[0], device.xp if device.is_here(x) else np)
            tables["plane_points"] = {"point_id": ids, "plane_id": owner, "distance": distance}
    return {name: tables[name] for name in outputs}


def _uploaded(device: cuda.Device, columns: dict[str, Any]) -> dict[str, Any]:
    """Copy columns of numbers to the GPU; objects stay where they are."""
    numbers = {name: each for name, each in columns.items() if each.dtype != object}
    there = dict(zip(numbers, device.upload([*numbers.values()]), strict=True))
    return {name: there.get(name, values) for name, values in columns.items()}


def detection(
    x: Any, y: Any, z: Any, point_id: Any, options: "Options", *, label: bool,
    explain: bool = False, tiles: int = 1,
) -> Detection:  # fmt: skip
    """Find the planes of a cloud as `cpu.detection` does.

    Owner and distance are on the GPU; in main memory if there are several tiles, see `run`.
    """
    device = cuda.device()
    with device.use():
        progress.stage("transfer", 0.1)
        if in_one_memory(device, options.function, (x, y, z, point_id)):
            points = [device.xp.ascontiguousarray(device.view(each)) for each in (x, y, z)]
            x, y, z = points
            point_id = None if point_id is None else device.view(point_id)
        else:
            points = [np.ascontiguousarray(each, np.float64) for each in (x, y, z)]
            points = points if tiles > 1 else device.upload(points)
        cube = _cube(device, points, tiles)
        if cube is None:
            raise ValueError(not_finite(options.function, x, y, z, point_id))
        cloud = GpuCloud(device, points, cube, tiles=tiles)
        return detect(cloud, cube, options, label=label, explain=explain)


def _cube(device: cuda.Device, points: list[Any], tiles: int) -> Cube | None:
    """Make the root cube around points; None if a coordinate is not finite."""
    if points[0].size == 0:
        return Cube((0.0, 0.0, 0.0), 0.0)
    found = device.filled(0xFF, 8 * 7).view(np.uint64)
    for run, there in _runs(device, points, tiles):
        n = run.stop - run.start
        device.launch(SOURCE, "planes_bounds", _blocks(device, n), THREADS, *there, n, found)
    ends = cuda.bounds(device.download(found))
    return None if ends is None else Cube.around(*ends)


def _runs(device: cuda.Device, points: list[Any], tiles: int) -> Iterator[tuple[slice, list[Any]]]:
    """Give runs of points on the device: all of them, or tiles of those in main memory."""
    size = points[0].size
    for run in runs_of(size, tiles):
        some = [values[run] for values in points]
        yield run, device.upload(some) if tiles > 1 else some


def _blocks(device: cuda.Device, n: int, worth: int = POINTS_PER_BLOCK) -> tuple[int]:
    return (min(-(-n // worth), device.multiprocessors * BLOCKS),)


@cache
def _ball(device: cuda.Device, phi_num: int) -> dict[str, Any]:
    """Give the arrays of an accumulator ball on the device."""
    arrays = vars(ball(phi_num)).items()
    return {name: device.upload_small(each) for name, each in arrays if name != "step"}


@dataclass
class _Listed:
    """Points in steps, in the form of `cells.add_open`."""

    points: Any
    """int64[n]."""
    slots: Any
    """int32[n]: number of each point's cell among the open cells; 0 in the first grid."""
    size: Any
    """uint64[1]: number of points, on the device."""


class GpuCloud:
    """The points, and the points of open cells, in the memory of a GPU; see `octree.Cloud`.

    All but the surfaces are found from the steps of the points. Points of a cell of the first grid
    are together, so that the additions to its moments are few: see `planes_sort`.

    With several tiles, the points, their lists, and what is found for each point are in main
    memory, and go to the GPU run by run. What is found for cells and planes are sums of whole
    numbers and maxima, which do not depend on that.
    """

    def __init__(
        self, device: cuda.Device, points: list[Any], cube: Cube,
        lists: list[_Listed] | None = None, *, tiles: int = 1,
    ) -> None:  # fmt: skip
        self.device, self.xp, self.points, self.cube = device, device.xp, points, cube
        self.tiles = tiles
        self.size = sum(each.points.size for each in lists) if lists else points[0].size
        self.all, self.kept = lists, lists
        self.first: Any = None  # moments of the first grid
        self.near: Any = None
        self.near_lists: Any = None

    def download(self, array: Any) -> Any:
        """Copy to main memory."""
        return self.device.download(array)

    def empty(self, shape: Any, kind: Any = np.float64) -> Any:
        """Allocate an array."""
        return self.xp.empty(shape, kind)

    def full(self, shape: Any, value: Any, kind: Any = np.float64) -> Any:
        """Allocate an array of one value for each point, where the points are."""
        return (np if self.tiles > 1 else self.xp).full(shape, value, kind)

    def _zeros(self, *shape: int) -> Any:
        return self.xp.zeros(shape, np.int64)

    def _launch(self, loop: str, n: int, *arguments: Any) -> None:
        """Launch a loop over n points."""
        self.device.launch(SOURCE, f"planes_{loop}", _blocks(self.device, n), THREADS, *arguments)

    def _cells(self, loop: str, n: int, *arguments: Any) -> None:
        """Launch a loop over n items."""
        if n > 0:
            blocks = _blocks(self.device, n, THREADS)
            self.device.launch(SOURCE, f"planes_{loop}", blocks, THREADS, *arguments)

    def _runs(self) -> Iterator[tuple[slice, int, tuple[Any, ...]]]:
        """Give runs of points, their numbers, and on the device what loops over them begin with."""
        for run, points in _runs(self.device, self.points, self.tiles):
            n = run.stop - run.start
            yield run, n, (*points, n, *self.cube.low, self.cube.scale)

    def _lists(self, lists: list[_Listed]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Give the number of points that lists have room for, and the lists, on the device."""
        for each in lists:
            n = each.points.size
            if self.tiles == 1:
                yield n, (each.points, each.slots, each.size)
            elif n > 0:
                points, *slots = self.device.upload([each.points, *self._slots(each)])
                yield n, (points, *(slots or [0]), each.size)

    @staticmethod
    def _slots(listed: _Listed) -> list[Any]:
        return [] if isinstance(listed.slots, int) else [listed.slots]

    def _keep(self, listed: _Listed) -> _Listed:
        """Keep a list: on the device, or with several tiles in main memory."""
        if self.tiles == 1:
            return listed
        n = int(self.download(listed.size)[0])
        slots = [to_host(self.device, each[:n]) for each in self._slots(listed)]
        points = to_host(self.device, listed.points[:n])
        return _Listed(points, slots[0] if slots else 0, listed.size)

    def _sorted(self) -> list[_Listed]:
        """Convert the points to steps, those of a cell of the first grid together."""
        if self.all is None:
            self.all = [self._keep(self._sort(n, there)) for _, n, there in self._runs()]
        return self.all

    def _sort(self, n: int, there: tuple[Any, ...]) -> _Listed:
        n_cells = 1 << 3 * GRID
        at, points = self._zeros(n_cells), self.xp.empty(n, np.int64)
        self._launch("count", n, *there, at)
        self.device.launch(SOURCE, "planes_offsets", (1,), MANY_THREADS, at, n_cells)
        self._launch("sort", n, *there, at, points)
        return _Listed(points, 0, self.device.upload_small(np.array([n], np.uint64)))

    def _open(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        if self.kept is None:
            self.kept = self._sorted()
        return self._lists(self.kept)

    def moments(self, n_cells: int, level: int) -> Any:
        """Sum up the points of open cells in their parts, see `octree.Cloud`."""
        if level == GRID and self.first is not None:
            return self.first
        table = self._zeros(n_cells, MOMENTS)
        for n, lists in self._open():
            self._launch("add", n, *lists, level, table)
        if level == GRID:
            self.first = table
        return table

    def sift(self, level: int, state: Any, ranks: Any, planes: Any, corners: Any) -> Any:
        """Sum up outliers, and list the points of open cells, see `octree.Cloud`."""
        outliers = self._zeros(planes.shape[0], MOMENTS)
        empty, kept = self.xp.empty, []
        for n, lists in self._open():
            left = _Listed(empty(n, np.int64), empty(n, np.int32), self._zeros(1))
            self._launch(
                "sift", n, *lists, level, state, planes, corners, outliers, ranks, left.points,
                left.slots, left.size,
            )  # fmt: skip
            kept.append(self._keep(left))
        self.kept = kept
        return outliers

    def sides(self, grid: int, levels: Any, codes: Any, planes: Any, corners: Any) -> Any:
        """Describe the points on either side of nodes, see `octree.Cloud`."""
        n = levels.size
        table, rows = self._zeros(2 * n, MOMENTS), self.xp.empty((2 * n, sum(WIDTHS)))
        node_of = self.device.filled(0xFF, 4 << 3 * grid).view(np.int32)  # NONE
        levels, codes, planes, corners = self.device.upload([levels, codes, planes, corners])
        self._cells("fill_cells", n, levels, corners, grid, node_of, n)
        for n_points, (points, _, size) in self._lists(self._sorted()):
            lists = points, size, grid, node_of, planes, corners
            self._launch("add_sides", n_points, *lists, table)
        self._cells("describe_sums", 2 * n, levels, codes, table, rows, 2 * n)
        return self.download(rows)

    def forget(self) -> None:
        """Free the points of open cells."""
        self.kept = self.all

    def summarize(self, grid: Any) -> list[Summary]:
        """Summarize the cells of each level of a grid, see `octree.Cloud`."""
        n = 2 * len(grid.levels)
        sizes, pairs = self._zeros(n), self.xp.empty((2, grid.size, 2), np.uint64)
        self._cells(
            "list_cells", grid.size, grid.moments, grid.values, grid.planar, grid.n_first,
            float(MIN_S_MS), EXACT**2, pairs, sizes, grid.size,
        )  # fmt: skip
        found = self.xp.empty((2, n))
        lists = pairs, sizes, grid.n_first, grid.size, found[0], found[1]
        self.device.launch(SOURCE, "planes_medians", (n,), MANY_THREADS, *lists)
        found = self.download(found).reshape(2, -1, 2)
        medians, points = found[0].tolist(), found[1].view(np.int64)[:, 1].tolist()
        return [
            Summary(level, occupancy, float(n_planar), ratio)
            for level, n_planar, (occupancy, ratio) in zip(
                grid.levels, points, medians, strict=True
            )
        ]

    def walk(self, grid: Any, s_level: int, deepest: int, s_ms: float) -> tuple[Any, ...]:
        """Find the coarsest planar cell around each of the finest cells, see `octree.Cloud`."""
        n, empty = grid.n_last, self.xp.empty
        state, ranks, numbers = empty(n, np.int32), empty(n, np.int32), empty(grid.size, np.int32)
        at, inner, counts = empty(grid.size, np.int64), empty(n, np.int64), self._zeros(2)
        self._cells(
            "walk", n, grid.moments, grid.planar, grid.n_first, grid.levels[0], grid.levels[-1],
            s_level, deepest, s_ms, grid.base, grid.open_cells, state, at, numbers, inner, ranks,
            counts, n,
        )  # fmt: skip
        self._cells("number", n, numbers, state, n)
        n_nodes, n_open = self.download(counts).tolist()
        return at[:n_nodes], state, inner[:n_open], ranks

    def each(self, loop: str, size: int, *arguments: Any) -> None:
        """Run a loop of nodes.py, see `octree.Cloud`."""
        self._cells(loop, size, *arguments, size)

    def peaks(
        self, nodes: Any, means: Any, weights: Any, around: Any, rho_step: float,
        shape: tuple[int, int], kernel: str, unit: float,
    ) -> Any:  # fmt: skip
        """Vote, smooth, and find the peaks: positions in the accumulator, and their votes."""
        n_rows, n = around.rows.size - 1, len(nodes)
        there, votes = _ball(self.device, n_rows - 1), self._zeros(*shape)
        if kernel == "tangent":
            lists = self.device.upload([means, nodes.values, nodes.vectors, weights])
            self._cells(
                "vote", 2 * WARP * n, *lists, there["directions"], there["rows"], n_rows,
                around.step, rho_step, shape[1], votes, n,
            )  # fmt: skip
        else:
            lists = self.device.upload([means, nodes.covariance, nodes.vectors, weights])
            self._cells(
                "vote_as_paper", WARP * n, *lists, there["phi"], there["theta"], there["rows"],
                n_rows, around.step, rho_step, unit, shape[1], votes, n,
            )  # fmt: skip
        smoothed, found = self.xp.empty_like(votes), self._list_of(votes.size)
        self._cells("smooth", votes.size, votes, there["beside"], *shape, smoothed)
        self._cells(
            "peaks", votes.size, smoothed, there["near"], there["near_starts"], RADIUS, *shape,
            found,
        )  # fmt: skip
        return self._listed(found).T

    def _list_of(self, n: int) -> Any:
        """Allocate a list of up to n pairs of int64, which starts with its length, 0."""
        return self._zeros(1 + n, 2)

    def _listed(self, pairs: Any) -> Any:
        """Download such a list, in one piece if it is short."""
        found = self.download(pairs[: 1 + ROWS_WITH_LENGTH])
        n = int(found[0, 0])
        return found[1 : 1 + n] if n < len(found) else self.download(pairs[1 : 1 + n])

    def _near(self, near: Any) -> Any:
        if self.near is not near:
            lists = near.cell_starts, near.items
            self.near, self.near_lists = near, self.device.upload([*lists])
        return near.grid, *self.near_lists

    def rest(self, near: Any, planes: Any) -> "GpuCloud":
        """Give the points that no plane explains: see `assign.rest`."""
        left, (plain, planes) = [], self.device.upload([near.plain, planes])
        for n, (every, _, size) in self._lists(self._sorted()):
            points, n_left = self.xp.empty(n, np.int64), self._zeros(1)
            lists = every, size, *self._near(near), plain, planes
            self._launch("rest", n, *lists, points, n_left)
            points = points[: int(self.download(n_left)[0])]
            left.append(self._keep(_Listed(points, 0, n_left)))
        return GpuCloud(self.device, [], self.cube, left, tiles=self.tiles)

    def cover(self, near: Any, rasters: Any, planes: Any) -> Any:
        """Mark the pixels with points, and sum up the points of planes: see `assign.cover`."""
        sums = self._zeros(len(planes), assign.SUMS)
        covered = self.xp.zeros(rasters.n_pixels, np.uint8)
        there = self.device.upload([planes, rasters.frames, rasters.starts])
        for _, n, points in self._runs():
            self._launch("cover", n, *points, *self._near(near), *there, covered, sums, len(planes))
        return covered, self.download(sums)

    def connect(self, rasters: Any, covered: Any) -> Any:
        """Find connected pixels: the part of each pixel, the planes and sizes of the parts.

        A part is identified by its first pixel. The first result holds the part of each pixel and
        the list of all parts.
        """
        n = covered.size
        extents = self.device.upload_small(rasters.extents().astype(np.int32))
        parent, sizes, found = self.xp.arange(n, dtype=np.int32), self._zeros(n), self._list_of(n)
        self._cells("connect", n, covered, extents, len(extents), parent, n)
        self._cells("measure", n, covered, parent, sizes, n)
        self._cells("list_parts", n, covered, parent, sizes, found, n)
        found = self._listed(found)
        firsts, sizes = found[np.argsort(found[:, 0])].T
        plane = np.searchsorted(rasters.starts[:, 0], firsts, side="right") - 1
        return (covered, extents, parent, firsts), plane, sizes

    def paint(self, rasters: Any, parts: Any, numbers: Any, *, edges: bool) -> Any:
        """Label the pixels with the surfaces of their parts, and mark those at edges."""
        covered, extents, parent, firsts = parts
        labels, surfaces = (self.xp.empty_like(parent) for _ in range(2))
        size, n_parts = covered.size, len(firsts)
        lists = self.device.upload([firsts, numbers])
        self._cells("name_parts", n_parts, *lists, surfaces, n_parts)
        self._cells("paint", size, covered, parent, surfaces, labels, size)
        if edges:
            self._cells("edges", size, labels, extents, len(extents), size)
        return labels

    def settle(self, near: Any, rasters: Any, planes: Any, surfaces: Any, *, label: bool) -> Any:
        """Assign points to surfaces, and sum up the points of surfaces: see `assign.settle`."""
        n = len(surfaces.plane)
        sums = self._zeros(n, assign.SUMS)
        farthest = self.device.filled(0xFF, 8 * n * assign.SIDES).view(np.int64)
        lists = self.device.upload([planes, rasters.frames, rasters.starts, sides()])
        owner, distance = self._rows(np.int32, np.float64, size=self.size if label else 0)
        for run, n_points, points in self._runs():
            with self._of_run([owner, distance], run) as there:
                self._launch(
                    "settle", n_points, *points, *self._near(near), *lists, surfaces.labels, sums,
                    farthest, n, int(label), *there,
                )  # fmt: skip
        farthest = self.download(farthest).reshape(n, assign.SIDES)
        return self.download(sums), farthest, owner, distance

    def name(self, owner: Any, distance: Any, ids: Any, step: float) -> Any:
        """Convert surfaces to plane_ids, and steps to units of the coordinates."""
        ids, (named,) = self.device.upload_small(ids), self._rows(np.int64, size=self.size)
        for run, (owners, off) in _runs(self.device, [owner, distance], self.tiles):
            n = run.stop - run.start
            with self._of_run([named], run) as there:
                self._cells("name", n, owners, off, ids, step, *there, n)
            if self.tiles > 1:
                self.device.download(off, distance[run])
        return named, distance

    def _rows(self, *kinds: Any, size: int) -> list[Any]:
        """Allocate rows for points: on the device, or with several tiles in main memory."""
        if self.tiles == 1:
            return [self.xp.empty(size, kind) for kind in kinds]
        return [buffers.empty(size, kind, page_locked=True) for kind in kinds]

    @contextmanager
    def _of_run(self, rows: list[Any], run: slice) -> Iterator[list[Any]]:
        """Give what is to be filled for a run of points, on the device, then bring it to rows."""
        parts = [values[run] for values in rows]
        if self.tiles == 1:
            yield parts
            return
        there = [self.xp.empty(part.size, part.dtype) for part in parts]
        yield there
        for part, values in zip(parts, there, strict=True):
            self.device.download(values, part)
