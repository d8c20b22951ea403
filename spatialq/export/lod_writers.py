"""The outputs of levels of detail besides a table, by the ends of their names.

Some have the points themselves, in the order of an octree; others the nodes of the tree.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.io.source import COPC, Progress

if TYPE_CHECKING:
    from spatialq.export.additive_points import AdditivePoints
    from spatialq.export.kept import KeptOutput
    from spatialq.export.lod_cloud import Cloud
    from spatialq.export.tiles.options import TileOptions

PointWriter = Callable[
    [Path, "AdditivePoints", str | None, Progress | None, "KeptOutput | None"], None
]
"""Writes points in the order of an octree, with a CRS (PROJJSON), and tells how far it is; goes on
behind what was kept."""


NodeWriter = Callable[
    [Path, "Cloud", "TileOptions | None", "KeptOutput | None"],
    AbstractContextManager[Callable[[Mapping[str, Any]], None]],
]
"""Gives what writes nodes, arrays by column name, some at a time and in any order; what was kept
of them need not come again."""


def _write_tiles(
    target: Path, cloud: "Cloud", options: "TileOptions | None", kept: "KeptOutput | None"
) -> AbstractContextManager[Callable[[Mapping[str, Any]], None]]:
    from spatialq.export.tiles.points import write_nodes

    return write_nodes(target, cloud, options, kept)


def _write_copc(
    target: Path,
    points: "AdditivePoints",
    crs: str | None,
    tick: Progress | None,
    kept: "KeptOutput | None",
) -> None:
    from spatialq.export.copc import write_copc

    write_copc(target, points, crs, tick, kept)


def _write_potree(
    target: Path,
    points: "AdditivePoints",
    crs: str | None,
    tick: Progress | None,
    kept: "KeptOutput | None",
) -> None:
    from spatialq.export.potree import write_potree

    write_potree(target, points, crs, tick, kept)


POINT_WRITERS: Mapping[str, PointWriter] = {COPC: _write_copc, "metadata.json": _write_potree}
"""By the ending of a name, or the whole name of a file in a folder of its own."""

TILESET = "tileset.json"
NODE_WRITERS: Mapping[str, NodeWriter] = {TILESET: _write_tiles}
"""Of the same kind of names."""
