"""Runs `intersects_with` on the GPU: the kernels of `kernels.cu`, one step after the other."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.runtime import cuda

from . import Options, broad_gpu
from .cpu import FINEST
from .probe import CLUSTER

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
        both = bring(device, a if b is None else a.followed_by(b))
        limits = broad_gpu.boxes(device, both)
        split = len(a)
        shift = 0 if b is None else split
        if pairs is None:
            others = None if b is None else limits[split:]
            rows_a, rows_b = broad_gpu.pairs(device, limits[:split], others, t)
        else:
            rows_a, rows_b = (device.upload_small(rows.astype(np.int32)) for rows in pairs)
        rows_b = rows_b + np.int32(shift)
        scene = Scene(device, both, limits)
        relation, measures = scene.relate(rows_a, rows_b, t, touches=options.relations)
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
            "a_open": scene.side[rows_a] == 0,
            "b_open": scene.side[rows_b] == 0,
        }
        if here:
            return found
        return {name: device.download(values) for name, values in found.items()}


def bring(device: Any, meshes: Meshes) -> Meshes:
    """Bring meshes to the device, if they are not there."""
    arrays = meshes.vertices, meshes.faces, meshes.vertex_starts, meshes.face_starts
    if device.is_here(meshes.vertices):
        return Meshes(*(device.view(array) for array in arrays))
    return Meshes(*device.upload([np.ascontiguousarray(array) for array in arrays]))


class Scene:
    """Meshes on the device, with what their pairs need to be related.

    Parameters
    ----------
    device : spatialq.runtime.cuda.Device
    meshes : Meshes
    limits : float64[k, 6]
        The boxes of the elements.

    Attributes
    ----------
    side : int8[k]
        See `solids.describe`.
    """

    def __init__(self, device: Any, meshes: Meshes, limits: Any) -> None:
        xp = device.xp
        self.device = device
        self.meshes = meshes
        self.limits = limits
        k = len(meshes)
        self.side = xp.empty(k, np.int8)
        self.label = xp.empty(len(meshes.vertices), np.int32)
        self.parts = xp.empty(k, np.int32)
        arrays = (meshes.vertices, meshes.faces, meshes.vertex_starts, meshes.face_starts)
        self._launch(
            "describe", -(-k // WARPS), 32 * WARPS,
            *arrays, limits, k, self.side, self.label, self.parts,
        )  # fmt: skip
        sizes = xp.diff(meshes.face_starts)
        self.cluster_starts = xp.zeros(k + 1, np.int64)
        self.cluster_starts[1:] = xp.cumsum(-(-sizes // CLUSTER))
        clusters = int(self.cluster_starts[-1])
        self.clusters = xp.empty((clusters, 6))
        self._launch(
            "box_faces", -(-clusters // 128), 128,
            *arrays, self.cluster_starts, k, clusters, self.clusters,
        )  # fmt: skip
        self.most_vertices = int(xp.diff(meshes.vertex_starts).max()) if k else 0
        words = [
            *arrays, limits, self.side, self.label, self.parts, self.cluster_starts, self.clusters,
        ]  # fmt: skip
        self.words = self._words(*words)

    def relate(self, rows_a: Any, rows_b: Any, t: float, *, touches: bool) -> tuple[Any, Any]:
        """Find the relations of pairs of elements, see `narrow.relate`."""
        device, xp = self.device, self.device.xp
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
        examination = self._words(*evidence, room, count, *events)

        counts = xp.empty(n, np.int64)
        everything = -(-n // 128), 128, self.words, examination, n
        self._launch("list_tasks", *everything, 0, counts, 0, 0)
        ends = xp.cumsum(counts)
        total = int(ends[-1])
        tasks = xp.empty(total, np.int32), xp.empty(total, np.int32)
        self._launch("list_tasks", *everything, ends - counts, 0, *tasks)

        def examine(step: int) -> None:
            blocks = -(-total // WARPS), 32 * WARPS
            self._launch("examine", *blocks, self.words, examination, *tasks, total, step)

        examine(EVIDENCE)
        found = int(count[0])
        if found > room:  # seldom: once more, with room for all
            events = tuple(xp.empty(found, values.dtype) for values in events)
            count[:] = 0
            examination = self._words(*evidence, found, count, *events)
            examine(EVIDENCE)
            found = int(count[0])  # fewer: what comes after a crossing is known by now
        if touches:
            examine(CLOSEST)
        event_pair, event_key, event_kind = (values[:found] for values in events)
        order = xp.lexsort(xp.stack([event_key, event_pair.astype(np.uint64)]))
        event_starts = xp.searchsorted(event_pair[order], xp.arange(n + 1, dtype=np.int32))
        event_starts = event_starts.astype(np.int64)
        event_key, event_kind = event_key[order], event_kind[order]
        listed = self._words(event_starts, event_key, event_kind)
        chosen = xp.empty(n, np.int8)
        self._launch("choose", -(-n // 128), 128, self.words, examination, listed, n, chosen)
        chosen = xp.flatnonzero(chosen)
        # a byte a vertex for each warp that judges
        warps = max(WARPS, MAX_SCRATCH // max(self.most_vertices, 1))
        blocks = min(device.multiprocessors * BLOCKS, -(-len(chosen) // WARPS), warps // WARPS)
        scratch = xp.empty(blocks * WARPS * max(self.most_vertices, 1), np.int8)

        def judge(chosen: Any) -> None:
            self._launch(
                "judge", blocks, 32 * WARPS, self.words, examination, listed, chosen,
                len(chosen), xp.zeros(1, np.uint64), scratch, self.most_vertices,
                relation, measures,
            )  # fmt: skip

        judge(chosen)
        open_verdicts = xp.flatnonzero(ask == ASKED_LATER)
        if len(open_verdicts):
            examine(DISTANCE)
            judge(open_verdicts)
        return relation, measures

    def _launch(self, name: str, blocks: int, threads: int, *arguments: Any) -> None:
        if blocks > 0:
            self.device.launch(SOURCE, name, (blocks,), threads, *arguments)

    def _words(self, *values: Any) -> Any:
        """Make a struct of 8-byte members on the device; its arrays are the caller's to keep."""
        # What is freed here is used again only behind the kernels launched before: one stream.
        words = [
            value.view(np.int64) if isinstance(value, np.float64)
            else value if isinstance(value, int)
            else self.device.address(value)
            for value in values
        ]  # fmt: skip
        return self.device.upload_small(np.array(words, np.int64))
