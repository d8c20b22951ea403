"""Point clouds of all formats: files found and opened, and lazily read as views of DuckDB."""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.errors import FileError, SpatialqError
from spatialq.functions.sql_text import literal
from spatialq.io.access import for_connection
from spatialq.io.crs import require_same
from spatialq.io.formats import files_of, find_reader, las, open_source
from spatialq.io.reproject import utm_zone
from spatialq.io.reprojected import reprojected
from spatialq.io.source import PointSource

if TYPE_CHECKING:
    import duckdb

READER = "read_points"
READS_LAS = "read_las"
"""The function that reads this format alone, however a file is named."""


def find_clouds(
    caller: str,
    path: str | os.PathLike[str] | None,
    to_crs: str | None = None,
    resolution: float | None = None,
) -> list[PointSource]:
    """Open a file, or the files that match a pattern or are in a folder: together one cloud.

    Parameters
    ----------
    caller : str
        Whose errors they are.
    path : path-like
    to_crs : str, optional
        CRS to reproject to, see `spatialq.io.reprojected`.
    resolution : float, optional
        Spacing of points at which nodes of octrees are dense enough.

    Raises
    ------
    FileError
        If a file cannot be read whole or is no point cloud, or no file matches.
    CrsError
        If the files have different coordinate reference systems, or cannot be reprojected.
    """
    clouds = [
        at_resolution(caller, open_cloud(caller, file), resolution)
        for file in files_of(caller, path, ("points",))
    ]
    if to_crs is not None:
        return reprojected(caller, clouds, to_crs)
    require_same(caller, ((cloud.path, cloud.crs) for cloud in clouds))
    return clouds


def at_resolution(caller: str, cloud: PointSource, resolution: float | None) -> PointSource:
    """Give a cloud as dense as is needed: without the finer nodes of its octree.

    Raises
    ------
    FileError
        If it has no octree.
    ValueError
        If the resolution is none.
    """
    if resolution is None:
        return cloud
    if isinstance(resolution, bool) or not 0 < resolution < math.inf:
        message = f"{caller}: resolution must be a number above 0, got {resolution!r}"
        raise ValueError(message)
    if not hasattr(cloud, "at_resolution"):
        raise FileError.of(caller, cloud.path, "has no octree (COPC, EPT), which resolution needs")
    found: PointSource = cloud.at_resolution(caller, resolution)
    return found


def open_cloud(caller: str, path: Path) -> PointSource:
    """Open a file, or give it as it was opened before if it has not changed since.

    Raises
    ------
    FileError
        If it cannot be read whole or is no point cloud.
    """
    if caller == READS_LAS:
        known = find_reader(path)
        if known is None or known is las.READER:
            from spatialq.io.las.source import open_las

            return open_las(path)
        reason = f"is {known.name}, not LAS, LAZ or COPC"
        if known.kind == "points":
            reason += f"; {READER} reads it"
        raise FileError.of(caller, path, reason)
    cloud: PointSource = open_source(caller, path, ["points"])
    return cloud


def are_las(clouds: Sequence[PointSource]) -> bool:
    """Whether clouds are LAS: no value is NULL, and points can be copied record by record."""
    from spatialq.io.clipped import ClippedCloud
    from spatialq.io.las.source import LasSource

    records = (each.source if isinstance(each, ClippedCloud) else each for each in clouds)
    return all(isinstance(each, LasSource) for each in records)


def what_reprojects(path: str) -> str:
    """Say what reprojects the points of a file, or of a pattern, that are in degrees.

    Empty for other points, and for what is no point cloud that can be read.
    """
    try:
        cloud = open_cloud(READER, files_of(READER, path, ("points",))[0])
    except SpatialqError:
        return ""
    code = None if cloud.crs is None else utm_zone(cloud.crs, cloud.box)
    return f"read_points({literal(path)}, to_crs := '{code}') reprojects them" if code else ""


@for_connection
def read_points(
    con: "duckdb.DuckDBPyConnection",
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    bounds: Sequence[float] | None = None,
    columns: Sequence[str] | None = None,
    to_crs: str | None = None,
    resolution: float | None = None,
    caller: str = READER,
) -> "duckdb.DuckDBPyRelation":
    """Register point clouds as a view that reads only what a query needs.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    path : path-like
        A file, a pattern such as ``tiles/*.laz``, or a folder.
    name : str, optional
        Name of the view; by default the file's name without its ending.
    bounds : sequence of float, optional
        xmin, ymin, xmax, ymax in the units of x and y: only points inside or on the border.
    columns : sequence of str, optional
        Only these columns.
    to_crs : str, optional
        Coordinate reference system to reproject to, such as 'EPSG:25832'.
    resolution : float, optional
        Spacing of points, in the units of x and y of the file, at which the nodes of an octree
        (COPC, EPT) are dense enough: finer ones are not read.
    caller : str
        The function that the user called: `read_points`, or `read_las` for that format alone.

    Returns
    -------
    duckdb.DuckDBPyRelation
        The view. Nothing is decoded before it is queried.

    Raises
    ------
    FileError
        If a file cannot be read whole, or no file matches, or one has no octree to which
        `resolution` applies.
    CrsError
        If the files have different coordinate reference systems, or cannot be reprojected.
    ValueError
        If an argument is wrong, or a table already has the name.

    Warns
    -----
    FileWarning
        About each oddity of a file that is read all the same, and points that are left out.
    CrsWarning
        If reprojecting would be more accurate with a grid that is not installed.
    """
    clouds = find_clouds(caller, path, to_crs, resolution)
    from spatialq.io.view import register  # pandas, by pyarrow.dataset

    return register(con, caller, clouds, name=name, bounds=bounds, columns=columns)
