"""How much work a call of `classify_ground` is: bytes and steps, no machine constants."""

from typing import Any

from spatialq.udf import Work

BYTES_PER_CELL = 64
"""Device memory of the grids of a cell: what is alive at once at the peak."""


def work(rows: int, options: Any) -> Work:
    """Count points; cells are at most four a point, as long as the cloud has no large holes."""
    del options
    return Work(
        bytes_in=24 * rows,
        bytes_out=9 * rows,
        steps=rows,
        bytes_kernel=(40 + 4 * BYTES_PER_CELL) * rows,
    )
