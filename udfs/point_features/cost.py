"""How much work a call of `point_features` is."""

from math import pi
from typing import Any

from spatialq.functions.declaration import Size, Work


def work(size: Size, options: Any) -> Work:
    """Count the points, and their neighbours: within a radius, as many as on a plane."""
    rows = float(size.rows)
    around = options.k
    if options.radius is not None and size.area > 0:
        # a product, which may be infinite: a power of a large number would fail
        disc = pi * options.radius * options.radius
        around = min(rows, 1 + disc * rows / size.area)
    return Work(
        bytes_in=24 * size.rows,
        bytes_out=116 * size.rows,
        steps={"points": rows, "neighbours": rows * around},
        bytes_kernel=200 * size.rows,
    )
