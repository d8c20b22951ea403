"""Points of files, straight into the arrays of a kernel, without one row per point."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.columns import NUMPY_TYPES
from spatialq.database.transport.columns import attributes_of
from spatialq.errors import FileError
from spatialq.functions.catalogue import Function
from spatialq.io.crs import require_same
from spatialq.io.files import find_files, is_pattern, require_file, warn_about
from spatialq.io.las.source import LasSource, open_las
from spatialq.io.source import LAS, Progress


def find(function: Function, points: str) -> list[LasSource]:
    """Look at the files, of which only the headers are read; all are in one CRS."""
    if not is_pattern(points) and Path(points).suffix.lower() not in LAS:
        reason = f"is no point cloud: its name must end in {' or '.join(LAS)}"
        raise FileError.of(function.name, points, reason)
    paths = find_files(function.name, points)
    for path in paths:
        require_file(function.name, path)
    clouds = [open_las(path) for path in paths]
    for cloud in clouds:
        warn_about(function.name, cloud)
    require_same(function.name, [(cloud.path, cloud.crs) for cloud in clouds])
    return clouds


def stamped(cloud: LasSource) -> list[Any]:
    """Name a file in its present state."""
    return [str(cloud.path), *cloud.stamp]


def of_files(function: Function, files: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Read all points of the files, whose ids run on from file to file."""
    clouds = []
    for path, *stamp in files:
        clouds.append(open_las(path))
        if list(clouds[-1].stamp) != stamp:
            raise FileError.of(function.name, path, "was changed while the query ran")
    return read_clouds(function, clouds)


def batches_of_clouds(
    function: Function, clouds: Sequence[LasSource], tick: Progress | None = None
) -> Iterator[dict[str, Any]]:
    """Read all points of files, some at a time; a column that a file lacks is None."""
    for cloud in clouds:
        there = [
            name
            for name in (*function.inputs.columns, *attributes_of(function))
            if name in cloud.schema.names
        ]
        done = 0
        for batch in cloud.batches(there):
            found = {name: batch[name].to_numpy(zero_copy_only=False) for name in there}
            yield {**dict.fromkeys(attributes_of(function)), **found}
            done += batch.num_rows
            if tick is not None:
                tick(cloud.path, done, cloud.rows)


def read_clouds(
    function: Function, clouds: Sequence[LasSource], tick: Progress | None = None
) -> dict[str, Any]:
    """Read all points of files, whose ids run on from file to file, as a kernel takes them.

    An attribute is masked where a file has none of that name, and None where all files lack it.
    """
    n = sum(cloud.rows for cloud in clouds)
    columns: dict[str, Any] = {name: np.empty(n) for name in function.inputs.columns}
    for name, kind in attributes_of(function).items():
        there = [name in cloud.schema.names for cloud in clouds]
        columns[name] = np.empty(n, NUMPY_TYPES[kind]) if any(there) else None
        if any(there) and not all(there):
            lost = np.repeat(np.logical_not(there), [cloud.rows for cloud in clouds])
            columns[name] = np.ma.MaskedArray(columns[name], lost)
    first = 0
    for cloud in clouds:
        part = slice(first, first + cloud.rows)
        arrays = {
            name: np.ma.getdata(values)[part]
            for name, values in columns.items()
            if name in cloud.schema.names
        }
        cloud.read_into(arrays, tick)
        first += cloud.rows
    return {**columns, "point_id": np.arange(n)}
