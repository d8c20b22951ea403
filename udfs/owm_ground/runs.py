"""`owm_ground` on the GPU in runs of points: one at a time, beside the cells of the whole.

What a cell keeps of the runs so far is the number of its points, and its lowest one. These lowest
points are the cloud in which seeds are found at the end: nothing else of the points counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spatialq.data.points import all_finite, ascends, not_finite
from spatialq.data.tiles import runs_of
from spatialq.runtime import cuda, progress
from spatialq.runtime.arrays import Array, Bools, Floats, Int32s, Ints

from . import Options
from .layout import lay_out
from .result import result_of
from .search import CELL_BYTES, SOURCE, DeviceCells, Marks, cells_of, occupied, seeds_of
from .windows import Box, SlotAxis, cut_axes, default_min_points

MERGE = 256  # threads per block of `owm_merge`
BLOCKS = 16  # such blocks per multiprocessor


def in_runs(
    device: cuda.Device, cloud: tuple[Any, ...], options: Options, tiles: int, box: Box
) -> dict[str, Any]:
    """Find the seeds of a cloud in so many runs of its points.

    Parameters
    ----------
    device : Device
    cloud : tuple of x, y, z, point_id
        NumPy arrays of at least one point, at most `gpu.MAX_POINTS`; or None for the ids.
    options : Options
    tiles : int
    box : Box
        The extent of the cloud, or one around it.

    Returns
    -------
    dict of columns
        As from `cpu.run` for the whole cloud, to the bit.

    Raises
    ------
    ValueError
        If a coordinate is not finite, a point lies outside of `box`, or the windows are too many.
    """
    x, y, z, point_id = cloud
    host = [np.ascontiguousarray(values, np.float64) for values in (x, y, z)]
    if point_id is not None and not ascends(point_id):  # else the order of positions is theirs
        host.append(np.ascontiguousarray(point_id))
    n = host[0].size
    runs = _Runs(device, host, runs_of(n, tiles))
    enough = options.min_points or default_min_points(n, box, options.window_size)
    options = replace(options, min_points=enough)
    axes = cut_axes(box, n, options, lambda axes: runs.occupied(axes, options, box))
    n_cells = axes[0].n_slots * axes[1].n_slots
    if n_cells == 0:
        if not all_finite(x, y, z):
            raise ValueError(not_finite(options.function, *cloud))
        none = np.empty(0, np.int64)
        return result_of((x, y, z, none), none, none, none, none)
    memory = lay_out(device, axes, options, box, max(runs.longest, n_cells))
    cells = _Cells(device, DeviceCells(*axes, memory))
    for k, (first, there) in enumerate(runs, 1):
        progress.stage(f"tile {k} of {len(runs.parts)}", k / len(runs.parts))
        cells.add(first, there)
        there.clear()  # before the next ones are made
    if cells.n_bad():
        if all_finite(x, y, z):
            message = f"{options.function}: box must hold all points, got some outside of {box}"
            raise ValueError(message)
        raise ValueError(not_finite(options.function, *cloud))
    found = cells.seeds()
    rows = np.arange(found.ids.size)
    seeds, filled = rows[: found.n_seeds], rows[found.n_seeds :]
    ids = found.ids if point_id is None or len(host) > 3 else point_id[found.ids]
    lowest = (*found.coordinates, ids)
    return result_of(lowest, seeds, found.hits[seeds], filled, found.hits[filled])


@dataclass(frozen=True)
class _Runs:
    """Columns of points in main memory, of which runs go to the device one after the other."""

    device: cuda.Device
    host: list[Array]
    parts: list[slice]

    @property
    def longest(self) -> int:
        return int(self.parts[0].stop)

    def __iter__(self) -> "Iterator[tuple[int, list[Any]]]":
        """Give the position of the first point, and a list that whoever got it must clear."""
        for part in self.parts:
            yield part.start, self.device.upload([values[part] for values in self.host])

    def occupied(
        self, axes: tuple[SlotAxis, SlotAxis], options: Options, box: Box
    ) -> tuple[Bools, Bools]:
        """Find out which places of both axes have points."""
        memory = lay_out(self.device, axes, options, box, self.longest)
        columns = _Runs(self.device, self.host[:2], self.parts)
        return occupied(self.device, memory, axes, ((x, y) for _, (x, y) in columns))


class _Cells:
    """The cells of the whole on the device, and their lowest points so far."""

    def __init__(self, device: cuda.Device, grid: DeviceCells) -> None:
        self.device, self.grid = device, grid
        self.table = device.filled(0xFF, grid.size * CELL_BYTES)
        kinds = np.float64, np.float64, np.float64, np.int64
        self.lowest = tuple(device.xp.empty(grid.size, kind) for kind in kinds)
        self.rejected = device.filled(0, 16).view(np.uint64)

    def add(self, first: int, points: list[Any]) -> None:
        """Add a run of points: x, y, z, and their ids if these are not the positions."""
        cloud, size = (*points, None)[:4], self.grid.size
        table = cells_of(self.device, self.grid, cloud, self.rejected)
        blocks = min(-(-size // MERGE), self.device.multiprocessors * BLOCKS)
        ids = points[3] if len(points) > 3 else 0
        self.device.launch(
            SOURCE, "owm_merge", (blocks,), MERGE, self.grid.memory, *points[:3], ids, first,
            table, size, self.table, *self.lowest,
        )  # fmt: skip

    def n_bad(self) -> int:
        """Count the points that are not finite, or outside of the extent."""
        return int(self.device.download(self.rejected)[0])

    def seeds(self) -> "_Seeds":
        """Find the seeds among the lowest points."""
        device, marks = self.device, Marks(self.device, self.grid.size)
        found = seeds_of(device, self.grid, self.lowest, self.table, marks)
        _, _, n_seeds, n_points = device.download(found.totals).tolist()
        at, hits = found.positions[:n_points], device.download(found.hits[:n_points])
        *coordinates, ids = (device.download(values[at]) for values in self.lowest)
        return _Seeds(coordinates, ids, hits, n_seeds)


@dataclass(frozen=True)
class _Seeds:
    """Seeds, then filled points, in main memory."""

    coordinates: list[Floats]
    ids: Ints
    """Positions where the device has no ids."""
    hits: Int32s
    n_seeds: int
