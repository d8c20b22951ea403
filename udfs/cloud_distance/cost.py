"""How much work a call of `cloud_distance` is."""

from math import pi
from typing import Any

from spatialq.functions.declaration import Size, Work

BYTES_TREE, BYTES_MAKING = 50, 130
"""Of a point: its tree, and what a GPU has while it makes that: coordinates, lists of rows, these
divided, and the tree."""
BYTES_POINT = {"nearest": 140, "m3c2": 240}
"""Of a point: its columns and those of its row, and for M3C2 the making of the tree as well."""


def work(size: Size, options: Any) -> Work:
    """Count the points, and for M3C2 those in their cylinders: as many as on a plane."""
    rows, others = float(size.rows), float(size.elements)
    around = 1.0
    if options.method == "m3c2" and size.area > 0:
        circle = pi * options.radius * options.radius
        own = (circle + pi * options.normal_radius * options.normal_radius) * rows
        around = min(2 * rows + others, 1 + (own + circle * others) / size.area)
    beside = BYTES_POINT[options.method] * size.rows
    return Work(
        bytes_in=24 * (size.rows + size.elements),
        bytes_out=80 * size.rows,
        steps={"points": rows + others, "neighbours": rows * around},
        bytes_kernel=max(BYTES_MAKING * size.elements, BYTES_TREE * size.elements + beside),
    )
