"""Entwine Point Tiles: `spatialq.io.ept`."""

from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.io.formats import Reader

if TYPE_CHECKING:
    from spatialq.io.ept import EptSource


def open_cloud(path: Path) -> "EptSource":
    """Open a folder by its ept.json."""
    from spatialq.io.ept import EptSource

    return EptSource(path)


READER = Reader(
    name="EPT",
    suffixes=("ept.json",),
    kind="points",
    open=open_cloud,
    skips="parts outside of bounds, nodes finer than resolution",
    keeps="all dimensions, CRS",
    loses="addresses of other machines",
)
