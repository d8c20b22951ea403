"""Grids of files, as they are or in another CRS: opened, and lazily read as views of DuckDB."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.errors import CrsError
from spatialq.io import access
from spatialq.io.access import for_connection
from spatialq.io.crs import require_same, same
from spatialq.io.files import find_files, open_once
from spatialq.io.grid.source import READER, GridSource
from spatialq.io.reproject import Reprojection
from spatialq.io.reprojected import operations, warn_of_missing_grids

if TYPE_CHECKING:
    import duckdb


def open_grid(
    path: str | os.PathLike[str],
    *,
    operation: Reprojection | None = None,
    resolution: float | None = None,
    **options: Any,
) -> GridSource:
    """Open a file as `GridSource`, or as `WarpedGrid` if it is to be reprojected.

    Files that were opened before and have not changed since are given as they were opened.
    """
    access.require(options.get("reader", READER), path)
    if operation is None:
        return open_once(GridSource, path, **options)
    from spatialq.io.grid.warped import WarpedGrid

    return open_once(WarpedGrid, path, operation=operation, resolution=resolution, **options)


def find_grids(
    reader: str,
    files: Sequence[Path],
    *,
    to_crs: str | None = None,
    resolution: float | None = None,
    **options: Any,
) -> list[GridSource]:
    """Open the files of one table.

    Parameters
    ----------
    reader : str
        Whose errors and warnings they are.
    files : sequence of path
    to_crs : str, optional
        CRS to reproject them to; files that are in it are warped only if a `resolution` is given.
    resolution : float, optional
        Side of the cells then, see `WarpedGrid`; by default that of the first file for all.
    **options
        nodata, band and crs of `GridSource`.

    Raises
    ------
    FileError, CrsError, ValueError
        As `GridSource`, `WarpedGrid` and `spatialq.io.reprojected.operations`; or files have
        different CRS, or there is a resolution without `to_crs`.
    """
    options = {**options, "reader": reader}
    grids = [open_grid(file, **options) for file in files]
    if to_crs is None:
        if resolution is not None:
            message = f"{reader}: resolution needs to_crs, to which grids are reprojected"
            raise ValueError(message)
        require_same(reader, ((grid.path, grid.crs) for grid in grids))
        return grids
    chosen = operations(reader, grids, to_crs, [grid.crs for grid in grids])
    warn_of_missing_grids(reader, chosen)
    found = []
    for grid, operation in zip(grids, chosen, strict=True):
        found.append(warped(reader, grid, operation, resolution))
        resolution = resolution or found[-1].cell_size[0]
    return found


def warped(
    reader: str, grid: GridSource, operation: Reprojection, resolution: float | None
) -> GridSource:
    """Give a grid in another CRS; without a resolution, one that is in it comes back as it is.

    Raises
    ------
    FileError, CrsError, ValueError
        As `WarpedGrid`; or the operation is one of heights.
    """
    if operation.moves_heights:
        message = (
            f"{reader}: '{grid.path}': to_crs: a grid cannot be reprojected to other heights; give "
            "a target with those of the file, or its points to spatialq_transform"
        )
        raise CrsError(message)
    if resolution is None and same(operation.source, operation.target):
        return grid
    options = {**grid.options, "operation": operation, "resolution": resolution}
    return open_grid(grid.path, **options)


def plan_of(grid: GridSource) -> dict[str, Any]:
    """Say in terms of JSON how a grid is opened."""
    operation = grid.options.get("operation")
    options = {**grid.options, "operation": operation and asdict(operation)}
    return {"path": str(grid.path), **options}


def planned(plan: Mapping[str, Any]) -> GridSource:
    """Open a grid as `plan_of` says."""
    operation = plan["operation"]
    return open_grid(**{**plan, "operation": operation and Reprojection(**operation)})


@for_connection
def read_grid(
    con: "duckdb.DuckDBPyConnection",
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    nodata: float | None = None,
    band: int = 1,
    bounds: Sequence[float] | None = None,
    crs: str | None = None,
    to_crs: str | None = None,
    resolution: float | None = None,
) -> "duckdb.DuckDBPyRelation":
    """Register grids as a view x, y, z that reads only what a query needs.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    path : path-like
        A file, or a pattern such as ``tiles/*.tif``.
    name : str, optional
        Name of the view; by default the file's name without its ending.
    nodata : float, optional
        Value that means "no value", besides those that the file declares.
    band : int
        Which band of a file with several, from 1.
    bounds : sequence of float, optional
        xmin, ymin, xmax, ymax in the units of x and y: only cells with their centre inside.
    crs : str, optional
        CRS of files that do not name one, such as 'EPSG:25832'.
    to_crs : str, optional
        CRS to reproject to, see `find_grids`.
    resolution : float, optional
        Side of the cells then, in its unit.

    Returns
    -------
    duckdb.DuckDBPyRelation

    Raises
    ------
    FileError, CrsError, ValueError
        If a file cannot be read, files have different CRS, or an argument is wrong.
    """
    options: dict[str, Any] = {
        "nodata": nodata,
        "band": band,
        "crs": crs,
        "to_crs": to_crs,
        "resolution": resolution,
    }
    grids = find_grids(READER, find_files(READER, path), **options)
    from spatialq.io.view import register  # pandas, by pyarrow.dataset

    return register(con, READER, grids, name=name, bounds=bounds)
