"""`terrain_derivatives` of grids: the options of files."""

from collections.abc import Mapping
from typing import Any

from spatialq.cluster import grid_tiles
from spatialq.cluster.grids import OF_FILE, check_of_file, open_grids
from spatialq.cluster.method import Method


def check(more: Mapping[str, Any], *_: Any) -> None:
    """Refuse options of files that can be none.

    Raises
    ------
    ValueError
    """
    check_of_file(more)


METHOD = Method(
    "terrain_derivatives", grid_tiles.run, kind="grid", open=open_grids, more=OF_FILE, check=check
)
