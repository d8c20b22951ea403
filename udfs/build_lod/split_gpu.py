"""Sort a cloud into the leaves of its octree on the GPU by a counting sort; see split.cu."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.runtime import cuda

from . import Options
from .tree import BITS, Cube, Nodes, Root

SOURCE = Path(__file__).parent / "split.cu"
THREADS = 256
BLOCKS = 32  # per multiprocessor; more than are resident, so that the last ones are a small part
MAX_DEPTH = 8  # levels of the first grid
FINER = 4  # levels of the grids made in cells that are too full
CELLS = 1 << 24  # cells of a round at most, unless its grids have a single level
MAX_POINTS = (1 << 31) - 1  # the word of a cell holds the count and a flag
MAX_CELLS = 1 << 32  # cells of all rounds

# the same values as in split.cu
PARENTS, LEVELS = 512, 4
NODE_THREADS = 1024
SLOT_STRIDE = 8


@dataclass(frozen=True)
class Split:
    """Points sorted into their leaves, on the device.

    Parameters
    ----------
    records : uint32[n, 4] or uint32[n, 8]
        The points leaf after leaf in Morton order, unordered within a leaf: `Packed` or `Wide`
        of points.cuh.
    order : uint32[n]
        The original position of each point.
    nodes : Nodes
    points, children : int64[nodes], uint8[nodes]
        Copies of the columns of `nodes`, as NumPy arrays.
    """

    records: Any
    order: Any
    nodes: Nodes
    points: Any
    children: Any


@dataclass(frozen=True)
class Records:
    """Points on the device in one of the two formats of the kernels.

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
        """Wrap points of 16 bytes: float32 x, y, z, then one byte each for red, green, blue."""
        return cls("packed", [points.view(np.uint32)])

    @classmethod
    def columns(cls, x: Any, y: Any, z: Any, colour: Any) -> "Records":
        """Wrap columns of coordinates and colours."""
        return cls("columns", [x, y, z, colour])

    def __len__(self) -> int:
        """Count the points."""
        return len(self.arrays[0])

    @property
    def words(self) -> int:
        """Number of 32-bit words of a sorted point."""
        return 4 if self.kind == "packed" else 8


def bounds(device: cuda.Device, cloud: Records) -> Cube | None:
    """Make the cube around one or more packed points; None if a coordinate is not finite."""
    found = device.filled(0xFF, 8 * 7).view(np.uint64)
    _each(device, "bounds", len(cloud), *cloud.arrays, len(cloud), found)
    ends = cuda.bounds(device.download(found))
    return None if ends is None else Cube.around(*ends)


