"""The outputs of levels of detail besides a table, by the ends of their names.

Some have the points themselves, in the order of an octree; others the nodes of the tree.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.functions.implementations import call
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


POINT_WRITERS: Mapping[str, PointWriter] = {
    COPC: partial(call, "spatialq.export.copc:write_copc"),
    "metadata.json": partial(call, "spatialq.export.potree:write_potree"),
}
"""By the ending of a name, or the whole name of a file in a folder of its own."""

TILESET = "tileset.json"
NODE_WRITERS: Mapping[str, NodeWriter] = {
    TILESET: partial(call, "spatialq.export.tiles.points:write_nodes")
}
"""Of the same kind of names."""
