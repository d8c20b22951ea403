"""Points of files, straight into the arrays of a kernel, without one row per point."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.columns import NUMPY_TYPES
from spatialq.database.transport.columns import attributes_of
from spatialq.errors import FileError
from spatialq.functions.catalogue import Function
from spatialq.io.clouds import find_clouds
from spatialq.io.files import warn_about
from spatialq.io.formats import open_source
from spatialq.io.source import PointSource, Progress, numbers_of
from spatialq.runtime import buffers


def find(function: Function, points: str) -> list[PointSource]:
    """Look at the files, of which only the headers are read; all are in one CRS."""
    clouds = find_clouds(function.name, points)
    for cloud in clouds:
        warn_about(function.name, cloud)
    return clouds


def stamped(cloud: PointSource) -> list[Any]:
    """Name a file in its present state."""
    return [str(cloud.path), *cloud.stamp]


def of_files(function: Function, files: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Read all points of the files, whose ids run on from file to file."""
    clouds = []
    for path, *stamp in files:
        clouds.append(open_source(function.name, Path(path), ["points"]))
        if list(clouds[-1].stamp) != stamp:
            raise FileError.of(function.name, path, "was changed while the query ran")
    return read_clouds(function, clouds)


def batches_of_clouds(
    function: Function, clouds: Sequence[PointSource], tick: Progress | None = None
) -> Iterator[dict[str, Any]]:
    """Read all points of files, whose ids run on from file to file, some at a time.

    A column that a file lacks is None.
    """
    attributes = attributes_of(function)
    first = 0
    for cloud in clouds:
        there = _columns_in(function, cloud)
        types: dict[str, np.dtype[Any]] = {
            name: np.dtype(NUMPY_TYPES[attributes.get(name, "DOUBLE")]) for name in there
        }
        types["point_id"] = np.dtype(np.int64)
        done = 0
        for batch in cloud.batches(["point_id", *there]):
            found = {
                name: numbers_of(cloud.path, name, batch[name], dtype)
                for name, dtype in types.items()
            }
            yield {**dict.fromkeys(attributes), **found, "point_id": found["point_id"] + first}
            done += batch.num_rows
            if tick is not None:
                tick(cloud.path, done, cloud.rows)
        first += cloud.rows


def read_clouds(
    function: Function, clouds: Sequence[PointSource], tick: Progress | None = None
) -> dict[str, Any]:
    """Read all points of files, whose ids run on from file to file, as a kernel takes them.

    An attribute is masked where a file has none of that name, and None where all files lack it.
    """
    n = sum(cloud.rows for cloud in clouds)
    columns: dict[str, Any] = {name: buffers.empty(n) for name in function.inputs.columns}
    columns["point_id"] = buffers.empty(n, np.int64)
    there = [_columns_in(function, cloud) for cloud in clouds]
    for name, kind in attributes_of(function).items():
        has = [name in names for names in there]
        columns[name] = buffers.empty(n, NUMPY_TYPES[kind]) if any(has) else None
        if any(has) and not all(has):
            columns[name] = np.ma.MaskedArray(columns[name], buffers.zeros(n, np.bool_))
    first = done = 0
    for cloud, names in zip(clouds, there, strict=True):
        part = slice(done, done + cloud.rows)
        arrays = {name: np.ma.getdata(columns[name])[part] for name in ("point_id", *names)}
        came = cloud.read_into(arrays, tick)  # fewer where records are no valid points
        arrays["point_id"] += first
        for name, values in columns.items():
            if name not in arrays and values is not None:
                values[part] = np.ma.masked
        first, done = first + cloud.rows, done + came
    return {name: None if values is None else values[:done] for name, values in columns.items()}


def _columns_in(function: Function, cloud: PointSource) -> list[str]:
    """Name the columns of a file that a function takes, of types that lose nothing.

    An intensity that is a fraction, say, is none that a function for LAS dimensions understands.
    """
    wanted = {**dict.fromkeys(function.inputs.columns, "DOUBLE"), **attributes_of(function)}
    return [
        name
        for name, kind in wanted.items()
        if name in cloud.schema.names
        and np.can_cast(cloud.schema.field(name).type.to_pandas_dtype(), NUMPY_TYPES[kind])
    ]
