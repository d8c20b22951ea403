"""`detect_planes` on the GPU: points and cells on the device, planes in main memory."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.points import ids_of, in_one_memory, not_finite, to_host
from spatialq.runtime import cuda, progress

from . import assign
from .accumulator import RADIUS, ball
from .boundary import sides
from .cells import MOMENTS
from .detection import Detection, detect
from .octree import Cube

if TYPE_CHECKING:
    from collections.abc import Sequence

    from . import Options

SOURCE = Path(__file__).parent / "kernels.cu"
THREADS = 256
POINTS_PER_BLOCK = 2048  # at least
BLOCKS = 8  # per multiprocessor
WARP = 32


def run(
    x: Any, y: Any, z: Any, point_id: Any, options: "Options", outputs: "Sequence[str]"
) -> dict[str, dict[str, Any]]:
    """Find the planes of a cloud, the plane of each point, and the nodes that voted.

    Parameters
    ----------
    x, y, z : float64[n]
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n] or None
        In the same memory as the coordinates; None for 0, 1, 2 ...
    options : Options
    outputs : sequence of 'detect_planes', 'plane_points', 'plane_nodes'

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
        explain="plane_nodes" in outputs,
    )  # fmt: skip
    tables = {"detect_planes": found.columns, "plane_nodes": found.nodes}
    owner, distance = found.owner, found.distance
    device = cuda.device()
    with device.use():
        if device.is_here(x):
            tables = {
                output: {
                    name: values if values.dtype == object else device.upload_small(values)
                    for name, values in tables[output].items()
                }
                for output in tables
                if output in outputs
            }
        elif "plane_points" in outputs:
            owner, distance = to_host(device, owner), to_host(device, distance)
        if "plane_points" in outputs:
            ids = ids_of(point_id, x.shape[0], device.xp if device.is_here(x) else np)
            tables["plane_points"] = {"point_id": ids, "plane_id": owner, "distance": distance}
    return {name: tables[name] for name in outputs}


def detection(
    x: Any, y: Any, z: Any, point_id: Any, options: "Options", *, label: bool,
    explain: bool = False,
) -> Detection:  # fmt: skip
    """Find the planes of a cloud as `cpu.detection` does; owner and distance are on the GPU."""
    device = cuda.device()
    with device.use():
        progress.stage("transfer", 0.1)
        if in_one_memory(device, options.function, (x, y, z, point_id)):
            points = [device.xp.ascontiguousarray(device.view(each)) for each in (x, y, z)]
            x, y, z = points
            point_id = None if point_id is None else device.view(point_id)
        else:
            points = device.upload([np.ascontiguousarray(each, np.float64) for each in (x, y, z)])
        cube = _cube(device, points)
        if cube is None:
            raise ValueError(not_finite(options.function, x, y, z, point_id))
        cloud = GpuCloud(device, points, cube)
        return detect(cloud, cube, options, label=label, explain=explain)


def _cube(device: Any, points: list[Any]) -> Cube | None:
    """Make the root cube around points; None if a coordinate is not finite."""
    n = points[0].size
    if n == 0:
        return Cube((0.0, 0.0, 0.0), 0.0)
    found = device.filled(0xFF, 8 * 7).view(np.uint64)
    device.launch(SOURCE, "planes_bounds", _blocks(device, n), THREADS, *points, n, found)
    ends = cuda.bounds(device.download(found))
    return None if ends is None else Cube.around(*ends)


