"""`points_within` on the GPU: the polygons are indexed here, the points searched there."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.points import all_finite, in_one_memory, not_finite, read_only, to_host
from spatialq.data.polygons import Polygons
from spatialq.data.tiles import runs_of
from spatialq.geometry.polygon_index import PolygonIndex
from spatialq.runtime import cuda, progress

from . import Options
from .cpu import COLUMNS, joined

SOURCE = Path(__file__).parent / "kernels.cu"
THREADS, WARP = 256, 32


def run(
    x: Any, y: Any, point_id: Any, polygons: Polygons, options: Options, tiles: int = 1
) -> dict[str, Any]:
    """Find the polygons that points are in.

    Parameters
    ----------
    x, y : float64[n]
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n] or None
        Where the coordinates are; None for 0, 1, 2 ...
    polygons : Polygons
        In the coordinate reference system of the points, in the memory of the host.
    options : Options
    tiles : int
        Runs that points of the host are divided into, of which one at a time is on the device; the
        result is the same.

    Returns
    -------
    dict of arrays
        As from `cpu.run`, to the bit, where the coordinates are.

    Raises
    ------
    ValueError
        As from `cpu.run`.
    """
    device = cuda.device()
    with device.use():
        progress.stage("polygons", 0.4)
        here = in_one_memory(device, options.function, (x, y, point_id))
        if here:
            x, y = (device.xp.ascontiguousarray(device.view(each)) for each in (x, y))
            point_id = None if point_id is None else device.view(point_id)
        if not all_finite(x, y):
            raise ValueError(not_finite(options.function, x, y, None, point_id))
        search = _Search(device, PolygonIndex.kept(polygons, options.function))
        progress.stage("points", 1.0)
        if here:
            ids = None if point_id is None else device.xp.ascontiguousarray(point_id)
            return dict(zip(COLUMNS, search.pairs(x, y, ids, 0), strict=True))
        cloud = [read_only(each) for each in (x, y, point_id) if each is not None]
        found = []
        for run_of in runs_of(len(x), tiles):
            px, py, *ids = device.upload([each[run_of] for each in cloud])
            there = search.pairs(px, py, ids[0] if ids else None, run_of.start)
            found.append([to_host(device, each) for each in there])
        found = found or [[np.empty(0, np.int64) for _ in COLUMNS]]
        return {name: joined([each[k] for each in found]) for k, name in enumerate(COLUMNS)}


class _Search:
    """The polygons on a device."""

    def __init__(self, device: cuda.Device, index: PolygonIndex) -> None:
        self.device = device
        grid, nx, ny, *more = index.of_kernel
        box, grid, *more = device.upload([index.box, grid, *more])
        self.arguments = (box, grid, int(nx), int(ny), *more)

    def pairs(self, x: Any, y: Any, ids: Any, position: int) -> tuple[Any, Any]:
        """Give the columns of the pairs, on the device.

        Parameters
        ----------
        x, y : float64[n], on the device
        ids : int64[n] or None, on the device
            None where the ids are the positions, the first of which is `position`.
        """
        device, n = self.device, len(x)
        blocks = (-(-n // THREADS),)
        cloud = (x, y, n, *self.arguments, device.xp.empty(n, np.int32))
        counts = device.xp.empty(blocks[0] * THREADS // WARP, np.int64)
        if n:
            device.launch(SOURCE, "within_count", blocks, THREADS, *cloud, counts)
        ends = device.xp.cumsum(counts)
        found = int(ends[-1]) if n else 0
        point_id, polygon_id = (device.xp.empty(found, np.int64) for _ in COLUMNS)
        if found:
            device.launch(
                SOURCE, "within_write", blocks, THREADS, *cloud, ends - counts,
                0 if ids is None else ids, position, point_id, polygon_id,
            )  # fmt: skip
        return point_id, polygon_id
