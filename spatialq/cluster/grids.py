"""Grids that a job reads: how their files are opened."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from spatialq.cluster.folder import CALLER
from spatialq.cluster.survey import stamp_of
from spatialq.database.transport.grid import frame_of
from spatialq.errors import CrsWarning, FileError
from spatialq.execution.units import Fitted, announce
from spatialq.execution.validation import is_finite
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import CoordinateParameters
from spatialq.io.formats import reader_of
from spatialq.io.grid.grids import find_grids
from spatialq.io.grid.source import GridSource
from spatialq.io.storage import as_path

OF_FILE: Mapping[str, Any] = {"nodata": None, "band": 1, "to_crs": None, "resolution": None}
"""The options with which files of grids are opened, with their defaults."""


def check_of_file(more: Mapping[str, Any]) -> None:
    """Refuse options of files that can be none.

    Raises
    ------
    ValueError
        If one is of another type, or out of range whatever the file.
    """
    nodata, band, to_crs, resolution = (more[name] for name in OF_FILE)
    is_number = isinstance(nodata, Real) and not isinstance(nodata, bool)
    _require(nodata is None or (is_number and not math.isnan(nodata)), "nodata", "a number", nodata)
    _require(type(band) is int and band >= 1, "band", "a whole number from 1", band)
    _require(to_crs is None or isinstance(to_crs, str), "to_crs", "a text", to_crs)
    is_side = resolution is None or (is_finite(resolution) and resolution > 0)
    _require(is_side, "resolution", "a number above 0", resolution)


def _require(is_right: bool, name: str, must: str, value: object) -> None:  # noqa: FBT001
    if not is_right:
        message = f"{CALLER}: {name} must be {must}, got {value!r}"
        raise ValueError(message)


def open_grids(
    function: Function, paths: Sequence[str], options: CoordinateParameters, more: dict[str, Any]
) -> tuple[Fitted, str | None]:
    """Give the parameters, which are fitted to each grid by its own tasks, and the CRS.

    Raises
    ------
    FileError
        If the first file cannot be read.
    CrsError
        If it cannot be reprojected.
    ValueError
        If an option does not fit the first file.

    Warns
    -----
    CrsWarning
        If x and y are degrees, or heights have another unit than x and y.
    """
    grid = open_file(function.name, paths[0], {**more, "crs": options.crs})
    function.output.windows(grid.frame, options)
    announce(function, replace(options, crs=None), [frame_of(grid)])
    return Fitted({}, options), grid.crs


def open_file(caller: str, path: str, of_file: Mapping[str, Any]) -> GridSource:
    """Open a file as a grid of its own.

    Raises
    ------
    FileError, CrsError, ValueError
        As `spatialq.io.grid.grids.find_grids`.
    """
    file = as_path(path)
    reader_of(caller, file, ["grid"])
    (grid,) = find_grids(caller, [file], **of_file)
    return grid


def open_again(caller: str, data: Mapping[str, Any]) -> GridSource:
    """Open the file of a task, of which the survey has warned.

    Raises
    ------
    FileError
        If it cannot be read, or was changed since the job began.
    """
    path = data["path"]
    if stamp_of(as_path(path))[:2] != data["stamp"]:
        raise FileError.of(caller, path, "was changed while the job ran")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrsWarning)
        return open_file(caller, path, data["of_file"])