def _blocks(device: Any, n: int, worth: int = POINTS_PER_BLOCK) -> tuple[int]:
    return (min(-(-n // worth), device.multiprocessors * BLOCKS),)


@cache
def _ball(device: Any, phi_num: int) -> dict[str, Any]:
    """Give the arrays of an accumulator ball on the device."""
    arrays = vars(ball(phi_num)).items()
    return {name: device.upload_small(each) for name, each in arrays if name != "step"}


@dataclass
class _Kept:
    """Points of open cells, unordered."""

    points: Any
    """int64[n]: in the form of `cells.add_open`."""
    slots: Any
    """int32[n]: number of each point's cell among the open cells."""
    size: Any
    """uint64[1]: number of points."""

    @classmethod
    def room(cls, device: Any, n: int) -> "_Kept":
        """Allocate space for n points."""
        xp = device.xp
        size = device.filled(0, 8).view(np.uint64)
        return cls(xp.empty(n, np.int64), xp.empty(n, np.int32), size)


class GpuCloud:
    """The points, and the points of open cells, in the memory of a GPU; see `octree.Cloud`."""

    def __init__(self, device: Any, points: list[Any], cube: Cube) -> None:
        self.device, self.xp, self.points, self.cube = device, device.xp, points, cube
        self.size = points[0].size
        self.kept: _Kept | None = None
        self.near: Any = None
        self.near_lists: Any = None

    def download(self, array: Any) -> Any:
        """Copy to main memory."""
        return self.device.download(array)

    def _zeros(self, *shape: int) -> Any:
        return self.device.filled(0, 8 * int(np.prod(shape))).view(np.int64).reshape(shape)

    def _launch(self, loop: str, *arguments: Any) -> None:
        """Launch a loop over points."""
        blocks = _blocks(self.device, self.size)
        self.device.launch(SOURCE, f"planes_{loop}", blocks, THREADS, *arguments)

    def _cells(self, loop: str, n: int, *arguments: Any) -> None:
        """Launch a loop over n items."""
        if n > 0:
            blocks = _blocks(self.device, n, THREADS)
            self.device.launch(SOURCE, f"planes_{loop}", blocks, THREADS, *arguments)

    def _where(self) -> tuple[Any, ...]:
        return *self.points, self.size, *self.cube.low, self.cube.scale

    def moments(self, n_cells: int, level: int) -> Any:
        """Sum up the points of open cells in their parts, see `octree.Cloud`."""
        table = self._zeros(n_cells, MOMENTS)
        if self.kept is None:
            self._launch("add_points", *self._where(), table)
        else:
            self._launch("add_open", *self._list(self.kept), level, table)
        return table

    @staticmethod
    def _list(kept: _Kept) -> tuple[Any, ...]:
        return kept.points, kept.slots, kept.size

    def sift(self, level: int, state: Any, ranks: Any, planes: Any, corners: Any) -> Any:
        """Sum up outliers, and list the points of open cells, see `octree.Cloud`."""
        outliers = self._zeros(planes.shape[0], MOMENTS)
        left = _Kept.room(self.device, self.size)
        into = state, planes, corners, outliers, ranks, *self._list(left)
        if self.kept is None:
            self._launch("sift_points", *self._where(), *into)
        else:
            self._launch("sift_open", *self._list(self.kept), level, *into)
        self.kept = left
        return outliers

    def forget(self) -> None:
        """Free the points of open cells."""
        self.kept = None

    def each(self, loop: str, size: int, *arguments: Any) -> None:
        """Run a loop of nodes.py, see `octree.Cloud`."""
        plain = (int(each) if isinstance(each, bool) else each for each in arguments)
        self._cells(loop, size, *plain, size)

    def peaks(
        self, nodes: Any, means: Any, weights: Any, around: Any, rho_step: float,
        shape: tuple[int, int], kernel: str, unit: float,
    ) -> Any:  # fmt: skip
        """Vote, smooth, and find the peaks: positions in the accumulator, and their votes."""
        n_rows = around.rows.size - 1
        there, votes = _ball(self.device, n_rows - 1), self._zeros(*shape)
        put = self.device.upload_small
        if kernel == "tangent":
            self._cells(
                "vote", 2 * WARP * len(nodes), put(means), put(nodes.values), put(nodes.vectors),
                put(weights), there["directions"], there["rows"], n_rows, around.step, rho_step,
                shape[1], votes, len(nodes),
            )  # fmt: skip
        else:
            self._cells(
                "vote_as_paper", WARP * len(nodes), put(means), put(nodes.covariance),
                put(nodes.vectors), put(weights), there["phi"], there["theta"], there["rows"],
                n_rows, around.step, rho_step, unit, shape[1], votes, len(nodes),
            )  # fmt: skip
        smoothed, found = self.xp.empty_like(votes), self.xp.empty((votes.size, 2), np.int64)
        n_found = self._zeros(1)
        self._cells("smooth", votes.size, votes, there["beside"], *shape, smoothed)
        self._cells(
            "peaks", votes.size, smoothed, there["near"], there["near_starts"], RADIUS, *shape,
            found, n_found,
        )  # fmt: skip
        return self.download(found[: int(self.download(n_found)[0])]).T

    def _near(self, near: Any) -> Any:
        if self.near is not near:
            lists = near.cell_starts, near.items
            self.near, self.near_lists = near, self.device.upload([*lists])
        return near.grid, *self.near_lists

    def rest(self, near: Any, planes: Any) -> "GpuCloud":
        """Give the points that no plane explains: see `assign.rest`."""
        points = [self.xp.empty(self.size) for _ in self.points]
        n_left = self._zeros(1)
        plain, planes = self.device.upload([near.plain, planes])
        self._launch("rest", *self._where(), *self._near(near), plain, planes, *points, n_left)
        size = int(self.download(n_left)[0])
        return GpuCloud(self.device, [values[:size] for values in points], self.cube)

    def cover(self, near: Any, rasters: Any, planes: Any) -> Any:
        """Mark the pixels with points, and sum up the points of planes: see `assign.cover`."""
        sums = self._zeros(len(planes), assign.SUMS)
        covered = self.device.filled(0, rasters.n_pixels)
        there = self.device.upload([planes, rasters.frames, rasters.starts])
        self._launch("cover", *self._where(), *self._near(near), *there, covered, sums, len(planes))
        return covered, self.download(sums)

    def _rasters(self, rasters: Any) -> Any:
        extents = rasters.extents().astype(np.int32)
        return self.device.upload_small(extents), len(extents)

    def connect(self, rasters: Any, covered: Any) -> Any:
        """Find connected pixels: the part of each pixel, the planes and sizes of the parts.

        A part is identified by its first pixel. The first result holds the part of each pixel and
        the list of all parts.
        """
        n = covered.size
        parent, sizes = self.xp.arange(n, dtype=np.int32), self._zeros(n)
        found, n_found = self.xp.empty((n, 2), np.int64), self._zeros(1)
        self._cells("connect", n, covered, *self._rasters(rasters), parent, n)
        self._cells("measure", n, covered, parent, sizes, n)
        self._cells("list_parts", n, covered, parent, sizes, found, n_found, n)
        found = self.download(found[: int(self.download(n_found)[0])])
        firsts, sizes = found[np.argsort(found[:, 0])].T
        plane = np.searchsorted(rasters.starts[:, 0], firsts, side="right") - 1
        return (covered, parent, firsts), plane, sizes

    def paint(self, rasters: Any, parts: Any, numbers: Any) -> Any:
        """Label the pixels with the surfaces of their parts."""
        covered, parent, firsts = parts
        labels, surfaces = (self.xp.empty_like(parent) for _ in range(2))
        put, size = self.device.upload_small, covered.size
        surfaces[put(firsts)] = put(numbers)
        self._cells("paint", size, covered, parent, surfaces, labels, size)
        self._cells("edges", size, labels, *self._rasters(rasters), size)
        return labels

    def settle(self, near: Any, rasters: Any, planes: Any, surfaces: Any, *, label: bool) -> Any:
        """Assign points to surfaces, and sum up the points of surfaces: see `assign.settle`."""
        n = len(surfaces.plane)
        sums = self._zeros(n, assign.SUMS)
        farthest = self.device.filled(0xFF, 8 * n * assign.SIDES).view(np.int64)
        size = self.size if label else 0
        owner, distance = self.xp.empty(size, np.int32), self.xp.empty(size)
        lists = self.device.upload([planes, rasters.frames, rasters.starts, sides()])
        self._launch(
            "settle", *self._where(), *self._near(near), *lists, surfaces.labels, sums, farthest,
            n, int(label), owner, distance,
        )  # fmt: skip
        farthest = self.download(farthest).reshape(n, assign.SIDES)
        return self.download(sums), farthest, owner, distance

    def name(self, owner: Any, distance: Any, ids: Any, step: float) -> Any:
        """Convert surfaces to plane_ids, and steps to units of the coordinates."""
        named, ids = self.xp.empty(self.size, np.int64), self.device.upload_small(ids)
        self._cells("name", self.size, owner, distance, ids, step, named, self.size)
        return named, distance
