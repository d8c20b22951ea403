"""`points_within` on the CPU: an index of the polygons, past which the points go in threads."""

from typing import Any

import numpy as np

from spatialq.data.points import all_finite, ids_of, not_finite
from spatialq.data.polygons import Polygons
from spatialq.geometry.polygon_index import PolygonIndex
from spatialq.runtime import progress

from . import Options


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
    index = PolygonIndex.kept(polygons)
    progress.stage("points", 1.0)
    rows, places = index.find(x, y)
    ids = rows if point_id is None else ids_of(point_id, len(x))[rows]
    return {"point_id": ids, "polygon_id": places.astype(np.int64)}
