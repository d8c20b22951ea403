"""`points_within` on the CPU: an index of the polygons, past which the points go in threads."""

from typing import Any

import numpy as np

from spatialq.data.points import all_finite, not_finite
from spatialq.data.polygons import Polygons
from spatialq.geometry.polygon_index import PolygonIndex
from spatialq.runtime import buffers, progress
from spatialq.runtime.threads import chunks

from . import Options

COLUMNS = ("point_id", "polygon_id")
ROUND = 1 << 24
"""Points whose pairs are in memory at once before they go to the columns of the result."""


def run(x: Any, y: Any, point_id: Any, polygons: Polygons, options: Options) -> dict[str, Any]:
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
    if not all_finite(x, y):
        raise ValueError(not_finite(options.function, x, y, None, point_id))
    index = PolygonIndex.kept(polygons, options.function)
    progress.stage("points", 1.0)
    found = [_pairs(index, x, y, point_id, *part) for part in chunks(len(x), ROUND)]
    return {name: joined([each[k] for each in found]) for k, name in enumerate(COLUMNS)}


def _pairs(index: PolygonIndex, x: Any, y: Any, ids: Any, first: int, stop: int) -> tuple[Any, Any]:
    """Give the columns of the pairs of some points, in memory that may be in files."""
    rows, places = index.find(x[first:stop], y[first:stop])
    columns = buffers.empty(len(rows), np.int64), buffers.empty(len(rows), np.int64)
    np.add(rows, first, out=columns[0])
    if ids is not None:
        columns[0][:] = ids[columns[0]]
    columns[1][:] = places
    return columns


def joined(parts: list[Any]) -> Any:
    """Put parts of a column one behind the other; the list is empty afterwards."""
    if len(parts) == 1:
        return parts[0]
    joined, at = buffers.empty(sum(map(len, parts)), np.int64), 0
    while parts:
        part = parts.pop(0)
        joined[at : at + len(part)] = part
        at += len(part)
    return joined