@dataclass(frozen=True)
class _Grids:
    """The grids of one round, on the device; see split.cu.

    Parameters
    ----------
    level : int
        Level of their coarsest cells.
    depth, count : int
        Number of levels below the coarsest cells, and number of grids.
    start : int
        The number of the first finest cell among those of all rounds.
    words : uint32[cells of all levels]
    above, counts : uint32[count] or 0
        The finest cell of the previous round in which each grid lies, and its number of points; 0
        in the first round.
    differs : uint32[count]
        0 where all points of a grid have the same position.
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
        """The arguments of kernels that describe the grids."""
        return self.words, self.count, self.depth


def split(
    device: cuda.Device, cloud: Records, cube: Cube, options: Options, root: Root | None = None
) -> Split:
    """Sort points into the leaves of their octree.

    Parameters
    ----------
    device : Device
    cloud : Records
        At least one point.
    cube : Cube
    options : Options
        Only `max_points` is used.
    root : Root, optional
        The cell that contains all points; by default the whole cube.

    Returns
    -------
    Split

    Raises
    ------
    MemoryError
        If there are more points than the kernel accepts, or more cells than it can number.

    Notes
    -----
    Memory on the device, besides the points: per point 16 bytes (packed) or 32 bytes (columns) for
    the sorted points, 4 bytes for their order and 4 bytes for their cells; 8.6 bytes per finest
    cell, of which the first grid has up to 8^8 and each later round up to 2^24, more only if its
    grids have a single level; 89 bytes per node. All but the result is free at the end.
    """
    if len(cloud) > MAX_POINTS:
        message = (
            f"{options.function}: the GPU takes at most {MAX_POINTS} points at once, "
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
    # before the long sort, so that the host continues while it runs
    points, children = device.download(nodes.points), device.download(nodes.children)
    _points(device, "sort", cloud, splitter.ids, leaf_of, slots, records, order)
    return Split(records, order, nodes, points, children)


class _Splitter:
    """The steps of a split; each uses the results of the previous ones."""

    def __init__(
        self, device: cuda.Device, cloud: Records, cube: Cube, options: Options, root: Root
    ) -> None:
        self.device, self.cloud, self.options, self.root = device, cloud, options, root
        self.where = cube.x0, cube.y0, cube.z0, cube.size
        # about as many finest cells as points
        bits = (len(cloud) - 1).bit_length()
        depth = min(MAX_DEPTH, max(1, -(-bits // 3)), BITS - root.level)
        full = device.filled(0xFF, 4).view(np.uint32)
        self.rounds = [self._lay(root.level, depth, 1, 0, 0, 0, full)]
        self.ids = device.xp.empty(len(cloud), np.uint32)

    def _lay(self, level: int, depth: int, count: int, *rest: Any) -> _Grids:
        """Allocate empty grids."""
        start, above, counts, differs = rest
        cells = count * ((8 << 3 * depth) - 1) // 7
        words = self.device.filled(0, 4 * cells).view(np.uint32)
        return _Grids(level, depth, count, start, words, above, counts, differs)

    def count(self) -> None:
        """Count the points in the first grid, and store the finest cell of each point."""
        (grid,) = self.rounds
        _points(
            self.device, "count", self.cloud, *self.where, grid.bottom, grid.depth, grid.words,
            self.ids,
        )  # fmt: skip

    def refine(self) -> list[int]:
        """Add grids in cells that are too full until there are none; count the nodes of each level.

        The host waits for the device once per round, to read both counts.
        """
        device = self.device
        zeros = device.filled(0, 8 * BITS).view(np.uint32)
        n_nodes, n_full = zeros[:BITS], zeros[BITS:]  # by level from the deepest one; by round
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
        """List the finest cells that are too full, and their numbers of points."""
        empty, max_points = self.device.xp.empty, self.options.max_points
        # a cell of the deepest level cannot be split
        most = min(len(self.cloud) // (max_points + 1), grids.finest) * (grids.bottom < BITS)
        above, counts = empty(most, np.uint32), empty(most, np.uint32)
        if most:
            _each(
                self.device, "full", grids.finest, *grids.shape, grids.start, max_points,
                grids.differs, above, counts, n_full,
            )  # fmt: skip
        return above, counts

    def _refine(self, full: _Grids, count: int, above: Any, counts: Any) -> None:
        """Count the points of cells that are too full in one finer grid per cell."""
        device = self.device
        depth = min(FINER, BITS - full.bottom)
        while depth > 1 and count << 3 * depth > CELLS:
            depth -= 1
        start = full.start + full.finest
        if start + (count << 3 * depth) > MAX_CELLS:
            message = (
                f"{self.options.function}: the GPU cannot number as many cells as the points need"
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
        """Compute the coarser cells, unless there are full cells; count the nodes of each level."""
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
        """Make the nodes; the last array returned is the next free slot of each leaf."""
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
        """Find the leaf of each finest cell in all rounds."""
        last = self.rounds[-1]
        leaf_of = self.device.xp.empty(last.start + last.finest, np.uint32)
        for grids in self.rounds:
            _each(
                self.device, "leaves", grids.finest, *grids.shape, grids.above, grids.start, leaf_of
            )
        return leaf_of


def _points(device: cuda.Device, loop: str, cloud: Records, *arguments: Any) -> None:
    """Launch a loop over points."""
    blocks = min(-(-len(cloud) // THREADS), device.multiprocessors * BLOCKS)
    kernel = f"lod_{loop}_{cloud.kind}"
    device.launch(SOURCE, kernel, (blocks,), THREADS, *cloud.arrays, len(cloud), *arguments)


def _each(device: cuda.Device, loop: str, n: int, *arguments: Any) -> None:
    """Launch a loop over n items."""
    blocks = min(-(-n // THREADS), device.multiprocessors * BLOCKS)
    device.launch(SOURCE, f"lod_{loop}", (blocks,), THREADS, *arguments)
