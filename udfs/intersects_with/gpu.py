"""Runs `intersects_with` on the GPU: the kernels of `kernels.cu`, one step after the other."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry import boxes, broad_phase, prepared_meshes, rtree_gpu
from spatialq.geometry.indexed_meshes import PairTile, boxes_of, tiles_of_pairs, tree_of
from spatialq.geometry.prepared_meshes_gpu import PreparedMeshes, to_device
from spatialq.runtime import cuda, gpus, progress

from . import MEASURES, Options, common_parts, depths
from .cells import STACK
from .cpu import different
from .depths import MIN_TOLERANCE

SOURCE = Path(__file__).parent / "kernels.cu"
SEARCH = SOURCE.with_name("penetration.cu")
WARPS = 4  # of a block
BLOCKS = 8  # of `relate` per multiprocessor
CLASSIFY, DISTANCE, CLOSEST = range(3)  # passes of `compare_triangles`
DEFERRED = 2  # a pair whose distance `relate` needs after all
MAX_SCRATCH = 1 << 30  # bytes
MAX_CELLS = 2_000  # of a pair whose penetration is searched on the GPU; with more, on the host
CELL_BYTES = 72
CONTACTS = 1 << 20  # places in the list of contacts, at first


def run(
    a: Meshes, b: Meshes | None = None, *, options: Options, pairs: tuple[Any, Any] | None = None,
    identities: tuple[Any, Any] | None = None, tiles: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """Find the pairs of elements that meet, and how, by the method 'exact'.

    Parameters
    ----------
    a, b : Meshes
        As for `cpu.run`; NumPy arrays, or arrays of the GPU.
    options : Options
        The broad phase is an R-tree.
    pairs : int64[], int64[], optional
        As for `cpu.run`.
    identities : uint64[], uint64[], optional
        As for `cpu.run`, in the memory of the host.
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
            found = _in_tiles(a, b, options, pairs, identities, tiles)
            return found | common_parts.columns(found, a, b, options)
        here = device.is_here(a.vertices)
        t = max(options.tolerance, MIN_TOLERANCE)
        progress.stage("near pairs", 0.3)
        whole = a if b is None else a.followed_by(b)
        both = to_device(device, whole)
        limits = rtree_gpu.boxes(device, both)
        split = len(a)
        shift = 0 if b is None else split
        if pairs is None:
            others = None if b is None else limits[split:]
            rows_a, rows_b = rtree_gpu.pairs(device, limits[:split], others, t)
        else:
            rows_a, rows_b = (device.upload_small(rows.astype(np.int32)) for rows in pairs)
        if identities is not None:
            one, other = map(device.upload_small, identities)
            rows_a, rows_b = different(rows_a, rows_b, (one, other))
        rows_b = rows_b + np.int32(shift)
        progress.stage("meshes", 0.5)
        meshes = PreparedMeshes(device, both, limits)
        progress.stage("relations of pairs", 1.0)
        related = _relate(device, meshes, whole, rows_a, rows_b, options)
        keep = device.xp.flatnonzero(related.relation > (0 if options.relations else 1))
        rows_a, rows_b = rows_a[keep].astype(np.int64), rows_b[keep].astype(np.int64)
        is_open = meshes.side[rows_a] == 0, meshes.side[rows_b] == 0
        related = depths.Related(*(values[keep] for values in related))
        found = _table(rows_a, rows_b - shift, related, is_open)
        if here and not options.volume:
            n = len(found["a"])
            return found | {name: device.xp.full(n, np.nan) for name in MEASURES}
        on_host = {name: device.download(values) for name, values in found.items()}
        if not here:
            return on_host | common_parts.columns(on_host, a, b, options)
        others = None if b is None else _on_host(device, b)
        measures = common_parts.columns(on_host, _on_host(device, a), others, options)
        return found | {name: device.upload_small(values) for name, values in measures.items()}


def _on_host(device: cuda.Device, meshes: Meshes) -> Meshes:
    """Copy meshes of a device, if they are there."""
    if not device.is_here(meshes.vertices):
        return meshes
    return Meshes(*(device.download(device.view(array)) for array in meshes.arrays))


def _table(rows_a: Any, rows_b: Any, found: depths.Related, is_open: Any) -> dict[str, Any]:
    """Make the columns of the result, of arrays in any memory."""
    thickness, distance, x, y, z = found.measures.T
    return {
        "a": rows_a,
        "b": rows_b,
        "relation": found.relation,
        "penetration": found.penetration,
        "thickness": thickness,
        "distance": distance,
        "x": x,
        "y": y,
        "z": z,
        "a_open": is_open[0],
        "b_open": is_open[1],
        "penetration_at_least": found.is_least,
    }


