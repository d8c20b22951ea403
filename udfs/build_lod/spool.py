"""Points in files: clouds larger than memory on their way to the tiles of their octree."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import CHANNELS
from .colours import colours
from .door import box, cube_around, refuse
from .places import codes_of_places
from .split import DEPTH, Leaves, cells_below, count_codes, cut, pyramid
from .tiles import Rows, Tiler
from .tree import BITS, Cube, Points, Root

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECORD = np.dtype(
    [
        *((axis, np.float64) for axis in "xyz"),
        ("colour", np.uint16, 4),
        ("point_id", np.int64),
        ("classification", np.uint8),
    ]
)
"""A point in a file."""
BLOCK = 1 << 18
"""Points that are moved at once."""


@dataclass(frozen=True)
class Spool:
    """Points that lie one after the other in a file, in the order of their ids.

    Parameters
    ----------
    path : Path
    first, points : int
        Where they begin, and how many they are.
    """

    path: Path
    first: int
    points: int

    def read(self) -> "NDArray[np.void]":
        """Read all of them."""
        offset = self.first * RECORD.itemsize
        return np.fromfile(self.path, RECORD, self.points, offset=offset)

    def blocks(self) -> "Iterator[NDArray[np.void]]":
        """Read so many at a time."""
        for done in range(0, self.points, BLOCK):
            yield Spool(self.path, self.first + done, min(BLOCK, self.points - done)).read()


def spool(batches: Iterable[Mapping[str, Any]], path: Path) -> tuple[Spool, Cube]:
    """Write points to a file.

    Parameters
    ----------
    batches : iterable of mappings
        x, y, z (float64), red, green, blue, intensity (uint16) and classification (uint8), of
        which all but coordinates may be None. Point ids are their places, 0, 1, 2 ...
    path : Path

    Returns
    -------
    Spool
    Cube
        Around the points.

    Raises
    ------
    ValueError
        If a coordinate is not finite, or the points are farther apart than a float64 says.
    """
    least, greatest = np.full(3, np.inf), np.full(3, -np.inf)
    points = 0
    with path.open("wb") as file:
        for batch in batches:
            n = len(batch["x"])
            ids = np.arange(points, points + n)
            low, high = box(batch["x"], batch["y"], batch["z"], ids)
            least, greatest = np.minimum(least, low), np.maximum(greatest, high)
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
    return Spool(path, 0, points), cube_around(least, greatest)


def rows(tiler: Tiler, spool: Spool, root: Root | None = None) -> Rows:
    """Give the rows of all nodes of a cloud in a file, which needs as much room again beside it.

    Parameters
    ----------
    tiler : Tiler
    spool : Spool
    root : Root, optional
        The cell that the points lie in; by default all of the cube.

    Raises
    ------
    ValueError
        If more points than `tiler.budget` lie in one place.
    """
    root = Root() if root is None else root
    if spool.points <= tiler.budget:
        records = spool.read()
        points = Points(*_columns(records, *"xyz", "colour", "point_id"))
        (classification,) = _columns(records, "classification")
        del records
        return (yield from tiler.of_tile(root, points, classification))
    path = spool.path.with_name(f"{root.name}.tiles")
    try:
        tiles = _divide(tiler, spool, root, path)

        def tile(k: int) -> Rows:
            inside = Spool(path, int(tiles.first[k]), int(tiles.points[k]))
            return rows(tiler, inside, tiles.root(k))

        return (yield from tiler.of_tiles(tiles, root, tile))
    finally:
        path.unlink(missing_ok=True)


def _divide(tiler: Tiler, spool: Spool, root: Root, path: Path) -> Leaves:
    """Move points into the order of tiles, in another file."""
    depth = min(DEPTH, BITS - root.level)
    if depth == 0:
        x, y, z, *_ = next(spool.blocks())[0].tolist()
        refuse(
            f"{spool.points} points lie in one place, at {x}, {y}, {z}: memory must be enough for "
            f"all of them, it is for {tiler.budget}"
        )
    counts = np.zeros((1, 1 << 3 * depth), np.int64)
    for block in spool.blocks():
        codes = _codes(tiler.cube, block, root, depth)
        count_codes(codes, 0, len(codes), counts[0])
    group_of = np.empty(1 << 3 * depth, np.uint32)
    groups = np.empty((4, min(spool.points, 1 << 3 * depth)), np.int64)
    found = cut(pyramid(counts, depth), depth, tiler.budget, group_of, groups)
    deep, code, points, _ = groups[:, :found]
    first = np.cumsum(points) - points
    slot = first.tolist()
    with path.open("wb") as file:
        for block in spool.blocks():
            group = group_of[_codes(tiler.cube, block, root, depth)]
            ranked = np.argsort(group, kind="stable")
            groups_here, begin = np.unique(group[ranked], return_index=True)
            for k, records in zip(groups_here, np.split(block[ranked], begin[1:]), strict=True):
                file.seek(slot[k] * RECORD.itemsize)
                file.write(records.data)
                slot[k] += len(records)
    cell = cells_below(np.array(root.cell), deep, code)
    return Leaves(root.level + deep, cell, first, points)


def _codes(cube: Cube, block: "NDArray[np.void]", root: Root, depth: int) -> "NDArray[np.uint32]":
    n = len(block)
    codes = np.empty(n, np.uint32)
    places = *_columns(block, *"xyz"), cube.x0, cube.y0, cube.z0, cube.size
    codes_of_places(*places, np.arange(n, dtype=np.uint32), root.level, depth, 0, n, codes)
    return codes


def _columns(records: "NDArray[np.void]", *names: str) -> list[Any]:
    return [np.ascontiguousarray(records[name]) for name in names]
