"""From terrain grids to their multi-scale features: a table, a picture, a raster."""

import runpy
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import CrsWarning, files_read_by
from spatialq.export.atomic import PREFIX, together
from spatialq.export.features_picture import MAX_ROWS, Terrain, write_features_picture
from spatialq.functions.sql_text import literal
from spatialq.io.crs import require_same, same
from spatialq.io.reproject import utm_zone
from spatialq.io.source import Progress
from spatialq.planner import log
from spatialq.runtime import budget
from spatialq.runtime.temporary import temporary_folder
from spatialq.workflows.feature_choice import (
    Features,
    choose_features,
    default_features,
    feature_maps,
    label_features,
)
from spatialq.workflows.feature_raster import write_examples
from spatialq.workflows.lengths import with_numbers
from spatialq.workflows.outputs import (
    PICTURE,
    RASTER,
    TABLE,
    VECTOR,
    Outputs,
    input_files,
)
from spatialq.workflows.tables import dicts

if TYPE_CHECKING:
    import duckdb

    from spatialq.io.grid.source import GridSource
    from spatialq.udfs.pops_features import Options

COMMAND = "features"
FUNCTION = "pops_features"
ENDINGS = (*TABLE, *VECTOR, *PICTURE, *RASTER)
SUMMARY = """
SELECT method, scale, feature, count(mean) AS examples,
    min(mean) AS lowest, median(mean) AS middle, max(mean) AS highest
FROM features
GROUP BY ALL
ORDER BY min(rowid)
"""
RECTANGLES = """
SELECT f.*, format(
    'POLYGON (({0} {2}, {1} {2}, {1} {3}, {0} {3}, {0} {2}))',
    x - width / 2, x + width / 2, y - height / 2, y + height / 2
)::GEOMETRY AS geometry
FROM features AS f JOIN examples AS e ON e.file_name = f.file_name
"""
MEANS = """
SELECT mean FROM features WHERE method = $1 AND feature = $2 AND scale = $3 ORDER BY example_id
"""
HILLSHADE_CELLS = 1200
"""Cells of the longer side of the terrain in the picture."""
TICK = 0.2
"""Seconds between two calls of `progress`."""