def _relate(
    device: cuda.Device,
    meshes: PreparedMeshes,
    whole: Meshes,
    rows_a: Any,
    rows_b: Any,
    options: Options,
) -> depths.Related:
    """Find the relations of pairs of elements, and how far they reach into each other.

    Parameters
    ----------
    device : spatialq.runtime.cuda.Device
    meshes : PreparedMeshes
    whole : Meshes
        The same, where the call has them.
    rows_a, rows_b : int32[n]
    options : Options
    """
    xp = device.xp

    def related(rows: Any, t: float, *, touches: bool) -> tuple[Any, Any]:
        return relate_pairs(device, meshes, rows_a[rows], rows_b[rows], t, touches=touches)

    def reaches(rows: Any, measures: Any, floors: Any) -> Any:
        found = _reaches(device, meshes, rows_a[rows], rows_b[rows], measures, floors)
        long = xp.flatnonzero(xp.isnan(found[:, 0]))
        if len(long):
            at = rows[long]
            found[long] = on_host(rows_a[at], rows_b[at], measures[long], floors[long])
        return found

    def on_host(pairs_a: Any, pairs_b: Any, measures: Any, floors: Any) -> Any:
        n, pairs = len(pairs_a), xp.concatenate([pairs_a, pairs_b])
        pairs, measures, floors = map(device.download, (pairs, measures, floors))
        elements, there = np.unique(pairs, return_inverse=True)
        taken = _on_host(device, whole).take(elements)
        solids = prepared_meshes.PreparedMeshes(taken, boxes.of(taken)).solids
        return device.upload_small(depths.reaches(solids, there[:n], there[n:], measures, floors))

    return depths.relate(xp, related, reaches, meshes.boxes, meshes.side, rows_a, rows_b, options)


def _in_tiles(
    a: Meshes, b: Meshes | None, options: Options, pairs: Any, identities: Any, tiles: int
) -> dict[str, Any]:
    """Relate the pairs in parts, each with its elements on one of the devices of the call."""
    progress.stage("near pairs", 0.3)
    t = max(options.tolerance, MIN_TOLERANCE)
    boxes_a, boxes_b = boxes_of(a), None if b is None else boxes_of(b)
    rows_a, rows_b = pairs or broad_phase.pairs(
        boxes_a, boxes_b, t, "rtree", tree_of(a), tree_of(b)
    )
    rows_a, rows_b = different(rows_a, rows_b, identities)
    progress.stage("relations of pairs", 1.0)
    n = len(rows_a)
    related = depths.Related(
        np.zeros(n, np.int8), np.empty((n, 5)), np.empty(n), np.zeros(n, np.bool_)
    )
    is_open = np.zeros((2, n), np.bool_)

    def relate(tile: PairTile) -> tuple[Any, ...]:
        device = cuda.device()
        there = to_device(device, tile.meshes)
        meshes = PreparedMeshes(device, there, rtree_gpu.boxes(device, there))
        both = [device.upload_small(rows.astype(np.int32)) for rows in (tile.rows_a, tile.rows_b)]
        found = _relate(device, meshes, tile.meshes, both[0], both[1], options)
        sides = (meshes.side[rows] == 0 for rows in both)
        return tile.at, *map(device.download, (*found, *sides))

    for at, *found in gpus.each(relate, tiles_of_pairs(a, b, boxes_a, rows_a, rows_b, tiles)):
        for values, part in zip((*related, *is_open), found, strict=True):
            values[at] = part
    keep = np.flatnonzero(related.relation > (0 if options.relations else 1))
    rows_a, rows_b = rows_a[keep], rows_b[keep]
    related = depths.Related(*(values[keep] for values in related))
    related = related._replace(measures=np.ascontiguousarray(related.measures.T).T)
    return _table(rows_a, rows_b, related, is_open[:, keep])


