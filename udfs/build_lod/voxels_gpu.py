"""Voxels of the inner nodes of an octree on the GPU, see voxels.cu."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.runtime import cuda

from . import Options
from .split_gpu import Records, Split
from .tree import Cube

SOURCE = Path(__file__).parent / "voxels.cu"
THREADS = 256
MAX_PARTS = 64  # blocks per leaf
CODE_PARTS = 4  # blocks per node in lod_codes

# the same values as in voxels.cu
MARKERS = ADDERS = 512
PIECE = 16384
VOXELS = 1024
WORD = 16
ARRAYS = (
    "records", "order", "source", "point_id", "level", "parent", "first_child", "children", "first",
    "points", "tops", "words", "first_word", "n_words", "n_voxels", "n_kept", "place", "cells",
    "code", "owner", "colour", "mass", "lowest", "keys", "sums",
)  # fmt: skip
NUMBERS = {
    **dict.fromkeys(("depth", "n_tops", "max_points", "seed"), "i8"),
    **dict.fromkeys(("x0", "y0", "z0", "size"), "f8"),
}
LOD = np.dtype([*((name, "u8") for name in ARRAYS), *NUMBERS.items()])
"""`Lod` of voxels.cu."""


@dataclass(frozen=True)
class TreeVoxels:
    """Voxels of all nodes, on the device; the fields are those of `Tree`.

    Parameters
    ----------
    voxel_first : int64[nodes + 1]
        A NumPy array.
    code : uint32[v]
    colour : uint32[v] or uint16[v, 4]
        In the format of the points: red in the lowest byte, then green, blue and 255; or the four
        channels.
    mass : uint32[v]
    representative : uint32[v] or None
    sums : uint64[v of the first node, channels]
    """

    voxel_first: Any
    code: Any
    colour: Any
    mass: Any
    representative: Any
    sums: Any


def voxels(
    device: cuda.Device, cloud: Records, split: Split, cube: Cube, options: Options,
    point_id: Any, *, representatives: bool = True,
) -> TreeVoxels:  # fmt: skip
    """Fill the inner nodes of a tree with voxels.

    Parameters
    ----------
    device : Device
    cloud : Records
    split : Split
        Result of `split` for the cloud.
    cube : Cube
    options : Options
    point_id : int64[n] or None
        On the device; None where ids are positions.
    representatives : bool
        Whether 'average' and 'weighted' find the first point of each voxel; 'first' and 'random'
        always do.

    Returns
    -------
    TreeVoxels

    Notes
    -----
    Memory on the device, besides the points: 4 bytes per point for its cell; 1 KiB per node, and
    16 bytes per point of a node, at most 64 KiB per node, for the words of its grid; per voxel the
    16 bytes of the result, 20 where a colour has four channels, and 4 for its node; 8 more for
    'random', and 32, or 40 with four channels, for 'average' and 'weighted'.
    """
    filler = _Filler(device, cloud, split, cube, options, point_id)
    filler.mark()
    return filler.fill(representatives=representatives)


class _Filler:
    """Fills the nodes of a split cloud."""

    def __init__(
        self,
        device: cuda.Device,
        cloud: Records,
        split: Split,
        cube: Cube,
        options: Options,
        point_id: Any,
    ) -> None:
        self.device, self.cloud, self.split = device, cloud, split
        self.strategy = options.strategy
        self.levels = list(enumerate(split.nodes.level_first[1:-1], 1))[::-1]
        """The levels below that of the root, the deepest first: number and first node of each."""
        points = split.points
        self.children = np.bitwise_count(split.children)
        self.most = int(points[split.children == 0].max())
        depth = options.grid_size.bit_length() - 1
        n_words = max(1, 8 ** (depth - 1) // 64)
        n_tops = max(1, n_words // 64)
        n, empty = len(points), device.xp.empty
        nodes, u32 = split.nodes, np.uint32
        self.n_voxels = device.filled(0, 4 * n).view(u32)
        self.lod = np.zeros(1, LOD)
        self.arrays: dict[str, Any] = {}
        numbers = {
            "depth": depth,
            "n_tops": n_tops,
            "max_points": options.max_points,
            "seed": options.seed,
            **vars(cube),
        }
        for name, number in numbers.items():
            self.lod[name] = number
        self._give(
            records=split.records,
            order=split.order,
            source=cloud.arrays[-1],
            point_id=point_id,
            level=nodes.level,
            parent=nodes.parent,
            first_child=nodes.first_child,
            children=nodes.children,
            first=nodes.first,
            points=nodes.points,
            tops=empty(n * n_tops * WORD, np.uint8),
            words=empty(int(np.minimum(points[1:], n_words).sum()) * WORD, np.uint8),
            first_word=empty(n, u32),
            n_words=empty(n, u32),
            n_voxels=self.n_voxels,
            n_kept=device.filled(0, 8),
            cells=empty(len(cloud), u32),
        )

    def _give(self, **arrays: Any) -> None:
        """Write the addresses of arrays into the kernels' record, and keep the arrays alive."""
        self.arrays |= arrays
        for name, array in arrays.items():
            self.lod[name] = 0 if array is None else self.device.address(array)

    def _launch(self, kernel: str, blocks: Any, threads: int, *arguments: Any) -> None:
        if blocks[0] > 0:
            self.device.launch(SOURCE, f"lod_{kernel}", blocks, threads, self.lod, *arguments)

    def _over(self, kernel: str, n: int, *arguments: Any) -> None:
        """Launch a loop over n voxels."""
        self._launch(kernel, (-(-n // THREADS),), THREADS, n, *arguments)

    def _steps(
        self, kernel: str, spans: list[list[int]], share: int, threads: int, *arguments: Any
    ) -> None:
        """Launch loops over spans of items in their order; a block takes `share` items."""
        spans = [span for span in spans if span[0] < span[1]]
        blocks = [-(-(end - first) // share) for first, end in spans]
        before = np.cumsum([0, *blocks])
        steps = np.column_stack([before[:-1], np.array(spans, np.int64).reshape(-1, 2)])
        steps = self.device.upload_small(steps)
        state = self.device.filled(0, 4 * (1 + len(spans))).view(np.uint32)
        self._launch(kernel, (int(before[-1]),), threads, steps, len(spans), state, *arguments)

    def mark(self) -> None:
        """Find the voxels of all nodes."""
        self._launch(f"mark_{self.cloud.kind}", (len(self.children) - 1,), MARKERS)
        ends = self.split.nodes.level_first
        spans = [[first, ends[level + 1]] for level, first in self.levels[1:]]
        self._steps("mark_inner", spans, 1, MARKERS)

    def fill(self, *, representatives: bool) -> TreeVoxels:
        """Add the points to the voxels and compute the colours."""
        device, kind, split = self.device, self.cloud.kind, self.split
        place = np.concatenate([[0], np.cumsum(device.download(self.n_voxels), dtype=np.int64)])
        n, n_nodes = int(place[-1]), len(self.children)
        channels = 3 if kind == "packed" else 4
        empty, u32 = device.xp.empty, np.uint32
        code, mass = empty(n, u32), device.filled(0, 4 * n).view(u32)
        colour = empty(n, u32) if kind == "packed" else empty((n, 4), np.uint16)
        more: dict[str, Any] = {}
        if self.strategy == "random":
            more["keys"] = device.filled(0, 8 * n)
        elif self.strategy == "first" or representatives:
            more["lowest"] = device.filled(0xFF, 4 * n).view(u32)
        if self.strategy in ("average", "weighted"):
            more["sums"] = device.filled(0, 8 * (channels + 1) * n)
        there = device.upload_small(place)
        self._give(place=there, code=code, owner=empty(n, u32), colour=colour, mass=mass, **more)
        pieces = min(-(-self.most // PIECE), MAX_PARTS)
        self._launch(f"{self.strategy}_{kind}", (n_nodes - 1, pieces), ADDERS)
        self._launch("codes", (n_nodes - 1, CODE_PARTS), THREADS)
        joined = channels if self.strategy == "average" else 0
        spans = [
            place[[first, split.nodes.level_first[k + 1]]].tolist() for k, first in self.levels
        ]
        self._steps("join", spans[1:], VOXELS, THREADS, joined, channels + 1)
        representative = more.get("lowest")
        if self.strategy == "average":
            self._over(f"divide_{kind}", n)
        elif self.strategy == "weighted":
            twice = [span for span in spans for _ in range(2)]
            self._steps(f"weigh_{kind}", twice, VOXELS, THREADS)
        else:
            if self.strategy == "random":
                representative = empty(n, u32)
            self._over(f"take_{kind}", n, representative)
        # the voxels of a node are stored with its children, in whose octants they lie
        before = np.cumsum(np.concatenate([[1], self.children]), dtype=np.int64)
        voxel_first = place[before]
        of_first = int(voxel_first[1]) if self.strategy == "average" else 0
        sums = more.get("sums", empty(0, np.uint64)).view(np.uint64).reshape(-1, channels + 1)
        sums = sums[:of_first, :channels].copy()
        return TreeVoxels(voxel_first, code, colour, mass, representative, sums)
