"""What is kept of a tree that is built tile by tile: the points in their order, and the tiles.

A tile is kept where each output goes on behind its nodes, as 3D Tiles do, and no table is written.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.export.kept import Kept
from spatialq.export.lod_writers import NODE_WRITERS
from spatialq.workflows.lod_nodes import CloudStatistics
from spatialq.workflows.lod_table import TreeSummary
from spatialq.workflows.outputs import Outputs

if TYPE_CHECKING:
    from spatialq.udfs.build_lod.split import Leaves
    from spatialq.udfs.build_lod.tiles import Part
    from spatialq.udfs.build_lod.tree import Cube

FOLDER = "points"
PARTITION, TILE = f"{FOLDER}/partition", f"{FOLDER}/tile"


class KeptTiles:
    """A partition and its tiles, as `external_partitioning.Saved`.

    Parameters
    ----------
    kept : Kept
    targets : Outputs
    seen : CloudStatistics, optional
        Restored with the partition, and kept with it.
    """

    def __init__(self, kept: Kept, targets: Outputs, seen: CloudStatistics | None) -> None:
        self._kept, self._seen = kept, seen
        nodes_to = targets.ending_in(*NODE_WRITERS)
        self.keeps_tiles = len(nodes_to) == len(targets.paths)
        """Whether tiles are kept."""
        self._are_there = all(kept.output(target).path.is_dir() for target in nodes_to)
        self.before = TreeSummary()
        """What there is in the tiles that were there."""
        self.written: TreeSummary | None = None
        """What there was in the nodes that were written last."""

    @property
    def folder(self) -> Path:
        """The files of points."""
        return self._kept.path(FOLDER)

    def partition(self, budget: int) -> "tuple[Cube, Leaves] | None":
        """Give the cube and the tiles, if they are there and none has more points than that."""
        from spatialq.udfs.build_lod.split import Leaves
        from spatialq.udfs.build_lod.tree import Cube

        known, arrays = self._kept.load(PARTITION), self._kept.load_arrays(PARTITION)
        if known is None or arrays is None or arrays["points"].max() > budget:
            self._kept.empty_folder(FOLDER)
            return None
        if not self._are_there:
            self._kept.forget(TILE)
        if self._seen is not None:
            self._seen.restore(known["seen"])
        return Cube(**known["cube"]), Leaves(**arrays)

    def keep_partition(self, cube: "Cube", tiles: "Leaves") -> None:
        """Keep them."""
        seen = None if self._seen is None else self._seen.state()
        self._kept.save_arrays(PARTITION, vars(tiles))
        self._kept.save(PARTITION, {"cube": asdict(cube), "seen": seen})

    def tile(self, k: int) -> "Part | None":
        """Give the first node of a tile whose nodes are written."""
        known, arrays = self._kept.load(_name(k)), self._kept.load_arrays(_name(k))
        if known is None or arrays is None:
            return None
        self.before.include(TreeSummary(**known))
        from spatialq.udfs.build_lod.tiles import Part

        return Part.of_arrays(arrays)

    def keep_tile(self, k: int, part: "Part") -> None:
        """Keep the first node of a tile, whose nodes were written last."""
        if self.keeps_tiles and self.written is not None:
            self._kept.save_arrays(_name(k), part.arrays())
            self._kept.save(_name(k), asdict(self.written))


def _name(k: int) -> str:
    return f"{TILE} {k}"
