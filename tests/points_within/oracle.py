"""The polygons that points are in, by GEOS: `covers` of every polygon and every point."""

import numpy as np
import shapely


def pairs(points, point_id, shapes, bounds=(-np.inf, -np.inf, np.inf, np.inf)):
    """Give (point_id, polygon) of all pairs, in the order of the points, then of the polygons."""
    west, south, east, north = bounds
    return [
        (int(number), k)
        for (x, y), number in zip(points, point_id, strict=True)
        for k, shape in enumerate(shapes)
        if shape is not None and west <= x <= east and south <= y <= north
        and shapely.covers(shape, shapely.Point(x, y))
    ]  # fmt: skip
