"""From a terrain grid to its multi-scale features: a table, a picture."""

import runpy
import traceback
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import TYPE_CHECKING, Any

from spatialq.cloud_file import Progress
from spatialq.errors import FileError, FileWarning
from spatialq.planner import log
from spatialq.quoting import literal

if TYPE_CHECKING:
    import duckdb

    from spatialq.export.features_picture import FeatureMap
    from spatialq.io.grid import GridSource

COMMAND = "features"
TABLE = (".parquet", ".csv", ".json")
PICTURE = (".png",)
ENDINGS = (*TABLE, *PICTURE)
SUMMARY = """
SELECT method, scale, feature, count(mean) AS examples,
    min(mean) AS lowest, median(mean) AS middle, max(mean) AS highest
FROM features
GROUP BY ALL
ORDER BY min(rowid)
"""
SCALES = "SELECT DISTINCT scale FROM features WHERE method = $1 AND feature = $2 ORDER BY scale"
CELLS = """
SELECT x, y, mean FROM features WHERE method = $1 AND feature = $2 AND scale = $3
"""
USUAL = ("pca1", "pca2", "ternary1", "ternary2", "variance", "std", "skewness")
"""What a picture shows unless it is told."""
RELIEF_CELLS = 1200
"""Of the longer side of the terrain in the picture."""
TICK = 0.2
"""Seconds from a word about the progress to the next."""


