"""`distance` on the GPU: near boxes, then one warp per pair."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry import rtree_gpu
from spatialq.geometry.prepared_meshes_gpu import PreparedMeshes, to_device
from spatialq.runtime import cuda, progress

from . import Options
from .candidates import box_distance, candidates, table
from .search import BEYOND, ROUNDING

SOURCE = Path(__file__).parent / "kernels.cu"
WARPS = 4  # of a block


def run(
    a: Meshes, b: Meshes | None = None, *, options: Options, pairs: tuple[Any, Any] | None = None
) -> dict[str, Any]:
    """Measure how far elements are from each other, and where.

    Parameters
    ----------
    a, b : Meshes
        As for `cpu.run`; NumPy arrays, or arrays of the GPU.
    options : Options
    pairs : int64[], int64[], optional
        As for `cpu.run`.

    Returns
    -------
    dict of arrays
        As from `cpu.run`, to the bit, where the meshes are.
    """
    device = cuda.device()
    with device.use():
        here = device.is_here(a.vertices)
        progress.stage("near pairs", 0.3)
        both = to_device(device, a if b is None else a.followed_by(b))
        limits = rtree_gpu.boxes(device, both)
        split = len(a)
        shift = 0 if b is None else split
        if pairs is not None:
            rows_a, rows_b = pairs[0], pairs[1] + shift
        elif options.k is None and options.max_distance is not None:
            distance = box_distance(device.download(limits), options.max_distance)
            others = None if b is None else limits[split:]
            found = rtree_gpu.pairs(device, limits[:split], others, distance)
            rows_a, rows_b = (device.download(rows).astype(np.int64) for rows in found)
            rows_b += shift
        else:
            there = device.download(limits)
            rows_a, rows_b = candidates(
                there[:split], None if b is None else there[split:], options
            )
            rows_b = rows_b + shift
        progress.stage("meshes", 0.5)
        meshes = PreparedMeshes(device, both, limits)
        limit = np.inf if options.max_distance is None else options.max_distance
        progress.stage("distances", 1.0)
        measures = device.xp.empty((len(rows_a), 7))
        if len(rows_a):
            device.launch(
                SOURCE, "distance_measure", (-(-len(rows_a) // WARPS),), 32 * WARPS,
                *device.upload([rows_a, rows_b]), len(rows_a),
                np.float64(limit), np.float64(ROUNDING), np.float64(BEYOND),
                *both.arrays, limits, meshes.cluster_starts, meshes.clusters,
                meshes.side, meshes.label, measures,
            )  # fmt: skip
        columns = table(rows_a, rows_b - shift, device.download(measures), options)
        if not here:
            return columns
        return {name: device.upload_small(values) for name, values in columns.items()}
