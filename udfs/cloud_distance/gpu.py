"""`cloud_distance` on the GPU: the nearest point of the reference, or M3C2."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.cloud import Cloud
from spatialq.data.points import normals_to_device, where_they_are
from spatialq.geometry.neighbours_gpu import NeighboursOnGpu, finite_points
from spatialq.runtime import cuda, progress

from . import COUNTS, LEAST, NO_POINT, VALUES, Z_95, Options

SOURCE = Path(__file__).parent / "kernels.cu"


def run(
    x: Any, y: Any, z: Any, point_id: Any, reference: Cloud, options: Options,
    nx: Any = None, ny: Any = None, nz: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Measure how far the points of a cloud are from another one.

    Parameters
    ----------
    x, y, z : float64[n]
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n] or None
        Where the coordinates are; None for 0, 1, 2 ...
    reference : Cloud
        The other one, in the memory of the host.
    options : Options
        Lengths in the unit of the coordinates.
    nx, ny, nz : float64[n] or None
        As for `cpu.run`; in either memory.

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
        near = _search(device, options, reference)
        there, here = finite_points(device, options.function, x, y, z, point_id)
        n, xp = len(there[0]), device.xp
        nearest = xp.full(n, NO_POINT, np.int64)
        counts = xp.zeros((len(COUNTS), n), np.int32)
        values = xp.full((len(VALUES), n), np.nan)
        if options.method == "nearest":
            progress.stage("distances", 1.0)
            reach = np.inf if options.max_distance is None else options.max_distance
            if len(reference):
                near.launch(
                    SOURCE, "cloud_distance_nearest", n, *there, n, np.float64(reach * reach),
                    nearest, values,
                )  # fmt: skip
        else:
            own = NeighboursOnGpu(device, *there)
            progress.stage("distances", 1.0)
            lengths = (
                options.normal_radius, options.radius, options.reach, options.registration_error,
            )  # fmt: skip
            own.launch(
                SOURCE, "cloud_distance_m3c2", n, *near.tree,
                *(normals_to_device(device, nx, ny, nz) or (0, 0, 0)), *map(np.float64, lengths),
                LEAST, np.float64(Z_95), counts, values,
            )  # fmt: skip
        columns = {
            "reference_id": nearest,
            **dict(zip(COUNTS, counts, strict=True)),
            **dict(zip(VALUES, values, strict=True)),
        }
        return where_they_are(device, point_id, n, columns, here=here)


def _search(device: cuda.Device, options: Options, reference: Cloud) -> NeighboursOnGpu:
    """Make a search among the points of the reference, which themselves do not stay."""
    others = (reference.x, reference.y, reference.z, reference.point_id)
    there, _ = finite_points(device, f"{options.function}: reference", *others)
    return NeighboursOnGpu(device, *there)
