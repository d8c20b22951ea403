"""From a terrain grid to its derivatives, contours and hillshade, file to file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import files_read_by
from spatialq.export.atomic import together
from spatialq.export.hillshade import LARGE, write_hillshade
from spatialq.export.raster import Raster, write_bands
from spatialq.functions.sql_text import literal
from spatialq.io.crs import with_one_unit
from spatialq.io.source import Progress
from spatialq.runtime import budget
from spatialq.runtime.arrays import Float32s
from spatialq.workflows.outputs import PICTURE, RASTER, TABLE, VECTOR, Outputs, input_files

if TYPE_CHECKING:
    import duckdb

    from spatialq.io.grid.source import GridSource
    from spatialq.udfs.terrain_derivatives import Options

COMMAND, DERIVATIVES, CONTOURS = "terrain", "terrain_derivatives", "contours"
ENDINGS = (*TABLE, *VECTOR, *PICTURE, *RASTER)
PLACE = ("x", "y", "z")


@together()
@files_read_by(COMMAND)
def write_terrain_products(
    source: str | Path | Sequence[str | Path],
    outputs: str | Path | Sequence[str | Path],
    *,
    show: Sequence[str] = (),
    interval: float | None = None,
    base: float = 0.0,
    nodata: float | None = None,
    band: int = 1,
    crs: str | None = None,
    to_crs: str | None = None,
    resolution: float | None = None,
    device: str = "auto",
    memory: str | float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Compute slope, aspect, curvatures and the like of a terrain grid, its contours and hillshade.

    Parameters
    ----------
    source : path
        One grid, or a pattern or list of one: GeoTIFF, ESRI ASCII, SRTM .hgt, USGS .dem, .npy.
    outputs : path or paths
        By their endings: .tif a GeoTIFF with a band for each derivative; .parquet, .csv, .json,
        .xlsx the table that `terrain_derivatives` gives; .gpkg and .fgb the contours; .png the
        hillshade, with the contours if there is an interval.
    show : sequence of str
        The derivatives that the GeoTIFF has, such as 'slope'; by default all.
    interval, base : float
        Of `contours`, in the unit of z.
    nodata : float, optional
        Value that means "no value", besides those that the file declares.
    band : int
        Which band of a file with several, from 1.
    crs : str, optional
        Coordinate reference system of a file that does not name one.
    to_crs : str, optional
        Coordinate reference system to reproject the file to before, such as 'EPSG:25832'.
    resolution : float, optional
        Side of the cells then, in the unit of `to_crs`.
    device : 'auto' or 'cpu'
    memory : str or float, optional
        Main memory to use, such as '2GB'; a number is in GiB. By default half of what is free.
    progress : callable, optional
        Called with file, cells so far and cells in all, of the derivatives of a GeoTIFF.
    **options
        Options of `terrain_derivatives`.

    Returns
    -------
    dict
        cells, contours (None without an interval), outputs.

    Raises
    ------
    FileError
        If the source cannot be read, or an output not be written.
    CrsError
        If x and y are degrees, and more than contours is wanted.
    ValueError
        If an option or the ending of an output is wrong, there are several files, contours have no
        interval, or the bands of a GeoTIFF do not fit into memory.
    """
    from spatialq.database.connection import connect_quietly
    from spatialq.database.table_files import write_table
    from spatialq.database.transport.grid import frame_of
    from spatialq.execution.units import units_for
    from spatialq.functions.catalogue import catalogue
    from spatialq.io.grid.grids import find_grids

    paths, targets = input_files(COMMAND, source, "grid"), Outputs.of(COMMAND, outputs)
    if len(paths) != 1 or not targets.names:
        what, n = ("source", len(paths)) if len(paths) != 1 else ("outputs", 0)
        message = f"{COMMAND}: {what} must be one file{' or more' * (not n)}, got {n}"
        raise ValueError(message)
    targets.check(paths, ENDINGS)
    lines = targets.ending_in(*VECTOR)
    if lines and interval is None:
        message = f"{COMMAND}: interval must be given for the contours in '{lines[0]}', got none"
        raise ValueError(message)
    of_file: dict[str, Any] = {
        "nodata": nodata,
        "band": band,
        "crs": crs,
        "to_crs": to_crs,
        "resolution": resolution,
    }
    (grid,) = find_grids(COMMAND, paths, **of_file)
    chosen = catalogue()[DERIVATIVES].choose(options)
    if len(lines) < len(targets.names):  # degrees are refused before the work is done
        units_for(catalogue()[DERIVATIVES], chosen, frame_of(grid))
    shown = _shown(show)
    of_contours = {"interval": interval, "base": base}
    if interval is not None:
        catalogue()[CONTOURS].choose(of_contours)
    more = {**of_file, "device": device}
    with budget.within(COMMAND, memory, targets.beside), connect_quietly() as con:
        rasters, pictures = targets.ending_in(*RASTER), targets.ending_in(*PICTURE)
        if rasters:
            bands = _bands(grid, chosen, shown, device, progress)
            for target in rasters:
                _write_raster(target, grid, bands)
            del bands
        for target in targets.ending_in(*TABLE):
            query = f"FROM {_call(DERIVATIVES, grid, chosen.values() | more)}"
            write_table(con, query, target, crs=grid.crs)
        if interval is not None:
            con.execute(
                f"CREATE TABLE contours AS FROM {_call(CONTOURS, grid, of_contours | more)}"
            )
        for target in lines:
            write_table(con, "FROM contours", target, crs=grid.crs)
        for target in pictures:
            _write_picture(con, grid, chosen, target, with_contours=interval is not None)
        count = None
        if interval is not None:
            ((count,),) = con.execute("SELECT count(*) FROM contours").fetchall()
    return {"cells": grid.rows, "contours": count, "outputs": targets.names}