def _reaches(
    device: cuda.Device,
    meshes: PreparedMeshes,
    rows_a: Any,
    rows_b: Any,
    measures: Any,
    floors: Any,
) -> Any:
    """Find the penetrations of pairs, see `penetration.penetrations`.

    NaN where a search needs more than `MAX_CELLS`: one warp would work on it for long after the
    others have ended.
    """
    xp, n = device.xp, len(rows_a)
    found = xp.empty((n, 2))
    words = _words(device, *meshes.solids)
    pairs = xp.empty(n, np.int32), xp.empty(n, np.int32)
    blocks, threads = -(-n // 128), 128
    _launch(
        device,
        "order_pairs",
        blocks,
        threads,
        words,
        rows_a,
        rows_b,
        n,
        *pairs,
        xp.empty(n, np.int8),
    )
    blocks = min(device.multiprocessors * BLOCKS, -(-n // WARPS))
    stacks = xp.empty(blocks * WARPS * STACK * CELL_BYTES, np.int8)
    next_pair = xp.zeros(1, np.uint64)
    if n:
        device.launch(
            SEARCH, "penetrations", (blocks,), 32 * WARPS, words, *pairs, n,
            xp.ascontiguousarray(measures), xp.ascontiguousarray(floors), MAX_CELLS, next_pair,
            stacks, found,
        )  # fmt: skip
    return found


def relate_pairs(
    device: cuda.Device,
    meshes: PreparedMeshes,
    rows_a: Any,
    rows_b: Any,
    t: float,
    *,
    touches: bool,
) -> tuple[Any, Any]:
    """Find the relations of pairs of elements, see `narrow_phase.relate`."""
    xp = device.xp
    words = _words(device, *meshes.solids)
    n = len(rows_a)
    relation = xp.zeros(n, np.int8)
    measures = xp.empty((n, 5))
    if n == 0:
        return relation, measures
    one, other, turned = xp.empty(n, np.int32), xp.empty(n, np.int32), xp.empty(n, np.int8)
    _launch(device, "order_pairs", -(-n // 128), 128, words, rows_a, rows_b, n, one, other, turned)
    crossing, d2, closest = (device.filled(0xFF, 8 * n).view(np.uint64) for _ in range(3))
    needs_distance = xp.empty(n, np.int8)
    results = (
        one, other, np.float64(t), int(touches), crossing, d2, closest, needs_distance,
    )  # fmt: skip
    room = max(CONTACTS, 2 * n)
    contacts = xp.empty(room, np.int32), xp.empty(room, np.uint64), xp.empty(room, np.int32)
    count = xp.zeros(1, np.uint64)
    batch = _words(device, *results, room, count, *contacts, turned)

    counts = xp.empty(n, np.int64)
    everything = -(-n // 128), 128, words, batch, n
    _launch(device, "list_tasks", *everything, 0, counts, 0, 0)
    ends = xp.cumsum(counts)
    total = int(ends[-1])
    tasks = xp.empty(total, np.int32), xp.empty(total, np.int32)
    _launch(device, "list_tasks", *everything, ends - counts, 0, *tasks)

    def compare(step: int) -> None:
        blocks = -(-total // WARPS), 32 * WARPS
        _launch(device, "compare_triangles", *blocks, words, batch, *tasks, total, step)

    compare(CLASSIFY)
    found = int(count[0])
    if found > room:  # rare: once more, with room for all
        contacts = tuple(xp.empty(found, values.dtype) for values in contacts)
        count[:] = 0
        batch = _words(device, *results, found, count, *contacts, turned)
        compare(CLASSIFY)
        found = int(count[0])  # fewer: triangles after a crossing are skipped by now
    if touches:
        compare(CLOSEST)
    contact_pair, contact_key, contact_kind = (values[:found] for values in contacts)
    order = xp.lexsort(xp.stack([contact_key, contact_pair.astype(np.uint64)]))
    contact_starts = xp.searchsorted(contact_pair[order], xp.arange(n + 1, dtype=np.int32))
    contact_starts = contact_starts.astype(np.int64)
    contact_key, contact_kind = contact_key[order], contact_kind[order]
    listed = _words(device, contact_starts, contact_key, contact_kind)
    selected = xp.empty(n, np.int8)
    _launch(device, "select_pairs", -(-n // 128), 128, words, batch, listed, n, selected)
    selected = xp.flatnonzero(selected)
    # one byte per vertex for each warp of `relate`
    warps = max(WARPS, MAX_SCRATCH // max(meshes.max_vertices, 1))
    blocks = min(device.multiprocessors * BLOCKS, -(-len(selected) // WARPS), warps // WARPS)
    scratch = xp.empty(blocks * WARPS * max(meshes.max_vertices, 1), np.int8)

    def relate(rows: Any) -> None:
        _launch(
            device, "relate", blocks, 32 * WARPS, words, batch, listed, rows,
            len(rows), xp.zeros(1, np.uint64), scratch, meshes.max_vertices,
            relation, measures,
        )  # fmt: skip

    relate(selected)
    deferred = xp.flatnonzero(needs_distance == DEFERRED)
    if len(deferred):
        compare(DISTANCE)
        relate(deferred)
    return relation, measures


def _launch(device: cuda.Device, name: str, blocks: int, threads: int, *arguments: Any) -> None:
    if blocks > 0:
        device.launch(SOURCE, name, (blocks,), threads, *arguments)


def _words(device: cuda.Device, *values: Any) -> Any:
    """Make a struct of 8-byte members on the device; the caller keeps its arrays alive."""
    # Memory that is freed here is reused only after the kernels launched before: one stream.
    words = [
        value.view(np.int64) if isinstance(value, np.float64)
        else value if isinstance(value, int)
        else device.address(value)
        for value in values
    ]  # fmt: skip
    return device.upload_small(np.array(words, np.int64))
