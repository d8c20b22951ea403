"""Points sorted into square buckets for nearest-neighbour searches; NumPy, for all kernels."""

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

POINTS_PER_BUCKET = 2


@dataclass(frozen=True)
class Buckets:
    """Points in the order of their buckets; x and y are relative to the lower left bucket."""

    x: Floats
    y: Floats
    z: Floats
    corner: tuple[float, float]
    starts: NDArray[np.int64]
    """Bucket (row * columns + column) -> its first point; the last entry ends the last bucket."""
    side: float
    columns: int
    rows: int


def sort_into_buckets(x: Floats, y: Floats, z: Floats) -> Buckets:
    """Sort one or more points into about half as many buckets."""
    x0, y0 = float(x.min()), float(y.min())
    x, y = x - x0, y - y0
    width, depth = float(x.max()), float(y.max())
    wanted = max(1, x.size // POINTS_PER_BUCKET)
    # points on a line have no area: use the same number of buckets along the line
    side = max(sqrt(width * depth / wanted), max(width, depth) / wanted) or 1.0
    columns, rows = max(1, ceil(width / side)), max(1, ceil(depth / side))
    column = np.minimum(np.floor(x / side), columns - 1).astype(np.int64)
    row = np.minimum(np.floor(y / side), rows - 1).astype(np.int64)
    bucket = row * columns + column
    order = np.argsort(bucket, kind="stable")
    counts = np.bincount(bucket, minlength=columns * rows)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Buckets(x[order], y[order], z[order], (x0, y0), starts, side, columns, rows)
