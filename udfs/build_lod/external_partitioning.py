"""External partitioning of clouds larger than memory: points move through files to their tiles.

The points are written to a file, counted in grids of octree cells, and moved once into a second
file in the order of the tiles, each of which fits into memory.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from spatialq.data.reach import require_reach
from spatialq.data.strays import strays_of, warn_of
from spatialq.functions.node_stages import Execution
from spatialq.runtime import cuda, file_memory
from spatialq.runtime.arrays import Ints, Records, Uint32s

from . import CHANNELS, DECLARATION, Options, cpu
from .colours import colours
from .places import codes_of_places
from .split import DEPTH, Leaves, cells_below, count_codes, cut, pyramid
from .tiles import Part, Rows, Tiler
from .tree import BITS, Cube, Points, Root, Tree
from .validation import Cloud, box, cube_around, reject


class Saved(Protocol):
    """What is kept of a partition, for a run that goes on with it."""

    def partition(self, budget: int) -> "tuple[Cube, Leaves] | None":
        """Give the cube and the tiles, if they are there and none has more points than that."""

    def keep_partition(self, cube: Cube, tiles: Leaves) -> None:
        """Keep them: from now on the second file stays, whatever happens."""

    def tile(self, k: int) -> Part | None:
        """Give the first node of a tile whose rows were taken."""

    def keep_tile(self, k: int, part: Part) -> None:
        """Keep the first node of a tile, whose rows have been taken."""


RECORD = np.dtype(
    [
        *((axis, np.float64) for axis in "xyz"),
        ("colour", np.uint16, 4),
        ("point_id", np.int64),
        ("classification", np.uint8),
    ]
)
"""One point in a file."""
POINTS = "points"
"""Name of the first file."""
BLOCK = 1 << 18
"""Points that are read or moved at a time."""


@dataclass(frozen=True)
class PointFile:
    """A run of points in a file, in the order of their ids.

    Parameters
    ----------
    path : Path
    first, points : int
        Number of the first point of the run, and how many points it has.
    """

    path: Path
    first: int
    points: int

    def read(self) -> Records:
        """Read all points of the run."""
        offset = self.first * RECORD.itemsize
        return np.fromfile(self.path, RECORD, self.points, offset=offset)

    def blocks(self) -> Iterator[Records]:
        """Read the points in blocks of `BLOCK`."""
        for done in range(0, self.points, BLOCK):
            yield PointFile(self.path, self.first + done, min(BLOCK, self.points - done)).read()


def write_points(batches: Iterable[Mapping[str, Any]], path: Path) -> tuple[PointFile, Cube]:
    """Write the points of a cloud to a file.

    Parameters
    ----------
    batches : iterable of mappings
        x, y, z (float64), point_id (int64), red, green, blue, intensity (uint16) and classification
        (uint8), of which the last five may be None. The ids ascend.
    path : Path

    Returns
    -------
    PointFile
    Cube
        Around the points.

    Raises
    ------
    ValueError
        If a coordinate is not finite, or the points are farther apart than a float64 says.
    """
    minimum, maximum = np.full(3, np.inf), np.full(3, -np.inf)
    points = 0
    with path.open("wb") as file:
        for batch in batches:
            n = len(batch["x"])
            ids = batch["point_id"]
            low, high = box(batch["x"], batch["y"], batch["z"], ids)
            minimum, maximum = np.minimum(minimum, low), np.maximum(maximum, high)
            records = np.empty(n, RECORD)
            for axis in "xyz":
                records[axis] = batch[axis]
            red, green, blue, intensity = (batch[name] for name in CHANNELS)
            records["colour"] = colours(red, green, blue, intensity, n)
            records["point_id"] = ids
            classes = batch["classification"]
            records["classification"] = 0 if classes is None else classes
            file.write(records.data)
            points += n
    return PointFile(path, 0, points), cube_around(minimum, maximum)


def without_strays(points: PointFile, cube: Cube) -> tuple[PointFile, Cube]:
    """Take the stray points out of a file, as a call with a table leaves them out.

    Warns
    -----
    StrayPointsWarning
        If there are any.
    """
    if not points.points:
        return points, cube
    with file_memory.mapped(points.path, RECORD) as records:
        xyz = [records[axis] for axis in "xyz"]
        found = strays_of(xyz)
        if found is not None:
            warn_of(DECLARATION.outputs[0].name, xyz, found[0])
        del records, xyz  # views would keep the mapping open
    if found is None:
        return points, cube
    strays, box = found
    read = 0
    with points.path.open("r+b") as file:  # what is written lies before what is read next
        for block in points.blocks():
            inside = strays[(strays >= read) & (strays < read + block.size)]
            file.write(np.delete(block, inside - read).data)
            read += block.size
        file.truncate()
    return PointFile(points.path, 0, points.points - len(strays)), cube_around(box.low, box.high)


def rows_of(
    batches: Iterable[Mapping[str, Any]],
    folder: Path,
    options: Options,
    execution: Execution,
    budget: int,
    *,
    only_ids: bool = False,
    saved: Saved | None = None,
) -> Rows:
    """Give the rows of all nodes of a cloud that is partitioned through files.

    Parameters
    ----------
    batches : iterable of mappings
        As for `write_points`.
    folder : Path
        For temporary files of at most 82 bytes per point; none is left behind.
    options : Options
    execution : Execution
        The device. A tile too large for the GPU's memory is built on the CPU, unless the GPU was
        requested.
    budget : int
        Number of points that fit into main memory; at least as many as a leaf may have.
    only_ids : bool
        Whether samples have their `point_id` alone. All points are then in the tree, stray ones,
        too.
    saved : Saved, optional
        What there is of the folder's files, and of the tiles; and where more is kept.

    Raises
    ------
    ValueError
        As from `write_points` and `rows`.
    MemoryError
        If memory does not suffice in spite of the budget.
    """
    budget = _most_points(options, execution, budget)
    known = None if saved is None else saved.partition(budget)
    if known is not None:
        cube, tiles = known
        tiler = _tiler(cube, options, execution, budget, only_ids=only_ids)
        return (yield from _of_tiles(tiler, tiles, _tiles_of(folder / POINTS), saved))
    points, cube = write_points(batches, folder / POINTS)
    if not only_ids:
        points, cube = without_strays(points, cube)
        low = np.array([cube.x0, cube.y0, cube.z0])
        require_reach(DECLARATION.outputs[0].name, low, low + cube.size)
    tiler = _tiler(cube, options, execution, budget, only_ids=only_ids)
    return (yield from rows(tiler, points, saved))


def rows_in_memory(
    cloud: Cloud,
    options: Options,
    execution: Execution,
    budget: int,
    root: Root | None = None,
    *,
    only_ids: bool = False,
) -> Rows:
    """Give the rows of all nodes of a cloud in memory, or of the part of one in a cell.

    Parameters
    ----------
    cloud : Cloud
        Its points are all those in the cell; the cube is that of the whole cloud.
    options : Options
    execution : Execution
        The device, as for `rows_of`.
    budget : int
        Number of points that fit into main memory while their nodes are built.
    root : Root, optional
        The cell, of which every one above has more points than a leaf; by default the whole cube.
    only_ids : bool
        Whether samples have their `point_id` alone.

    Raises
    ------
    MemoryError
        If memory does not suffice.
    """
    budget = _most_points(options, execution, budget)
    tiler = _tiler(cloud.cube, options, execution, budget, only_ids=only_ids)
    return (yield from tiler.of_cloud(cloud.points, cloud.classification, root))


def _most_points(options: Options, execution: Execution, budget: int) -> int:
    """Give the number of points of a tile at most: those that fit into the GPU's memory, too."""
    if execution.device == "gpu":
        from . import gpu

        with cuda.on(*execution.gpus):
            budget = min(budget, gpu.capacity(options))
    return max(budget, options.max_points)


