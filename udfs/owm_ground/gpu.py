"""`owm_ground` on the GPU: one pass bins the points, then minima slide over the cells."""

from typing import Any

import numpy as np

from spatialq.data.points import all_finite, not_finite, to_device
from spatialq.data.tiles import Strip
from spatialq.functions.declaration import Size
from spatialq.runtime import cuda, progress
from spatialq.runtime.arrays import Bools

from . import Options, cost, runs, tiled
from .layout import lay_out
from .result import result_of
from .search import SOURCE, DeviceCells, occupied, search
from .windows import Box, SlotAxis, cut_axes

MAX_POINTS = 1 << 32  # a position takes at most half of a key


def run(
    x: Any, y: Any, z: Any, point_id: Any, options: Options, box: Box | None = None,
    strip: Strip | None = None, tiles: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """Find the lowest points of overlapping windows; the same as `cpu.run`.

    Parameters
    ----------
    x, y, z : float64[n]
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n] or None
        Unique, in the same memory as the coordinates; None for 0, 1, 2 ...
    options : Options
    box : Box, optional
        The extent of the points, if it is known (from a LAS header, for example): saves a pass. By
        default that of `options.bounds`, if given.
    strip : Strip, optional
        As for `cpu.run`.
    tiles : int
        Runs of points that the cloud, of NumPy arrays, is divided into, so that only one at a time
        is on the device, beside the cells; strips of it where the cells would take more than
        those. The result is the same.

    Returns
    -------
    dict of columns
        As from `cpu.run`, in the memory of the coordinates.

    Raises
    ------
    ValueError
        As from `cpu.run`; or if a point lies outside of `box`.
    """
    if tiles > 1:
        return _in_tiles((x, y, z, point_id), options, tiles, box)
    device = cuda.device()
    with device.use():
        cloud = x, y, z, point_id
        progress.stage("transfer", 0.8)
        there, here = to_device(device, options.function, cloud)
        if x.shape[0] == 0:
            none = np.empty(0, np.int64)
            return result_of((x, y, z, none), none, none, none, none)
        progress.stage("seeds", 1.0)
        try:
            positions, hits, n_seeds = find(device, there, options, box, strip)
        except NotFiniteError:
            raise ValueError(not_finite(options.function, *cloud)) from None
        if here:
            cloud = there
        else:
            positions, hits = device.download(positions), device.download(hits)
        return result_of(
            cloud, positions[:n_seeds], hits[:n_seeds], positions[n_seeds:], hits[n_seeds:]
        )


def _in_tiles(
    cloud: tuple[Any, ...], options: Options, tiles: int, box: Box | None
) -> dict[str, Any]:
    """Find the seeds in runs of points or in strips, whichever takes less memory."""
    x, y, z, point_id = cloud
    n = x.size
    if n == 0:
        return run(x, y, z, point_id, options, box)
    if box is None:
        box = tiled.extent_of(cloud, options)
    size = Size(n, (box.x_high - box.x_low, box.y_high - box.y_low, 0.0))
    if n > MAX_POINTS or not cost.keeps_cells(size, options, tiles):
        return tiled.in_tiles(run, cloud, options, tiles, box)
    device = cuda.device()
    with device.use():
        return runs.in_runs(device, cloud, options, tiles, box)


class NotFiniteError(Exception):
    """Some points have a coordinate that is not finite."""


def find(
    device: cuda.Device,
    cloud: tuple[Any, ...],
    options: Options,
    box: Box | None,
    strip: Strip | None = None,
) -> tuple[Any, Any, int]:
    """Find the points of x, y, z, point_id (or None) on the device.

    Returns
    -------
    positions, hits : device arrays, int64[m], int32[m]
        Seeds first, then filled points, each by ascending position.
    n_seeds : int

    Raises
    ------
    NotFiniteError
        If a coordinate is not finite.
    ValueError
        If a point lies outside of `box`, or the windows are too many.
    """
    x, y, z, _ = cloud
    if x.size > MAX_POINTS:
        message = (
            f"{options.function}: the GPU takes at most {MAX_POINTS} points at once, got {x.size}"
        )
        raise ValueError(message)
    if box is None and options.bounds is not None:
        box = Box.of(options.bounds)
    there = _extent(device, x, y)
    grid = _grid(device, (x, y), options, box or there, there, strip)
    if grid is None:
        if not all_finite(z):
            raise NotFiniteError
        none = device.xp.empty(0, np.int64)
        return none, none, 0
    found = search(device, grid, cloud)
    n_bad, _, n_seeds, n_points = device.download(found.totals).tolist()
    if n_bad:
        if all_finite(x, y, z):
            message = f"{options.function}: box must hold all points, got some outside of {box}"
            raise ValueError(message)
        raise NotFiniteError
    return found.positions[:n_points], found.hits[:n_points], n_seeds


def _extent(device: cuda.Device, x: Any, y: Any) -> Box:
    low = device.filled(0xFF, 32).view(np.uint64)
    tally = device.filled(0, 16).view(np.uint64)
    blocks = min(-(-x.size // 1024), device.multiprocessors * 8)
    device.launch(SOURCE, "owm_extent", (blocks,), 256, x, y, x.size, low, tally)
    if device.download(tally)[0]:
        raise NotFiniteError
    x_low, y_low, x_high, y_high = cuda.from_ordered(device.download(low) ^ COMPLEMENTS)
    return Box(x_low, x_high, y_low, y_high)


COMPLEMENTS = np.array([0, 0, 2**64 - 1, 2**64 - 1], np.uint64)  # maxima are complements


_grids: dict[Any, DeviceCells] = {}
MAX_GRIDS = 8  # cached for the next clouds


def _grid(
    device: cuda.Device,
    xy: tuple[Any, Any],
    options: Options,
    box: Box,
    there: Box,
    strip: Strip | None,
) -> DeviceCells | None:
    """Cut the axes and copy them to the device; None if no cell has a slot."""
    n = xy[0].size
    key = device, box, there, n, options
    if strip is None and key in _grids:
        return _grids[key]
    looked_at_points = False

    def used(axes: tuple[SlotAxis, SlotAxis]) -> tuple[Bools, Bools]:
        nonlocal looked_at_points
        looked_at_points = True
        memory = lay_out(device, axes, options, box, n)
        return occupied(device, memory, axes, [xy])

    columns, rows = cut_axes(box, n, options, used, strip, there)
    if 0 in (columns.n_slots, rows.n_slots):
        return None
    grid = DeviceCells(columns, rows, lay_out(device, (columns, rows), options, box, n))
    if strip is None and not looked_at_points:
        while len(_grids) >= MAX_GRIDS:
            _grids.pop(next(iter(_grids)), None)
        _grids[key] = grid
    return grid
