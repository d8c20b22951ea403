"""`ground_surface` on the GPU: seeds and cells; sorting and triangulation run on the host."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.points import all_finite, not_finite, to_device
from spatialq.runtime import cuda, progress
from spatialq.runtime.arrays import Floats, Int32s

from ..owm_ground import gpu as owm_ground
from . import Options
from .buckets import sort_into_buckets
from .grid import SurfaceRaster, cover
from .triangles import arrange, hull, triangulate

Points = tuple[Floats, ...]

SOURCE = Path(__file__).parent / "kernels.cu"
MAX_ROWS = 65535  # maximum number of blocks along y
BLOCKS = 16  # of `surface_rasterise` per multiprocessor


def run(x: Any, y: Any, z: Any, point_id: Any, options: Options, tiles: int = 1) -> dict[str, Any]:
    """Make a terrain grid from the ground seeds of a cloud, or from ground points.

    Parameters
    ----------
    x, y, z : float64[n], units of the cloud's CRS
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n], unique, or None
        In the same memory as the coordinates; None for 0, 1, 2 ...
    options : Options
    tiles : int
        Strips in which the seeds of NumPy arrays are found, see `owm_ground`; the result is the
        same.

    Returns
    -------
    dict of columns
        As from `cpu.run`, in the memory of the coordinates.

    Raises
    ------
    ValueError
        As from `cpu.run`.
    """
    device = cuda.device()
    with device.use():
        cloud, here = (x, y, z, point_id), False
        progress.stage("transfer", 0.2)
        if tiles == 1:
            cloud, here = to_device(device, options.function, cloud)
        *coordinates, _ = cloud
        xp = device.xp if here else np
        if x.shape[0] == 0:
            return {name: xp.empty(0) for name in "xyz"}
        if not all_finite(*coordinates):
            x, y, z, point_id = cloud if here else (x, y, z, point_id)
            raise ValueError(not_finite(options.function, x, y, z, point_id))
        grid = cover(coordinates[0], coordinates[1], options)
        if options.source == "seeds":
            progress.stage("seeds", 0.3)
            coordinates = _seeds(device, cloud, options, tiles)
        if tiles == 1:
            coordinates = [device.download(values) for values in coordinates]
        progress.stage("triangles" if options.method == "tin" else "hull", 1.0)
        x, y, z = coordinates
        ground = arrange(x, y, z, grid, thin=options.thin)
        heights = _heights(device, ground, grid, options)
        return grid.table(heights if here else device.download(heights), xp)


def _seeds(device: cuda.Device, cloud: tuple[Any, ...], options: Options, tiles: int) -> list[Any]:
    """Give x, y and z of the seeds, in the order of their ids; where the cloud is."""
    if tiles > 1:
        with progress.nested():
            x, y, z, point_id = cloud
            found = owm_ground.run(x, y, z, point_id, options, tiles=tiles)
        return [found[axis] for axis in "xyz"]
    seeds, _, _ = owm_ground.find(device, cloud, options, None)
    return [values[seeds] for values in cloud[:3]]


def _heights(device: cuda.Device, points: Points, grid: SurfaceRaster, options: Options) -> Any:
    """Heights of the cells: float64[rows, columns] on the device, NaN where there is none."""
    xp, kernels = device.xp, _Kernels(device, grid)
    heights = xp.full((grid.rows, grid.columns), np.nan)
    if options.method == "tin":
        kernels.interpolate(points, triangulate(*points[:2]), heights)
        if options.extrapolate:
            kernels.weigh(points, xp.isnan(heights), 1, heights)
    else:
        wanted = xp.ones(heights.shape, np.bool_)
        if not options.extrapolate:
            kernels.interpolate(points, hull(*points[:2]), heights)
            wanted = ~xp.isnan(heights)
        kernels.weigh(points, wanted, options.neighbours, heights)
    return heights


@dataclass(frozen=True)
class _Kernels:
    """The steps on the device for one grid; points and triangles come from the host."""

    device: cuda.Device
    grid: SurfaceRaster

    def interpolate(self, points: Points, triangles: Int32s, heights: Any) -> None:
        """Fill the cells whose centre is in a triangle; of several triangles the first is used."""
        n = len(triangles)
        if n == 0:
            return
        device, size = self.device, np.float64(self.grid.resolution)
        centres = self.grid.centres_from()
        x, y, z, corners, *there = device.upload([*points, triangles.ravel(), *centres])
        ends = device.xp.empty(n, np.int64)
        device.launch(
            SOURCE, "surface_count", (-(-n // 256),), 256,
            x, y, corners, n, np.float64(centres[1][0]), size, *self._sizes(), ends,
        )  # fmt: skip
        ends = device.xp.cumsum(ends)
        owners = device.filled(0xFF, 4 * heights.size).view(np.uint32)
        device.launch(
            SOURCE, "surface_rasterise", (device.multiprocessors * BLOCKS,), 256,
            x, y, corners, ends, n, *there, size, *self._sizes(), owners,
        )  # fmt: skip
        self._cells("heights", x, y, z, corners, owners, *there, *self._sizes(), heights)

    def weigh(self, points: Points, wanted: Any, neighbours: int, heights: Any) -> None:
        """Fill the wanted cells with the weighted mean of the points nearest to them."""
        if points[0].size == 0:
            return
        buckets = sort_into_buckets(*points)
        centres = self.grid.centres_from(buckets.corner)
        *there, centre_x, centre_y = self.device.upload(
            [buckets.x, buckets.y, buckets.z, buckets.starts, *centres]
        )
        self._cells(
            "weigh", *there, np.float64(buckets.side), np.int32(buckets.columns),
            np.int32(buckets.rows), centre_x, centre_y, np.int32(neighbours), wanted,
            *self._sizes(), heights,
        )  # fmt: skip

    def _cells(self, name: str, *arguments: Any) -> None:
        """Launch a loop over the cells."""
        blocks = -(-self.grid.columns // 32), min(-(-self.grid.rows // 8), MAX_ROWS)
        self.device.launch(SOURCE, f"surface_{name}", blocks, 256, *arguments)

    def _sizes(self) -> "tuple[np.int32, np.int32]":
        return np.int32(self.grid.rows), np.int32(self.grid.columns)