def _tiler(
    cube: Cube, options: Options, execution: Execution, budget: int, *, only_ids: bool
) -> Tiler:
    """Let trees be built where a call runs."""

    def build(*given: Any) -> Tree:
        if execution.device == "gpu":
            from . import gpu

            try:
                with cuda.on(*execution.gpus):
                    return gpu.build_and_bring(*given)
            except MemoryError as full:
                execution.fall_back(full)
        return cpu.build(*given)

    return Tiler(cube, options, build, budget, only_ids)


def rows(tiler: Tiler, source: PointFile, saved: Saved | None = None) -> Rows:
    """Give the rows of all nodes of a cloud in a file.

    The points are moved once, into a second file in the order of their tiles, whatever the depth of
    the tiles. The first file is removed after that, the second at the end.

    Parameters
    ----------
    tiler : Tiler
    source : PointFile
    saved : Saved, optional
        Where the partition is kept.

    Raises
    ------
    ValueError
        If more than `tiler.budget` points have one position.
    """
    path = _tiles_of(source.path)
    try:
        if source.points <= tiler.budget:
            return (yield from _tile(tiler, Root(), source))
        tiles = _partition(tiler, source, path)
        if saved is not None:
            saved.keep_partition(tiler.cube, tiles)
        source.path.unlink()
        return (yield from _of_tiles(tiler, tiles, path, saved))
    finally:
        source.path.unlink(missing_ok=True)
        if saved is None:
            path.unlink(missing_ok=True)


def _tiles_of(path: Path) -> Path:
    """Name the second file."""
    return path.with_name(f"{path.name}.tiles")


def _of_tiles(tiler: Tiler, tiles: Leaves, path: Path, saved: Saved | None) -> Rows:
    """Give the rows of the tiles in a file, but of those that are saved, and of the nodes above."""

    def tile(k: int) -> Rows:
        part = None if saved is None else saved.tile(k)
        if part is None:
            inside = PointFile(path, int(tiles.first[k]), int(tiles.points[k]))
            part = yield from _tile(tiler, tiles.root(k), inside)
            if saved is not None:
                saved.keep_tile(k, part)
        return part

    return (yield from tiler.of_tiles(tiles, Root(), tile))


