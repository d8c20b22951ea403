"""How much work a call of `ground_surface` is: bytes and steps, no machine constants."""

from typing import Any

from spatialq.functions.declaration import Work

TRIANGULATION = 500
"""Triangulating a point, on the host for either device, takes as long as binning this many."""

BYTES_PER_POINT = 24 + 24 + 2 * (12 + 2 * 8)
"""x, y, z; the same in order; two triangles, with the number of their strips and its sum."""

BYTES_PER_CELL = 8 + 4 + 1 + 24
"""Height, triangle, whether a height is wanted; x, y, z of the result."""


def work(rows: int, options: Any) -> Work:
    """Count what the kernel moves, with a cell for each point.

    Seeds are few beside the points they are found among; points that are ground themselves are
    all triangulated. How many cells there are depends on the extent, which `rows` cannot tell:
    terrain grids are seldom finer than the points, and often much coarser.
    """
    steps = rows if options.source == "seeds" else TRIANGULATION * rows
    return Work(
        bytes_in=24 * rows,
        bytes_out=8 * rows,  # x and y are made where they are needed
        steps=steps,
        bytes_kernel=(BYTES_PER_POINT + BYTES_PER_CELL) * rows,
    )
