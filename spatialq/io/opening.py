"""Files of rows by their kind: point clouds and grids."""

from pathlib import Path

from spatialq.io.files import open_once
from spatialq.io.source import Source


def open_source(path: Path, kind: str) -> Source:
    """Open a file of rows: 'las', a point cloud, or 'grid'.

    Raises
    ------
    FileError
        If it cannot be read.
    """
    # each reader imports libraries that the other does not need
    if kind == "las":
        from spatialq.io.las.source import LasSource

        return open_once(LasSource, path)
    from spatialq.io.grid.source import GridSource

    return open_once(GridSource, path)
