"""How much work a call of `points_within` is."""

from typing import Any

from spatialq.functions.declaration import Size, Work

BYTES_IN, BYTES_OUT = 2 * 8, 2 * 8
"""Of a point: x and y; of a pair, of which there are taken to be as many as points."""


def work(size: Size, _: Any) -> Work:
    """Count the points, and the polygons that are indexed."""
    # of polygons that are not known, there may be any number beside the points: none is assumed
    polygons = float(sum(each.count for each in size.sets))
    moved = (BYTES_IN + BYTES_OUT) * size.rows
    steps = {"points": float(size.rows), "polygons": polygons}
    return Work(BYTES_IN * size.rows, BYTES_OUT * size.rows, steps, moved)