@together()
@files_read_by(COMMAND)
def write_features(
    source: str | Path | Sequence[str | Path],
    outputs: str | Path | Sequence[str | Path] = (),
    *,
    show: Sequence[str] = (),
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
    """Compute the features of terrain grids at several scales and write them.

    Parameters
    ----------
    source : path or paths
        Grids, or patterns of them, or folders, each a grid of its own: GeoTIFF, ESRI ASCII, SRTM
        .hgt, USGS .dem, .npy.
    outputs : path or paths
        By their endings: .parquet, .csv, .json, .xlsx the table that `pops_features` gives, of
        several files with their `file_name`. A .gpkg, a .fgb, and a .parquet of grids in one CRS,
        has a column `geometry`, too: the rectangle of the cells of an example. Of one file also
        .png, the hillshade and maps of features; .tif, a GeoTIFF whose cells are the examples, with
        a band for each feature and scale: the mean over the patches.
    show : sequence of str
        The features that picture and raster have, such as 'pca1', or 'stat.kurtosis' where several
        methods have one. By default the raster has all; the picture has at most four, the first
        of pca1, pca2, variance, skewness and others that there are.
    nodata : float, optional
        Value that means "no value", besides those that the files declare.
    band : int
        Which band of a file with several, from 1.
    crs : str, optional
        Coordinate reference system of files that do not name one.
    to_crs : str, optional
        Coordinate reference system to reproject the files to before, such as 'EPSG:25832'.
    resolution : float, optional
        Side of the cells then, in the unit of `to_crs`; by default cells keep the size that they
        have in the middle of the file.
    device : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
    memory : str or float, optional
        Main memory to use, such as '2GB'; a number is in GiB. By default half of what is free.
    progress : callable, optional
        Called with file, cells so far and cells in all, from a separate thread; the cells are
        those of all calls of `pops_features` since, also by other threads.
    **options
        Options of `pops_features`; lengths are in the unit of the file's x and y, or texts with a
        unit, such as '300m'.

    Returns
    -------
    dict
        cells, examples, rows, device, features, outputs. `features` has a dict for each feature of
        a method at a scale: in how many examples it has a value, and minimum, median and maximum
        of its means as `lowest`, `middle` and `highest`. `device` is 'cpu', 'gpu' or 'cpu, gpu':
        where `pops_features` ran meanwhile, for other threads, too.

    Raises
    ------
    FileError
        If a source cannot be read, or an output not be written.
    ValueError
        If an option, a feature to show or the ending of an output is wrong, or there are several
        files for a picture or a raster.

    Warns
    -----
    CrsWarning
        If x and y are degrees, heights have another unit than x and y, to which they are converted,
        or metres are assumed since there is no CRS.
    """
    from spatialq.database.connection import connect_quietly

    paths, targets = input_files(COMMAND, source, "grid"), Outputs.of(COMMAND, outputs)
    targets.check(paths, ENDINGS)
    within_memory = budget.within(COMMAND, memory, targets.beside)
    maps = targets.ending_in(*PICTURE, *RASTER)
    if maps and len(paths) > 1:
        message = f"{COMMAND}: '{maps[0]}' is for one file, got {len(paths)}; take a table for them"
        raise ValueError(message)
    # wrong options, and those that do not fit a grid, are rejected before the work is done
    nodata = None if nodata is None else float(nodata)
    of_file = {
        "nodata": nodata, "band": int(band), "crs": crs, "to_crs": to_crs, "resolution": resolution,
    }  # fmt: skip
    grids = [_open_grid(path, of_file) for path in paths]
    choices = [_choose(options, grid) for grid in grids]
    chosen = choices[0]
    there = label_features(chosen)
    asked = choose_features(COMMAND, there, show)
    drawn = asked or default_features(there, MAX_ROWS)
    if len(drawn) > MAX_ROWS and targets.ending_in(*PICTURE):
        message = f"{COMMAND}: show must be at most {MAX_ROWS} features, got {', '.join(drawn)}"
        raise ValueError(message)
    source_options = {**of_file, "device": device, "memory": memory}
    started = datetime.now(UTC)
    # the table may be larger than memory
    with (
        within_memory,
        temporary_folder(PREFIX, targets.beside) as folder,
        connect_quietly(f"{folder}/features.duckdb") as con,
    ):
        con.execute(f"SET memory_limit = '{budget.current()}B'")
        for grid, choice in zip(grids, choices, strict=True):
            given = {**choice.values(), **source_options}
            named = ", ".join(f"{name} := {literal(value)}" for name, value in given.items())
            name = literal(str(grid.path))
            query = f"SELECT *, {name} AS file_name FROM {FUNCTION}({name}, {named})"
            verb = "CREATE TABLE features AS" if grid is grids[0] else "INSERT INTO features"
            with _reporting(progress, grid.path, grid.rows, datetime.now(UTC)):
                con.execute(f"{verb} {query}")
        _write_tables(con, grids, choices, targets)
        for target in targets.ending_in(*PICTURE):
            _write_picture(con, grids[0], chosen, drawn, target)
        for target in targets.ending_in(*RASTER):
            _write_raster(con, grids[0], chosen, asked or there, target)
        counts = con.sql("SELECT count(DISTINCT (file_name, example_id)), count(*) FROM features")
        ((examples, rows),) = counts.fetchall()
        return {
            "cells": sum(grid.rows for grid in grids),
            "examples": examples,
            "rows": rows,
            "device": ", ".join(sorted({call.device for call in _calls(started)})),
            "features": dicts(con.execute(SUMMARY)),
            "outputs": targets.names,
        }


def _open_grid(path: Path, options: Mapping[str, Any]) -> "GridSource":
    from spatialq.io.formats import reader_of
    from spatialq.io.grid.grids import find_grids

    reader_of(COMMAND, path, ["grid"])
    with warnings.catch_warnings():  # of missing grids `pops_features` warns itself
        warnings.simplefilter("ignore", CrsWarning)
        (grid,) = find_grids(COMMAND, [path], **options)
    return grid


def _choose(options: Mapping[str, Any], grid: "GridSource") -> Any:
    """Give the parameters of `pops_features`, which must fit the cells of a grid."""
    from spatialq.functions.catalogue import catalogue
    from spatialq.udfs.pops_features.division import divide

    chosen = catalogue()[FUNCTION].choose(_with_numbers(options, grid))
    divide(grid.frame, chosen)
    return chosen


def _with_numbers(options: Mapping[str, Any], grid: "GridSource") -> dict[str, Any]:
    from spatialq.functions.catalogue import catalogue

    code = grid.crs and utm_zone(grid.crs, grid.box)
    remedy = f"--to-crs {code} reprojects it to its UTM zone" if code else "reproject it first"
    parameters = catalogue()[FUNCTION].parameters
    return with_numbers(COMMAND, options, parameters, grid.path, grid.crs, remedy)


def lengths_of_first(
    source: str | Path | Sequence[str | Path],
    of_file: Mapping[str, Any],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Convert options that are lengths with a unit to numbers in the unit of the first file.

    Parameters
    ----------
    source : path or paths
        As for `write_features`; all in one CRS.
    of_file : mapping
        Its nodata, band, crs, to_crs and resolution.
    options : mapping
        Of `pops_features`.

    Raises
    ------
    FileError
        If the first file cannot be read.
    ValueError
        If a text is no length.
    CrsError
        If a length cannot be converted, since x and y are degrees.
    """
    return _with_numbers(options, _open_grid(input_files(COMMAND, source, "grid")[0], of_file))


def _write_tables(
    con: "duckdb.DuckDBPyConnection",
    grids: Sequence["GridSource"],
    choices: Sequence[Any],
    targets: Outputs,
) -> None:
    from spatialq.database.table_files import write_table
    from spatialq.udfs.pops_features.division import divide

    con.execute("CREATE TABLE examples (file_name VARCHAR, width DOUBLE, height DOUBLE)")
    for grid, options in zip(grids, choices, strict=True):
        division = divide(grid.frame, options)
        sides = division.x.size * grid.frame.dx, division.y.size * grid.frame.dy
        con.execute("INSERT INTO examples VALUES (?, ?, ?)", [str(grid.path), *sides])
    columns = "* EXCLUDE (file_name)" if len(grids) == 1 else "*"
    has_one_crs = all(same(grids[0].crs, grid.crs) for grid in grids)
    for target in targets.ending_in(*TABLE):
        is_plain = target.suffix.lower() != ".parquet" or not has_one_crs
        rows = "features" if is_plain else f"({RECTANGLES})"
        write_table(con, f"SELECT {columns} FROM {rows}", target, crs=grids[0].crs)
    for target in targets.ending_in(*VECTOR):
        crs = require_same(COMMAND, [(grid.path, grid.crs) for grid in grids])
        write_table(con, f"SELECT {columns} FROM ({RECTANGLES})", target, crs=crs)


def run_definitions(path: Path) -> None:
    """Run a Python file that defines methods of the user.

    Raises
    ------
    ValueError
        If it does not run; the message says where.
    """
    try:
        runpy.run_path(str(path))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((each.lineno for each in reversed(frames) if each.filename == str(path)), None)
        if isinstance(error, SyntaxError):
            line = error.lineno
        what = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        message = f"{COMMAND}: '{path}', line {line}: {what}"
        raise ValueError(message) from error


def _write_picture(
    con: "duckdb.DuckDBPyConnection",
    grid: "GridSource",
    options: "Options",
    shown: Features,
    target: Path,
) -> None:
    from spatialq.udfs.pops_features.division import divide

    assert grid.box is not None  # that of a cloud may be unknown
    division = divide(grid.frame, options)
    write_features_picture(
        target,
        Terrain(grid.overview(HILLSHADE_CELLS), grid.box),
        feature_maps(con, shown),
        example=(division.x.size * grid.frame.dx, division.y.size * grid.frame.dy),
        title=f"Features of {grid.path.name}",
    )


def _write_raster(
    con: "duckdb.DuckDBPyConnection",
    grid: "GridSource",
    options: "Options",
    shown: Features,
    target: Path,
) -> None:
    from spatialq.udfs.pops_features.division import Examples, divide

    division = divide(grid.frame, options)
    x, y = division.x.count, division.y.count

    def means(method: str, feature: str, k: int) -> Any:
        given = [method, feature, division.scales[k].length]
        found = con.execute(MEANS, given).fetchnumpy()["mean"]
        return np.ma.filled(found.astype(np.float64), np.nan).reshape(x, y)

    write_examples(target, grid, division, Examples(range(x), range(y)), shown, means)


def _calls(started: datetime) -> list[log.Entry]:
    """List the calls of the kernel since a time."""
    return [each for each in log.entries() if each.function == FUNCTION and each.at >= started]


@contextmanager
def _reporting(
    progress: Progress | None, path: Path, cells: int, started: datetime
) -> Iterator[None]:
    """Report how far the query is by the log: each band of the file is one call of the kernel."""
    if progress is None:
        yield
        return
    ended = Event()

    def watch() -> None:
        while not ended.wait(TICK):
            done = sum(call.rows for call in _calls(started))
            progress(path, min(done, cells), cells)  # bands of overlapping examples overlap

    thread = Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    progress(path, cells, cells)
