"""How much work a call of `coverage` is."""

from typing import Any

from spatialq.functions.declaration import Size, Work

CELLS_PER_ELEMENT = 2000
"""Cells of the faces of an element of a building: 10 to 20 square metres."""


def work(size: Size, options: Any) -> Work:
    """Count the points, which are read once, and the cells, from which rays go to the scanner."""
    stations = max(1, len(options.scanner or ()) // 3)
    cells = float(CELLS_PER_ELEMENT) * size.elements
    return Work(
        bytes_in=24 * size.rows,
        bytes_out=0,
        steps={"points": float(size.rows), "cells by stations": cells * stations},
        bytes_kernel=24 * size.rows,
    )
