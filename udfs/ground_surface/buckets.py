"""Points sorted into square buckets for nearest-neighbour searches; for all kernels."""

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from spatialq.runtime import buffers
from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.threads import steps

from . import cells

POINTS_PER_BUCKET = 2


@dataclass(frozen=True)
class Buckets:
    """Points in the order of their buckets; x and y are relative to the lower left bucket."""

    x: Floats
    y: Floats
    z: Floats
    corner: tuple[float, float]
    starts: Ints
    """Bucket (row * columns + column) -> its first point; the last entry ends the last bucket."""
    side: float
    columns: int
    rows: int


def sort_into_buckets(x: Floats, y: Floats, z: Floats) -> Buckets:
    """Sort one or more points into about half as many buckets."""
    x0, y0 = float(x.min()), float(y.min())
    width, depth = float(x.max()) - x0, float(y.max()) - y0
    wanted = max(1, x.size // POINTS_PER_BUCKET)
    # points on a line have no area: use the same number of buckets along the line
    side = max(sqrt(width * depth / wanted), max(width, depth) / wanted) or 1.0
    columns, rows = max(1, ceil(width / side)), max(1, ceil(depth / side))
    where = x0, y0, side, columns, rows
    starts = buffers.empty(columns * rows + 2, np.int64)
    starts.fill(0)
    for start, stop in steps(0, x.size):
        cells.count_in_buckets(x, y, start, stop, *where, starts)
    np.cumsum(starts, out=starts)
    to_x, to_y, to_z = (buffers.empty(x.size) for _ in range(3))
    for start, stop in steps(0, x.size):
        cells.move_to_buckets(x, y, z, start, stop, *where, starts, to_x, to_y, to_z)
    return Buckets(to_x, to_y, to_z, (x0, y0), starts[:-1], side, columns, rows)
