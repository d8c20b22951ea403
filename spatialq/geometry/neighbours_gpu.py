"""The neighbours of points on the GPU: the tree of neighbours.py, and launches of searches in it.

The searches themselves are functions of `neighbours.cuh`, which the kernels that use neighbours
include: what is found is used at once, and no lists of it are kept.
"""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.points import all_finite, in_one_memory, not_finite
from spatialq.geometry.neighbours import levels_of
from spatialq.runtime import cuda

SOURCE = Path(__file__).with_name("neighbours.cu")
THREADS = 128
RESIDENT = 2048  # threads of a multiprocessor at once
LISTS = 1 << 28  # bytes for the lists of nearest points, of which each thread has one
ENTRY = 12  # bytes of one in such a list


def finite_points(
    device: cuda.Device, function: str, x: Any, y: Any, z: Any, point_id: Any
) -> tuple[list[Any], bool]:
    """Bring the points that a function was given to the device.

    Returns
    -------
    xyz : three of float64[n], on the device, contiguous
    was_there : bool
        Whether the arrays were on the device before.

    Raises
    ------
    ValueError
        If coordinates are not finite, or only some of the arrays are on the device.
    """
    was_there = in_one_memory(device, function, (x, y, z, point_id))
    if was_there:
        xyz = [device.xp.ascontiguousarray(device.view(each)) for each in (x, y, z)]
    else:
        xyz = device.upload([np.ascontiguousarray(each, np.float64) for each in (x, y, z)])
    if not all_finite(*xyz):
        raise ValueError(not_finite(function, x, y, z, point_id))
    return xyz, was_there


class NeighboursOnGpu:
    """A search among points, on a device.

    Parameters
    ----------
    device : Device
    x, y, z : float64[n], on the device, contiguous
        Finite. There are fewer than 2^31, more than which no GPU has the memory for.

    Attributes
    ----------
    points : float64[n, 3]
    order : int32[n]
        As those of `neighbours.Neighbours`, to the bit; on the device.
    """

    def __init__(self, device: cuda.Device, x: Any, y: Any, z: Any) -> None:
        xp, n = device.xp, len(x)
        self.device, self.levels = device, levels_of(n)
        cells = (2 << self.levels) - 1
        self.points, self.order = xp.empty((n, 3)), xp.empty(n, np.int32)
        self.boxes, self.lowest = xp.empty((cells, 6)), xp.empty(cells, np.int32)
        if n == 0:
            return
        lists = xp.empty((3, n), np.int32)
        keys = xp.empty(n, np.uint64)
        for each, values in zip(lists, (x, y, z), strict=True):
            _launch(device, "keys", n, values, n, keys)
            each[...] = xp.argsort(keys, kind="stable")
        del keys
        divided, flags = xp.empty((3, n), np.int32), xp.empty(3 * n, np.int32)
        behind, axes = xp.empty(n, np.uint8), xp.empty(1 << self.levels, np.int8)
        for level in range(self.levels + 1):
            _launch(device, "cells", 1 << level, x, y, z, lists, n, level, self.boxes, axes)
            if level < self.levels:
                _launch(device, "sides", n, lists, n, level, axes, behind)
                _launch(device, "flags", 3 * n, lists, n, behind, flags)
                totals = xp.cumsum(flags, dtype=np.int32)
                _launch(device, "divide", 3 * n, lists, n, level, totals, divided)
                lists, divided = divided, lists
        leaves = 1 << self.levels
        _launch(device, "leaves", leaves, lists, n, self.levels, self.order, self.lowest)
        for level in range(self.levels - 1, -1, -1):
            _launch(device, "lowest", 1 << level, level, self.lowest)
        _launch(device, "points", n, x, y, z, self.order, n, self.points)

    @property
    def tree(self) -> tuple[Any, ...]:
        """What kernels take for a `Tree` of neighbours.cuh."""
        return self.points, self.order, self.boxes, self.lowest, len(self.order), self.levels

    def launch(self, source: Path, kernel: str, queries: int, *arguments: Any) -> None:
        """Launch a kernel with the tree and a thread for each query, if there is any."""
        if queries:
            blocks = (-(-queries // THREADS),)
            self.device.launch(source, kernel, blocks, THREADS, *self.tree, *arguments)

    def launch_nearest(
        self, source: Path, kernel: str, queries: int, k: int, *arguments: Any
    ) -> None:
        """Launch a kernel with the tree and a list of k nearest points for each of its threads.

        It goes through the queries in strides of the grid, and takes the tree, k, the lists of
        squared distances and of places, and the arguments.
        """
        k = min(k, len(self.order))
        if not queries:
            return
        most = min(self.device.multiprocessors * RESIDENT, LISTS // (ENTRY * max(k, 1)))
        blocks = max(1, min(-(-queries // THREADS), most // THREADS))
        xp, threads = self.device.xp, blocks * THREADS
        lists = xp.empty((k, threads)), xp.empty((k, threads), np.int32)
        self.device.launch(source, kernel, (blocks,), THREADS, *self.tree, k, *lists, *arguments)


def _launch(device: cuda.Device, name: str, threads: int, *arguments: Any) -> None:
    blocks = (-(-threads // THREADS),)
    device.launch(SOURCE, f"neighbours_{name}", blocks, THREADS, *arguments)