def write_features(
    source: str | Path,
    outputs: str | Path | Sequence[str | Path] = (),
    *,
    show: Sequence[str] = (),
    nodata: float | None = None,
    band: int = 1,
    device: str = "auto",
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Take the features of a terrain grid at several scales and write them.

    Parameters
    ----------
    source : path
        A grid: GeoTIFF, ESRI ASCII, SRTM .hgt, USGS .dem, .npy.
    outputs : path or paths
        By their endings: .parquet, .csv, .json the table that `pops_features` gives; .png the
        relief, and maps of features.
    show : sequence of str
        The features that the picture has, such as 'pca1', at most four; by default the first of
        pca1, pca2, variance, skewness and others that there are.
    nodata : float, optional
        Value that means "no value", besides those that the file declares.
    band : int
        Which band of a file with several, from 1.
    device : 'auto', 'cpu' or 'gpu'
    progress : callable, optional
        Called with file, cells so far and cells in all, from a thread of its own; the cells are
        those of all calls of `pops_features` since, also by other threads.
    **options
        Options of `pops_features`; lengths are in the unit of the file's x and y.

    Returns
    -------
    dict
        cells, examples, rows, device, features, outputs. `features` has a dict for each feature of
        a method at a scale: in how many examples it has a value, and least, middle and greatest
        of its means. `device` is 'cpu', 'gpu' or 'cpu, gpu': where `pops_features` ran meanwhile,
        for other threads, too.

    Raises
    ------
    FileError
        If the source cannot be read, or an output not be written.
    ValueError
        If an option, a feature to show or the ending of an output is wrong.

    Warns
    -----
    FileWarning
        If x and y are degrees.
    """
    from spatialq.connection import connect_quietly
    from spatialq.export.atomic import require_outputs
    from spatialq.export.features_picture import Terrain, write_features_picture
    from spatialq.export.table import write_table
    from spatialq.io.files import open_once
    from spatialq.io.grid import GridSource
    from spatialq.loading import kind_of
    from spatialq.udf import catalog
    from spatialq.udfs.pops_features.division import divide

    path = Path(source)
    targets = [Path(each) for each in ([outputs] if isinstance(outputs, str | Path) else outputs)]
    require_outputs(COMMAND, path, targets, ENDINGS)
    udf = catalog()["pops_features"]
    chosen = udf.choose(options)  # refused before the work is done, as is what does not fit
    drawn = _to_show(chosen, show)
    if kind_of(COMMAND, path) != "grid":
        raise FileError.of(COMMAND, path, "is no grid")
    nodata = None if nodata is None else float(nodata)
    grid = open_once(GridSource, path, nodata=nodata, band=band, reader=COMMAND)
    _warn_about_degrees(grid)
    frame = grid.frame
    division = divide(frame, chosen)
    given = {**asdict(chosen), "nodata": nodata, "band": int(band), "device": device}
    named = ", ".join(f"{name} := {literal(value)}" for name, value in given.items())
    started = datetime.now(UTC)
    # the table may be larger than memory
    with TemporaryDirectory() as folder, connect_quietly(f"{folder}/features.duckdb") as con:
        with _telling(progress, path, grid.rows, started):
            con.execute(
                f"CREATE TABLE features AS FROM pops_features({literal(str(path))}, {named})"
            )
        for target in targets:
            if target.suffix.lower() in TABLE:
                write_table(con, "FROM features", target)
            else:
                assert grid.box is not None  # that of a cloud may be unknown
                write_features_picture(
                    target,
                    Terrain(grid.overview(RELIEF_CELLS), grid.box),
                    feature_maps(con, drawn),
                    example=(division.x.size * frame.dx, division.y.size * frame.dy),
                    title=f"Features of {path.name}",
                )
        counts = con.sql("SELECT count(DISTINCT example_id), count(*) FROM features").fetchall()
        summary = con.execute(SUMMARY)
        names = [column[0] for column in summary.description or []]
        return {
            "cells": grid.rows,
            "examples": counts[0][0],
            "rows": counts[0][1],
            "device": ", ".join(sorted({call.device for call in _calls(started)})),
            "features": [dict(zip(names, row, strict=True)) for row in summary.fetchall()],
            "outputs": [str(target) for target in targets],
        }


def run_definitions(path: Path) -> None:
    """Run a Python file with methods of the user's own.

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


def _to_show(options: Any, show: Sequence[str]) -> list[tuple[str, str]]:
    """Choose method and feature of each row of the picture."""
    from spatialq.export.features_picture import MOST_ROWS
    from spatialq.udfs.pops_features.methods import features_of

    there = [(m, f) for m in options.methods for f in features_of("pops_features", m)]
    names = list(dict.fromkeys(name for _, name in there))
    for name in show:
        if name not in names:
            message = f"{COMMAND}: show must be of {', '.join(names)}, got {name!r}"
            raise ValueError(message)
    if len(show) > MOST_ROWS:
        message = f"{COMMAND}: show must be at most {MOST_ROWS} features, got {len(show)}"
        raise ValueError(message)
    wanted = [*show] or [*(name for name in USUAL if name in names), *names]
    rows = [each for name in dict.fromkeys(wanted) for each in there if each[1] == name]
    return rows[:MOST_ROWS]


def _warn_about_degrees(grid: "GridSource") -> None:
    from spatialq.io import crs

    if grid.crs is not None and crs.metres_per_unit(grid.crs) is None:
        message = (
            f"{COMMAND}: '{grid.path}' is in {crs.name(grid.crs)}, whose x and y are degrees: so "
            "are scales, and features that compare z with x and y (pca) mean little; project it "
            "first"
        )
        warnings.warn(message, FileWarning, stacklevel=3)


def _calls(started: datetime) -> list[log.Entry]:
    """List the calls of the kernel since a time."""
    return [
        each for each in log.entries() if each.function == "pops_features" and each.at >= started
    ]


@contextmanager
def _telling(
    progress: Progress | None, path: Path, cells: int, started: datetime
) -> Iterator[None]:
    """Tell how far the query is by the log: each band of the file is a call of the kernel."""
    if progress is None:
        yield
        return
    ended = Event()

    def watch() -> None:
        while not ended.wait(TICK):
            done = sum(call.rows for call in _calls(started))
            progress(path, min(done, cells), cells)  # bands of overlapping examples overlap

    with ThreadPoolExecutor(1) as pool:
        pool.submit(watch)
        try:
            yield
        finally:
            ended.set()
    progress(path, cells, cells)


def feature_maps(
    con: "duckdb.DuckDBPyConnection", rows: Sequence[tuple[str, str]]
) -> "list[FeatureMap]":
    """Take maps of features out of a table `features`.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        With a table `features`, as `pops_features` gives it.
    rows : sequence of (method, feature)

    Returns
    -------
    list of FeatureMap
        The means of the features at each scale.
    """
    from spatialq.export.features_picture import FeatureMap

    maps = []
    for method, feature in rows:
        for (scale,) in con.execute(SCALES, [method, feature]).fetchall():
            cells = con.execute(CELLS, [method, feature, scale]).fetchnumpy()
            maps.append(FeatureMap(f"{method} {feature}", scale, *cells.values()))
    return maps