def _call(function: str, grid: "GridSource", given: Mapping[str, Any]) -> str:
    """Write a call of a function of grids."""
    named = ", ".join(f"{name} := {literal(value)}" for name, value in given.items())
    return f"{function}({literal(str(grid.path))}, {named})"


def _shown(show: Sequence[str]) -> list[str]:
    """Give the derivatives that a GeoTIFF has."""
    from spatialq.functions.catalogue import catalogue

    there = [name for name in catalogue()[DERIVATIVES].output.columns if name not in PLACE]
    if unknown := [name for name in show if name not in there]:
        message = f"{COMMAND}: show must be of {', '.join(there)}, got {unknown[0]!r}"
        raise ValueError(message)
    return list(show) or there


def _bands(
    grid: "GridSource",
    options: "Options",
    shown: Sequence[str],
    device: str,
    progress: Progress | None,
) -> dict[str, Float32s]:
    """Compute derivatives of a file, some rows at a time; row 0 is the northernmost."""
    from spatialq.database.transport.grid import frame_of
    from spatialq.execution.call import call
    from spatialq.execution.units import announce
    from spatialq.functions.catalogue import catalogue

    function, frame = catalogue()[DERIVATIVES], grid.frame
    announce(function, options, [frame_of(grid)])
    shape = frame.rows, frame.columns
    needed, there = 3 * 4 * len(shown) * grid.rows, budget.current()  # GDAL's copies of the bands
    if needed > there:
        message = (
            f"{COMMAND}: {len(shown)} bands of {grid.rows:,} cells need {needed / 2**30:.1f} of "
            f"{there / 2**30:.1f} GiB: show fewer, raise memory, or write a .parquet"
        )
        raise ValueError(message)
    bands = {name: np.empty(shape, np.float32) for name in shown}
    south = 0
    for first, stop in function.output.windows(frame, options).bands(frame.columns):
        found, _ = call(
            function, {"grid": grid.grid(first, stop)}, options, device, transport="files",
            frame=frame_of(grid, is_announced=True),
        )  # fmt: skip
        north = south + found["x"].size // frame.columns
        for name in shown:
            rows = found[name].reshape(-1, frame.columns)
            bands[name][shape[0] - north : shape[0] - south] = rows[::-1]
        south = north
        if progress is not None:
            progress(grid.path, south * frame.columns, grid.rows)
    return bands


def _write_raster(target: Path, grid: "GridSource", bands: Mapping[str, Float32s]) -> None:
    cells = grid.frame
    (west, _), (_, north) = cells.ends
    corner = (cells.dx, 0.0, west - cells.dx / 2, 0.0, -cells.dy, north + cells.dy / 2)
    write_bands(target, bands, corner, grid.crs and with_one_unit(grid.crs))


def _write_picture(
    con: "duckdb.DuckDBPyConnection",
    grid: "GridSource",
    options: "Options",
    target: Path,
    *,
    with_contours: bool,
) -> None:
    """Write the hillshade of every so many cells of a file, with contours."""
    from spatialq.database.transport.grid import frame_of
    from spatialq.execution.units import units_for
    from spatialq.functions.catalogue import catalogue

    cells = grid.frame
    if cells.dx != cells.dy:
        message = (
            f"{COMMAND}: '{target.name}' must be of square cells, got {cells.dx:g} x {cells.dy:g}; "
            "to_crs and resolution make them square"
        )
        raise ValueError(message)
    level = units_for(catalogue()[DERIVATIVES], options, frame_of(grid)).level
    z = grid.overview(LARGE) * (level * options.z_factor)
    every = -(-max(grid.shape) // LARGE)
    (west, _), (_, north) = cells.ends
    raster = Raster(z, west - cells.dx / 2, north + cells.dx / 2, every * cells.dx, grid.crs)
    lines = []
    if with_contours:
        query = "SELECT ST_AsWKB(geometry) FROM contours"
        lines = [
            np.frombuffer(line, "<f8", offset=9).reshape(-1, 2)
            for (line,) in con.execute(query).fetchall()
        ]
    write_hillshade(target, raster, lines, azimuth=options.azimuth, altitude=options.altitude)
