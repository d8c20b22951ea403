"""LAS, LAZ and COPC: `spatialq.io.las`."""

from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.io.formats import Reader
from spatialq.io.source import LAS

if TYPE_CHECKING:
    from spatialq.io.las.source import LasSource


def open_cloud(path: Path) -> "LasSource":
    """Open a file, however it is named."""
    from spatialq.io.las.source import open_las

    return open_las(path)


READER = Reader(
    name="LAS",
    suffixes=LAS,
    kind="points",
    open=open_cloud,
    skips="columns (point formats 6 to 8); parts outside of bounds (COPC)",
    keeps="all dimensions, extra bytes, CRS",
    loses="waveform data, other variable length records",
)
