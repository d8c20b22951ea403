"""Split of a cloud into the leaves of its octree on the GPU: a counting sort, see split.cu."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.runtime import cuda

from .tree import BITS, Cube, Nodes, Root

if TYPE_CHECKING:
    from . import Options

SOURCE = Path(__file__).parent / "split.cu"
THREADS = 256
BLOCKS = 32  # of a multiprocessor, not all of them at once: the last ones are a small share
MAX_DEPTH = 8  # of the first grid
FINER = 4  # levels of the grids laid in cells that are too full
CELLS = 1 << 24  # of a round, unless its grids are of a single level
MAX_POINTS = (1 << 31) - 1  # a word of a cell has a bit for itself
MAX_CELLS = 1 << 32  # of all rounds

# as split.cu has them
PARENTS, LEVELS = 512, 4
NODE_THREADS = 1024
SLOT_STRIDE = 8


@dataclass(frozen=True)
class Split:
    """Points in their leaves, on the device.

    Parameters
    ----------
    records : uint32[n, 4] or uint32[n, 8]
        The points leaf after leaf in Morton order, in no order within a leaf: `Packed` or `Wide`
        of points.cuh.
    order : uint32[n]
        The positions that they had.
    nodes : Nodes
    points, children : int64[nodes], uint8[nodes]
        Those of the nodes, as NumPy arrays.
    """

    records: Any
    order: Any
    nodes: Nodes
    points: Any
    children: Any


@dataclass(frozen=True)
class Records:
    """Points on the device, as kernels take them.

    Parameters
    ----------
    kind : 'packed' or 'columns'
    arrays : list of arrays
        uint32[n, 4], see `Packed` of points.cuh; or x, y, z: float64[n], and colour: uint16[n, 4].
    """

    kind: str
    arrays: list[Any]

    @classmethod
    def packed(cls, points: Any) -> "Records":
        """Take points of 16 bytes: float32 x, y, z, and red, green, blue, a byte each."""
        return cls("packed", [points.view(np.uint32)])

    @classmethod
    def columns(cls, x: Any, y: Any, z: Any, colour: Any) -> "Records":
        """Take columns."""
        return cls("columns", [x, y, z, colour])

    def __len__(self) -> int:
        """Count the points."""
        return len(self.arrays[0])

    @property
    def words(self) -> int:
        """Words of 32 bits that a point is sorted as."""
        return 4 if self.kind == "packed" else 8


def bounds(device: Any, cloud: Records) -> Cube | None:
    """Lay the cube around packed points, of which there are some; None if some are not finite."""
    found = device.filled(0xFF, 8 * 7).view(np.uint64)
    _each(device, "bounds", len(cloud), *cloud.arrays, len(cloud), found)
    ends = cuda.bounds(device.download(found))
    return None if ends is None else Cube.around(*ends)


@dataclass(frozen=True)
class _Grids:
    """Grids of a round, on the device; see split.cu.

    Parameters
    ----------
    level : int
        Of their coarsest cells.
    depth, count : int
        Levels below these, and how many grids there are.
    start : int
        The number of the first finest cell among those of all rounds.
    words : uint32[cells of all levels]
    above, counts : uint32[count] or 0
        The finest cell of the round before that each was laid in, and its points; 0 for the first.
    differs : uint32[count]
        0 where all points of a grid have one place.
    """

    level: int
    depth: int
    count: int
    start: int
    words: Any
    above: Any
    counts: Any
    differs: Any

    @property
    def finest(self) -> int:
        """Count the finest cells."""
        return self.count << 3 * self.depth

    @property
    def bottom(self) -> int:
        """Level of the finest cells."""
        return self.level + self.depth

    @property
    def shape(self) -> tuple[Any, ...]:
        """What kernels take."""
        return self.words, self.count, self.depth


def split(
    device: Any, cloud: Records, cube: Cube, options: "Options", root: Root | None = None
) -> Split:
    """Sort points into the leaves of their octree.

    Parameters
    ----------
    device : Device
    cloud : Records
        Of at least one point.
    cube : Cube
    options : Options
        `max_points` counts.
    root : Root, optional
        The cell of the cube that all points lie in; all of the cube if there is none.

    Returns
    -------
    Split

    Raises
    ------
    MemoryError
        If there are more points than the kernel takes at once, or more cells than it can number.

    Notes
    -----
    Memory on the device, besides the points: 16 bytes a packed point or 32 for columns for the
    sorted points, 4 for their order, 4 for the cells of points; 8.6 bytes a finest cell, of which
    the first grid has up to 8^8 and each round after it up to 2^24, more only if its grids are of
    a single level; 89 bytes a node. What is not in the result is free at the end.
    """
    if len(cloud) > MAX_POINTS:
        message = (
            f"{options.FUNCTION}: the GPU takes at most {MAX_POINTS} points at once, "
            f"got {len(cloud)}"
        )
        raise MemoryError(message)
    splitter = _Splitter(device, cloud, cube, options, root or Root())
    splitter.count()
    records = device.xp.empty((len(cloud), cloud.words), np.uint32)  # while the device counts
    order = device.xp.empty(len(cloud), np.uint32)
    n_nodes = splitter.refine()
    nodes, slots = splitter.nodes(n_nodes)
    leaf_of = splitter.leaves()
    # before the long sort, during which the host goes on
    points, children = device.download(nodes.points), device.download(nodes.children)
    _points(device, "sort", cloud, splitter.ids, leaf_of, slots, records, order)
    return Split(records, order, nodes, points, children)


class _Splitter:
    """The steps of a split; what they leave is for the next one."""

    def __init__(
        self, device: Any, cloud: Records, cube: Cube, options: "Options", root: Root
    ) -> None:
        self.device, self.cloud, self.options, self.root = device, cloud, options, root
        self.where = cube.x0, cube.y0, cube.z0, cube.size
        # as many finest cells as points, about
        bits = (len(cloud) - 1).bit_length()
        depth = min(MAX_DEPTH, max(1, -(-bits // 3)), BITS - root.level)
        full = device.filled(0xFF, 4).view(np.uint32)
        self.rounds = [self._lay(root.level, depth, 1, 0, 0, 0, full)]
        self.ids = device.xp.empty(len(cloud), np.uint32)

    def _lay(self, level: int, depth: int, count: int, *rest: Any) -> _Grids:
        """Lay grids without points."""
        start, above, counts, differs = rest
        cells = count * ((8 << 3 * depth) - 1) // 7
        words = self.device.filled(0, 4 * cells).view(np.uint32)
        return _Grids(level, depth, count, start, words, above, counts, differs)

    def count(self) -> None:
        """Count the points in the first grid, and number the finest cell of each."""
        (grid,) = self.rounds
        _points(
            self.device, "count", self.cloud, *self.where, grid.bottom, grid.depth, grid.words,
            self.ids,
        )  # fmt: skip

    def refine(self) -> list[int]:
        """Lay grids in cells that are too full until there are none; count the nodes of each level.

        The device is waited for once a round, for both numbers.
        """
        device = self.device
        zeros = device.filled(0, 8 * BITS).view(np.uint32)
        n_nodes, n_full = zeros[:BITS], zeros[BITS:]  # from the lowest level upwards; by round
        while True:
            grids, number = self.rounds[-1], len(self.rounds) - 1
            above, counts = self._find_full(grids, n_full[number:])
            self._pyramid(grids, 0, 0, n_full[number:], n_nodes)
            found = device.download(zeros)
            count = int(found[BITS + number])
            if count == 0:
                return [1, *found[: BITS - self.root.level][::-1].tolist()]
            self._refine(grids, count, above, counts)
            self._pyramid(grids, counts, self.rounds[-1].differs, 0, n_nodes)

    def _find_full(self, grids: _Grids, n_full: Any) -> tuple[Any, Any]:
        """List the finest cells that are too full: which they are, and their points."""
        empty, max_points = self.device.xp.empty, self.options.max_points
        # none below the lowest level
        most = min(len(self.cloud) // (max_points + 1), grids.finest) * (grids.bottom < BITS)
        above, counts = empty(most, np.uint32), empty(most, np.uint32)
        if most:
            _each(
                self.device, "full", grids.finest, *grids.shape, grids.start, max_points,
                grids.differs, above, counts, n_full,
            )  # fmt: skip
        return above, counts

    def _refine(self, full: _Grids, count: int, above: Any, counts: Any) -> None:
        """Count the points of cells that are too full in grids of their own."""
        device = self.device
        depth = min(FINER, BITS - full.bottom)
        while depth > 1 and count << 3 * depth > CELLS:
            depth -= 1
        start = full.start + full.finest
        if start + (count << 3 * depth) > MAX_CELLS:
            message = (
                f"{self.options.FUNCTION}: the GPU cannot number as many cells as the points need"
            )
            raise MemoryError(message)
        differs = device.filled(0, 4 * count).view(np.uint32)
        seen = device.filled(0xFF, 4 * count).view(np.uint32)
        grids = self._lay(full.bottom, depth, count, start, above, counts, differs)
        _points(
            device, "refine", self.cloud, *self.where, full.words, full.start, full.finest,
            grids.words, start, grids.bottom, depth, seen, differs, self.ids,
        )  # fmt: skip
        self.rounds.append(grids)

    def _pyramid(self, grids: _Grids, counts: Any, differs: Any, n_full: Any, n_nodes: Any) -> None:
        """Fill in the coarser cells, unless there are full ones; count the nodes of each level."""
        words, cells, level = grids.words, grids.finest, grids.bottom
        while level > grids.level:
            levels = min(LEVELS, level - grids.level)
            self.device.launch(
                SOURCE, "lod_pyramid", (-(-cells // 8 // PARENTS),), PARENTS,
                words, cells, levels, self.options.max_points, counts, differs, n_full,
                n_nodes[BITS - level :],
            )  # fmt: skip
            counts = differs = 0
            for _ in range(levels):
                words, cells = words[cells:], cells // 8
            level -= levels

    def nodes(self, n_nodes: list[int]) -> tuple[Nodes, Any]:
        """Make the nodes; where the points of each go comes last."""
        level_first = [0, *np.cumsum([n for n in n_nodes if n]).tolist()]
        n, empty = level_first[-1], self.device.xp.empty
        nodes = Nodes(
            empty(n, np.int32), empty((n, 3), np.uint64), empty(n, np.int32), empty(n, np.int32),
            empty(n, np.uint8), empty(n, np.int64), empty(n, np.int64), level_first,
        )  # fmt: skip
        within, slots = empty(n, np.uint32), empty(SLOT_STRIDE * n, np.uint32)
        into = *nodes.arrays.values(), within, slots
        top = self.rounds[0].words[-1:]
        cell = map(np.uint64, self.root.cell)
        self.device.launch(SOURCE, "lod_root", (1,), 1, top, self.root.level, *cell, *into)
        ends = level_first + [n] * BITS
        for grids, finer in zip(self.rounds, [*self.rounds[1:], None], strict=True):
            first, end = ends[grids.level - self.root.level :][:2]
            counts = 0 if finer is None else finer.counts
            self.device.launch(
                SOURCE, "lod_nodes", (1,), NODE_THREADS, *grids.shape, first, end, counts, *into
            )
        return nodes, slots

    def leaves(self) -> Any:
        """Find the leaf of each finest cell of all rounds."""
        last = self.rounds[-1]
        leaf_of = self.device.xp.empty(last.start + last.finest, np.uint32)
        for grids in self.rounds:
            _each(
                self.device, "leaves", grids.finest, *grids.shape, grids.above, grids.start, leaf_of
            )
        return leaf_of


def _points(device: Any, loop: str, cloud: Records, *arguments: Any) -> None:
    """Run a loop over points."""
    blocks = min(-(-len(cloud) // THREADS), device.multiprocessors * BLOCKS)
    kernel = f"lod_{loop}_{cloud.kind}"
    device.launch(SOURCE, kernel, (blocks,), THREADS, *cloud.arrays, len(cloud), *arguments)


def _each(device: Any, loop: str, n: int, *arguments: Any) -> None:
    """Run a loop over n threads."""
    blocks = min(-(-n // THREADS), device.multiprocessors * BLOCKS)
    device.launch(SOURCE, f"lod_{loop}", (blocks,), THREADS, *arguments)