def _tile(tiler: Tiler, root: Root, source: PointFile) -> Rows:
    records = source.read()
    points = Points(*_columns(records, *"xyz", "colour", "point_id"))
    (classification,) = _columns(records, "classification")
    del records
    return (yield from tiler.of_tile(root, points, classification))


class _Grid:
    """Counts of the cells some levels below a cell, with finer grids in cells that are too full."""

    def __init__(self, cube: Cube, root: Root) -> None:
        self.cube, self.root = cube, root
        self.depth = min(DEPTH, BITS - root.level)
        self.counts: Ints | None = np.zeros((1, 1 << 3 * self.depth), np.int64)
        """Points of each cell; None once all points are counted."""
        self.group_of = np.empty(1 << 3 * self.depth, np.uint32)
        """The group of each cell: a tile, or a cell that has a finer grid."""
        self.groups: Leaves
        self.finer: dict[int, _Grid] = {}
        """The finer grid of each group that has one."""

    def is_incomplete(self) -> bool:
        """Whether this grid or a finer one has not been counted yet."""
        return self.counts is not None or any(grid.is_incomplete() for grid in self.finer.values())

    def count(self, block: Records) -> None:
        """Count points in the grids that are not complete."""
        codes = _codes(self.cube, block, self.root, self.depth)
        if self.counts is not None:
            count_codes(codes, 0, len(codes), self.counts[0])
            return
        group = self.group_of[codes]
        for k, grid in self.finer.items():
            if grid.is_incomplete() and (inside := group == k).any():
                grid.count(block[inside])

    def close(self, budget: int) -> None:
        """Make groups of the counted cells, and finer grids in the groups that are too full."""
        if self.counts is None:
            for grid in self.finer.values():
                grid.close(budget)
            return
        most = min(int(self.counts.sum()), self.counts.size)
        groups = np.empty((4, most), np.int64)
        found = cut(pyramid(self.counts), self.depth, budget, self.group_of, groups)
        deep, code, points, _ = groups[:, :found].copy()  # a copy, so that the unused rest is freed
        self.counts = None
        cell = cells_below(np.array(self.root.cell), deep, code)
        self.groups = Leaves(self.root.level + deep, cell, np.cumsum(points) - points, points)
        for k in np.flatnonzero(points > budget).tolist():
            if self.groups.level[k] == BITS:
                reject(
                    f"{points[k]} points lie in one place, at {self._place(cell[k])}: memory must "
                    f"be enough for all of them, it is for {budget}"
                )
            self.finer[k] = _Grid(self.cube, self.groups.root(k))

    def _place(self, cell: Any) -> str:
        cube = self.cube
        low = np.array([cube.x0, cube.y0, cube.z0]) + np.ldexp(cell * cube.size, -BITS)
        return ", ".join(map(str, low.tolist()))

    def tiles(self) -> Leaves:
        """List the tiles, in Morton order."""
        found: list[tuple[Any, Any, Any]] = []
        self._number(found)
        level, cell, points = (np.array(each) for each in zip(*found, strict=True))
        return Leaves(level, cell, np.cumsum(points) - points, points)

    def _number(self, found: list[tuple[Any, Any, Any]]) -> None:
        groups = self.groups
        self.tile_of_group = np.empty(len(groups.level), np.int64)
        for k, tile in enumerate(zip(groups.level, groups.cell, groups.points, strict=True)):
            if k in self.finer:
                self.finer[k]._number(found)
            else:
                self.tile_of_group[k] = len(found)
                found.append(tile)

    def tile_of(self, block: Records) -> Ints:
        """Give the tile number of each point."""
        group = self.group_of[_codes(self.cube, block, self.root, self.depth)]
        tile = self.tile_of_group[group]
        for k, grid in self.finer.items():
            if (inside := group == k).any():
                tile[inside] = grid.tile_of(block[inside])
        return tile


def _partition(tiler: Tiler, source: PointFile, path: Path) -> Leaves:
    """Move the points of a file into another one, in the order of their tiles."""
    top = _Grid(tiler.cube, Root())
    while top.is_incomplete():
        for block in source.blocks():
            top.count(block)
        top.close(tiler.budget)
    tiles = top.tiles()
    slot = tiles.first.tolist()
    with path.open("wb") as file:
        for block in source.blocks():
            tile = top.tile_of(block)
            ranked = np.argsort(tile, kind="stable")
            here, begin = np.unique(tile[ranked], return_index=True)
            for k, records in zip(here, np.split(block[ranked], begin[1:]), strict=True):
                file.seek(slot[k] * RECORD.itemsize)
                file.write(records.data)
                slot[k] += len(records)
    return tiles


def _codes(cube: Cube, block: Records, root: Root, depth: int) -> Uint32s:
    n = len(block)
    codes = np.empty(n, np.uint32)
    places = *_columns(block, *"xyz"), cube.x0, cube.y0, cube.z0, cube.size
    codes_of_places(*places, np.arange(n, dtype=np.uint32), root.level, depth, 0, n, codes)
    return codes


def _columns(records: Records, *names: str) -> list[Any]:
    return [np.ascontiguousarray(records[name]) for name in names]
