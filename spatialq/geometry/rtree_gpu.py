"""Boxes of meshes, and pairs of boxes by an R-tree, on the GPU; see rtree.py."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry.rtree import AXIS_BITS, level_starts
from spatialq.runtime import cuda

SOURCE = Path(__file__).parent / "rtree.cu"
THREADS = 256
BLOCKS = 8  # per multiprocessor, of loops over boxes and of long searches
PAIRS_PER_QUERY = 8  # room at first; where there are more, the search is repeated
ELEMENT_FIRST, LOWER_FIRST = 1, 2  # order of the rows in a pair


def boxes(device: cuda.Device, meshes: Meshes) -> Any:
    """Make the box of each mesh, as `boxes.of`.

    Parameters
    ----------
    device : Device
    meshes : Meshes
        Of k elements, in the memory of the device.

    Returns
    -------
    float64[k, 6], on the device
    """
    n = len(meshes)
    found = device.xp.empty((n, 6))
    _launch(
        device, "boxes", 32 * n,
        *meshes.arrays, n, found,
    )  # fmt: skip
    return found


def pairs(device: cuda.Device, boxes_a: Any, boxes_b: Any, distance: float) -> tuple[Any, Any]:
    """Find the pairs of boxes that are nowhere farther apart than `distance` along an axis.

    Parameters
    ----------
    device : Device
    boxes_a, boxes_b : float64[n, 6], metres, contiguous, on the device; n < 2^31
        None as boxes_b: pairs within boxes_a, i < j.
    distance : float, metres

    Returns
    -------
    i, j : int32[m], on the device
        As from `broad_phase.pairs`.
    """
    xp = device.xp
    if boxes_b is None:
        order = LOWER_FIRST
        elements = queries = _order(device, boxes_a)
    else:
        order = ELEMENT_FIRST if len(boxes_a) < len(boxes_b) else 0
        both = _order(device, boxes_a), _order(device, boxes_b)
        elements, queries = both if order == ELEMENT_FIRST else both[::-1]
    if 0 in (elements.n, queries.n):
        return xp.empty(0, np.int32), xp.empty(0, np.int32)
    tree, starts = _tree(device, elements)
    room = max(1, PAIRS_PER_QUERY * queries.n)
    while True:
        found = xp.empty(room, np.int64)
        counts = device.filled(0, 16).view(np.uint64)
        left = xp.empty((2, queries.n), np.int32)
        both = tree, device.upload_small(starts)
        searched = queries.boxes, queries.rows
        here = np.float64(distance), np.int32(order), counts, room, found, left[0], left[1]
        _launch(
            device, "search", queries.n,
            *both, np.int32(starts.size - 1), elements.rows, *searched, queries.n, *here,
        )  # fmt: skip
        device.launch(
            SOURCE, "rtree_search_long", (device.multiprocessors * BLOCKS,), THREADS,
            *both, elements.rows, *searched, *here,
        )  # fmt: skip
        n = int(device.download(counts)[0])
        if n <= room:
            keys = xp.sort(found[:n])
            return (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)
        room = n


@dataclass(frozen=True)
class _Ordered:
    """Boxes along a Morton curve: float64[n, 6], and the rows that they had: int32[n]."""

    boxes: Any
    rows: Any

    @property
    def n(self) -> int:
        return len(self.rows)


def _order(device: cuda.Device, boxes: Any) -> _Ordered:
    xp, n = device.xp, len(boxes)
    row_bits = max(1, n - 1).bit_length()
    bits = min(AXIS_BITS, (64 - row_bits) // 3)
    extent = device.filled(0xFF, 48).view(np.uint64)
    keys, rows = xp.empty(n, np.uint64), xp.empty(n, np.int32)
    ordered = xp.empty((n, 6))
    blocks = min(-(-n // THREADS), device.multiprocessors * BLOCKS)
    _launch(device, "extent", blocks * THREADS, boxes, n, extent)
    _launch(device, "codes", n, boxes, n, extent, np.int32(bits), np.int32(row_bits), keys)
    keys = xp.sort(keys)
    _launch(device, "leaves", n, boxes, keys, n, np.int32(row_bits), ordered, rows)
    return _Ordered(ordered, rows)


def _tree(device: cuda.Device, elements: _Ordered) -> tuple[Any, Any]:
    """Boxes and starts of the levels, as in `rtree.Tree`, the latter on the host."""
    starts = level_starts(elements.n)
    tree = device.xp.empty((int(starts[-1]), 6))
    tree[: elements.n] = elements.boxes
    for first, stop, end in zip(starts[:-2], starts[1:-1], starts[2:], strict=True):
        n = int(end - stop)
        children = tree[first:stop]
        _launch(device, "nodes", n, children, len(children), n, tree[stop:end])
    return tree, starts


def _launch(device: cuda.Device, name: str, threads: int, *arguments: Any) -> None:
    """Launch at least so many threads, if any."""
    if threads:
        blocks = -(-threads // THREADS)
        device.launch(SOURCE, f"rtree_{name}", (blocks,), THREADS, *arguments)
