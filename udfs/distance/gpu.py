"""`distance` on the GPU: near boxes, then one warp per pair."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry import rtree_gpu
from spatialq.geometry.indexed_meshes import PairTile, boxes_of, tiles_of_pairs, tree_of
from spatialq.geometry.prepared_meshes_gpu import PreparedMeshes, to_device
from spatialq.runtime import cuda, gpus, progress

from . import Options
from .candidates import box_distance, candidates, table
from .search import BEYOND, ROUNDING

SOURCE = Path(__file__).parent / "kernels.cu"
WARPS = 4  # of a block


def run(
    a: Meshes, b: Meshes | None = None, *, options: Options, pairs: tuple[Any, Any] | None = None,
    tiles: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """Measure how far elements are from each other, and where.

    Parameters
    ----------
    a, b : Meshes
        As for `cpu.run`; NumPy arrays, or arrays of the GPU.
    options : Options
    pairs : int64[], int64[], optional
        As for `cpu.run`.
    tiles : int
        Parts of the pairs of NumPy meshes, of whose elements only those of one part at a time are
        on the device; the result is the same.

    Returns
    -------
    dict of arrays
        As from `cpu.run`, to the bit, where the meshes are.
    """
    device = cuda.device()
    with device.use():
        if tiles > 1:
            return _in_tiles(a, b, options, pairs, tiles)
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
        progress.stage("distances", 1.0)
        measures = _measure(device, both, limits, rows_a, rows_b, options)
        columns = table(rows_a, rows_b - shift, measures, options)
        if not here:
            return columns
        return {name: device.upload_small(values) for name, values in columns.items()}


def _measure(
    device: cuda.Device, meshes: Meshes, limits: Any, rows_a: Any, rows_b: Any, options: Options
) -> Any:
    """Measure pairs of meshes on the device: float64[n, 7] in main memory, see `search`."""
    prepared = PreparedMeshes(device, meshes, limits)
    limit = np.inf if options.max_distance is None else options.max_distance
    measures = device.xp.empty((len(rows_a), 7))
    if len(rows_a):
        device.launch(
            SOURCE, "distance_measure", (-(-len(rows_a) // WARPS),), 32 * WARPS,
            *device.upload([rows_a, rows_b]), len(rows_a),
            np.float64(limit), np.float64(ROUNDING), np.float64(BEYOND),
            *meshes.arrays, limits, prepared.cluster_starts, prepared.clusters,
            prepared.side, prepared.label, measures,
        )  # fmt: skip
    return device.download(measures)


def _in_tiles(
    a: Meshes, b: Meshes | None, options: Options, pairs: Any, tiles: int
) -> dict[str, Any]:
    """Measure the pairs in parts, each with its elements on one of the devices of the call."""
    progress.stage("near pairs", 0.2)
    boxes_a, boxes_b = boxes_of(a), None if b is None else boxes_of(b)
    rows_a, rows_b = pairs or candidates(boxes_a, boxes_b, options, tree_of(a), tree_of(b))
    progress.stage("distances", 1.0)
    measures = np.empty((len(rows_a), 7))

    def measure(tile: PairTile) -> tuple[Any, Any]:
        device = cuda.device()
        there = to_device(device, tile.meshes)
        limits = rtree_gpu.boxes(device, there)
        return tile.at, _measure(device, there, limits, tile.rows_a, tile.rows_b, options)

    for at, found in gpus.each(measure, tiles_of_pairs(a, b, boxes_a, rows_a, rows_b, tiles)):
        measures[at] = found
    return table(rows_a, rows_b, measures, options)
