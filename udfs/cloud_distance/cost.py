"""How much work a call of `cloud_distance` is."""

from math import pi
from typing import Any

from spatialq.functions.declaration import Size, Work


def work(size: Size, options: Any) -> Work:
    """Count the points, and for M3C2 those in their cylinders: as many as on a plane."""
    rows = float(size.rows)
    around = 1.0
    if options.method == "m3c2" and size.area > 0:
        circles = pi * (2 * options.radius**2 + options.normal_radius**2)
        around = min(3 * rows, 1 + circles * rows / size.area)
    return Work(
        bytes_in=48 * size.rows,
        bytes_out=80 * size.rows,
        steps={"points": rows, "neighbours": rows * around},
        bytes_kernel=250 * size.rows,
    )
