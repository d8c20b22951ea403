"""Runs `intersects_with` on the GPU: the kernels of `kernels.cu`, one step after the other."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry import rtree_gpu
from spatialq.geometry.prepared_meshes_gpu import PreparedMeshes, to_device
from spatialq.runtime import cuda

from . import Options
from .cpu import FINEST

SOURCE = Path(__file__).parent / "kernels.cu"
WARPS = 4  # of a block
BLOCKS = 8  # of `judge`, a multiprocessor
EVIDENCE, DISTANCE, CLOSEST = range(3)  # passes of `examine`
ASKED_LATER = 2
MAX_SCRATCH = 1 << 30  # bytes
EVENTS = 1 << 20  # places in the list of events, at first


def run(
    a: Meshes, b: Meshes | None = None, *, options: Options, pairs: tuple[Any, Any] | None = None
) -> dict[str, Any]:
    """Find the pairs of elements that meet, and how, by the method 'exact'.

    Parameters
    ----------
    a, b : Meshes
        As for `cpu.run`; NumPy arrays, or arrays of the GPU.
    options : Options
        The broad phase is an R-tree.
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
        t = max(options.tolerance, FINEST)
        both = to_device(device, a if b is None else a.followed_by(b))
        limits = rtree_gpu.boxes(device, both)
        split = len(a)
        shift = 0 if b is None else split
        if pairs is None:
            others = None if b is None else limits[split:]
            rows_a, rows_b = rtree_gpu.pairs(device, limits[:split], others, t)
        else:
            rows_a, rows_b = (device.upload_small(rows.astype(np.int32)) for rows in pairs)
        rows_b = rows_b + np.int32(shift)
        meshes = PreparedMeshes(device, both, limits)
        relation, measures = relate_pairs(
            device, meshes, rows_a, rows_b, t, touches=options.relations
        )
        keep = device.xp.flatnonzero(relation > (0 if options.relations else 1))
        rows_a, rows_b = rows_a[keep].astype(np.int64), rows_b[keep].astype(np.int64)
        depth, distance, x, y, z = measures[keep].T
        found = {
            "a": rows_a,
            "b": rows_b - shift,
            "relation": relation[keep],
            "depth": depth,
            "distance": distance,
            "x": x,
            "y": y,
            "z": z,
            "a_open": meshes.side[rows_a] == 0,
            "b_open": meshes.side[rows_b] == 0,
        }
        if here:
            return found
        return {name: device.download(values) for name, values in found.items()}


def relate_pairs(
    device: Any, meshes: PreparedMeshes, rows_a: Any, rows_b: Any, t: float, *, touches: bool
) -> tuple[Any, Any]:
    """Find the relations of pairs of elements, see `narrow.relate`."""
    xp = device.xp
    words = _words(
        device,
        *meshes.arrays, meshes.boxes, meshes.side, meshes.label, meshes.parts,
        meshes.cluster_starts, meshes.clusters,
    )  # fmt: skip
    n = len(rows_a)
    relation = xp.zeros(n, np.int8)
    measures = xp.empty((n, 5))
    if n == 0:
        return relation, measures
    crossing, d2, closest = (device.filled(0xFF, 8 * n).view(np.uint64) for _ in range(3))
    ask = xp.empty(n, np.int8)
    evidence = (rows_a, rows_b, np.float64(t), int(touches), crossing, d2, closest, ask)
    room = max(EVENTS, 2 * n)
    events = xp.empty(room, np.int32), xp.empty(room, np.uint64), xp.empty(room, np.int32)
    count = xp.zeros(1, np.uint64)
    examination = _words(device, *evidence, room, count, *events)

    counts = xp.empty(n, np.int64)
    everything = -(-n // 128), 128, words, examination, n
    _launch(device, "list_tasks", *everything, 0, counts, 0, 0)
    ends = xp.cumsum(counts)
    total = int(ends[-1])
    tasks = xp.empty(total, np.int32), xp.empty(total, np.int32)
    _launch(device, "list_tasks", *everything, ends - counts, 0, *tasks)

    def examine(step: int) -> None:
        blocks = -(-total // WARPS), 32 * WARPS
        _launch(device, "examine", *blocks, words, examination, *tasks, total, step)

    examine(EVIDENCE)
    found = int(count[0])
    if found > room:  # seldom: once more, with room for all
        events = tuple(xp.empty(found, values.dtype) for values in events)
        count[:] = 0
        examination = _words(device, *evidence, found, count, *events)
        examine(EVIDENCE)
        found = int(count[0])  # fewer: what comes after a crossing is known by now
    if touches:
        examine(CLOSEST)
    event_pair, event_key, event_kind = (values[:found] for values in events)
    order = xp.lexsort(xp.stack([event_key, event_pair.astype(np.uint64)]))
    event_starts = xp.searchsorted(event_pair[order], xp.arange(n + 1, dtype=np.int32))
    event_starts = event_starts.astype(np.int64)
    event_key, event_kind = event_key[order], event_kind[order]
    listed = _words(device, event_starts, event_key, event_kind)
    chosen = xp.empty(n, np.int8)
    _launch(device, "choose", -(-n // 128), 128, words, examination, listed, n, chosen)
    chosen = xp.flatnonzero(chosen)
    # a byte a vertex for each warp that judges
    warps = max(WARPS, MAX_SCRATCH // max(meshes.max_vertices, 1))
    blocks = min(device.multiprocessors * BLOCKS, -(-len(chosen) // WARPS), warps // WARPS)
    scratch = xp.empty(blocks * WARPS * max(meshes.max_vertices, 1), np.int8)

    def judge(chosen: Any) -> None:
        _launch(
            device, "judge", blocks, 32 * WARPS, words, examination, listed, chosen,
            len(chosen), xp.zeros(1, np.uint64), scratch, meshes.max_vertices,
            relation, measures,
        )  # fmt: skip

    judge(chosen)
    open_verdicts = xp.flatnonzero(ask == ASKED_LATER)
    if len(open_verdicts):
        examine(DISTANCE)
        judge(open_verdicts)
    return relation, measures


def _launch(device: Any, name: str, blocks: int, threads: int, *arguments: Any) -> None:
    if blocks > 0:
        device.launch(SOURCE, name, (blocks,), threads, *arguments)


def _words(device: Any, *values: Any) -> Any:
    """Make a struct of 8-byte members on the device; its arrays are the caller's to keep."""
    # What is freed here is used again only behind the kernels launched before: one stream.
    words = [
        value.view(np.int64) if isinstance(value, np.float64)
        else value if isinstance(value, int)
        else device.address(value)
        for value in values
    ]  # fmt: skip
    return device.upload_small(np.array(words, np.int64))
