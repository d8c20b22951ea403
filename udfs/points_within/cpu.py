"""`points_within` on the CPU: an index of the polygons, past which the points go in threads."""

from functools import partial
from typing import Any

import numpy as np

from spatialq.data.points import in_parts, not_finite
from spatialq.data.polygons import Polygons
from spatialq.geometry.polygon_index import PolygonIndex
from spatialq.runtime import buffers, progress
from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.threads import chunks, workers

from . import Options

COLUMNS = ("point_id", "polygon_id")
ROUND = 1 << 24
"""Points whose pairs are in memory at once before they go to the columns of the result."""


def run(
    x: Floats, y: Floats, point_id: Ints | None, polygons: Polygons, options: Options
) -> dict[str, Any]:
    """Find the polygons that points are in.

    Parameters
    ----------
    x, y : float64[n]
    point_id : int64[n] or None
        None for 0, 1, 2 ...
    polygons : Polygons
        In the coordinate reference system of the points.
    options : Options

    Returns
    -------
    dict of arrays
        `point_id` (int64) and `polygon_id` (int64, the number of the polygon from 0) of each pair,
        in the order of the points, those of a point in the order of the polygons.

    Raises
    ------
    ValueError
        If coordinates are not finite, or as `PolygonIndex.of`.
    """
    progress.stage("polygons", 0.3)
    index = PolygonIndex.kept(polygons, options.function)
    progress.stage("points", 1.0)
    found = [
        _pairs(index, x, y, point_id, *part, options.function) for part in chunks(len(x), ROUND)
    ]
    return {name: joined([each[k] for each in found]) for k, name in enumerate(COLUMNS)}


def _pairs(
    index: PolygonIndex, x: Any, y: Any, ids: Any, first: int, stop: int, function: str
) -> tuple[Any, Any]:
    """Give the columns of the pairs of some points, in memory that may be in files."""
    found = index.find_in_parts(x[first:stop], y[first:stop])
    if not all(is_finite for *_, is_finite in found):
        raise ValueError(not_finite(function, x, y, None, ids))
    ends = np.cumsum([0, *(len(rows) for rows, *_ in found)])
    columns = buffers.empty(int(ends[-1]), np.int64), buffers.empty(int(ends[-1]), np.int64)

    def fill(part: tuple[Any, Any, bool], start: int, end: int) -> None:
        rows, places, _ = part
        point_id, polygon_id = (column[start:end] for column in columns)
        np.add(rows, first, out=point_id)
        if ids is not None:
            point_id[:] = ids[point_id]
        polygon_id[:] = places

    with workers() as pool:
        pool.map(fill, found, ends[:-1], ends[1:])
    return columns


def joined(parts: list[Any]) -> Any:
    """Put parts of a column one behind the other; the list is empty afterwards."""
    if len(parts) == 1:
        return parts[0]
    result, at = buffers.empty(sum(map(len, parts)), np.int64), 0
    while parts:
        part = parts.pop(0)
        into = result[at : at + len(part)]
        in_parts(partial(_copy, part, into), len(part))
        at += len(part)
    return result


def _copy(values: Any, into: Any, first: int, stop: int) -> None:
    into[first:stop] = values[first:stop]
