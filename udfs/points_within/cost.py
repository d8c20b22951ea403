"""How much work a call of `points_within` is."""

from dataclasses import replace
from math import ceil
from typing import Any

from spatialq.functions.declaration import Size, Work

BYTES_IN, BYTES_OUT = 3 * 8, 2 * 8
"""Of a point: x, y and id; of a pair, of which there are taken to be as many as points."""
ANSWER = 4
"""Of a point on a device: what its pairs are made of."""
BYTES_PER_POLYGON = 1024 * 4 + 3 * 50 * 4 * 8
"""Its cells, and three copies of each of 50 edges."""


def work(size: Size, _: object) -> Work:
    """Count the points, and the polygons that are indexed on the host."""
    # of polygons that are not known, there may be any number beside the points: none is assumed
    polygons = float(sum(each.count for each in size.sets))
    index = int(BYTES_PER_POLYGON * polygons)
    return Work(
        bytes_in=BYTES_IN * size.rows + index,
        bytes_out=BYTES_OUT * size.rows,
        steps={"points": float(size.rows), "polygons": polygons},
        bytes_kernel=(BYTES_IN + BYTES_OUT + ANSWER) * size.rows + index,
    )


def work_in_tiles(size: Size, options: Any, tiles: int) -> Work:
    """Count the same, with one run of points at a time on the device."""
    whole, per_point = work(size, options), BYTES_IN + BYTES_OUT + ANSWER
    index = whole.bytes_kernel - per_point * size.rows
    return replace(whole, bytes_kernel=index + per_point * ceil(size.rows / tiles))
