"""`classify_noise` on the GPU."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.points import where_they_are
from spatialq.data.strays import strays_of, values_at
from spatialq.geometry.neighbours_gpu import THREADS, NeighboursOnGpu, finite_points
from spatialq.runtime import cuda, progress

from . import NEVER_CLASSIFIED, Options
from .limit import EXPONENTS, limit_of, whole

SOURCE = Path(__file__).parent / "kernels.cu"
RUN = 256
"""Distances that a thread adds up."""


def run(
    x: Any, y: Any, z: Any, point_id: Any, options: Options, classification: Any = None
) -> dict[str, Any]:
    """Find the points of a cloud that are noise, low or high.

    Parameters
    ----------
    x, y, z : float64[n]
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n] or None
        Where the coordinates are; None for 0, 1, 2 ...
    options : Options
    classification : uint8[n] or None
        Of the points, masked where there is none; in either memory.

    Returns
    -------
    dict of arrays
        As from `cpu.run`, to the bit, where the coordinates are.

    Raises
    ------
    ValueError
        If coordinates are not finite, or only some of the arrays are on the GPU.
    """
    device = cuda.device()
    with device.use():
        progress.stage("order", 0.5)
        there, here = finite_points(device, options.function, x, y, z, point_id)
        n = len(there[0])
        classes = _classes(device, classification, n)
        given = there if here else (x, y, z)
        stray = strays_of(given) if n else None
        if stray is None:
            _classify(device, options, there, classes)
        else:
            rows = _others(device, stray[0], n)
            some = classes[rows]
            near = _classify(device, options, [values[rows] for values in there], some)
            classes[rows] = some
            far = np.column_stack([values_at(values, stray[0]) for values in given])
            far, rows = device.upload([far, stray[0]])
            near.launch_nearest(
                SOURCE, "classify_noise_strays", len(rows), options.mean_k, far, rows, len(rows),
                classes,
            )  # fmt: skip
        return where_they_are(device, point_id, n, {"classification": classes}, here=here)


def _classify(device: cuda.Device, options: Options, there: Any, classes: Any) -> NeighboursOnGpu:
    """Find the noise among points that are not stray; give the search among them."""
    xp, n = device.xp, len(there[0])
    near = NeighboursOnGpu(device, *there)
    progress.stage("noise", 1.0)
    k = options.mean_k + 1  # the point itself included
    if options.method == "isolated":
        near.launch_nearest(
            SOURCE, "classify_noise_isolated", n, k, np.float64(options.voxel_size),
            options.max_points, classes,
        )  # fmt: skip
        return near
    distance, level = xp.empty(n), xp.empty(n, np.uint8)
    near.launch_nearest(SOURCE, "classify_noise_distances", n, k, distance, level)

    def total(centre: float, power: int) -> int:
        sums = xp.zeros((2, EXPONENTS), np.uint64)
        _launch(device, "add", -(-n // RUN), distance, n, np.float64(centre), power, *sums)
        return whole(*device.download(sums))

    if n > 1:
        limit = limit_of(n, options.multiplier, total)
        _launch(device, "mark", n, distance, n, np.float64(limit), level, classes)
    return near


def _classes(device: cuda.Device, given: Any, n: int) -> Any:
    """Copy the classes of points to the device, 0 where there are none."""
    if given is None:
        return device.filled(NEVER_CLASSIFIED, n)
    if device.is_here(given):
        return device.xp.array(device.view(given), np.uint8)
    return device.upload([np.ascontiguousarray(np.ma.filled(given, NEVER_CLASSIFIED), np.uint8)])[0]


def _others(device: cuda.Device, rows: Any, n: int) -> Any:
    """Give, on the device, the rows of n points that are not among some."""
    others = np.ones(n, np.bool_)
    others[rows] = False
    return device.xp.flatnonzero(device.upload([others])[0])


def _launch(device: cuda.Device, name: str, threads: int, *arguments: Any) -> None:
    blocks = (-(-threads // THREADS),)
    device.launch(SOURCE, f"classify_noise_{name}", blocks, THREADS, *arguments)
