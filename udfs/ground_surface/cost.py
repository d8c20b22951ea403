"""How much work a call of `ground_surface` is: bytes and steps, no machine constants."""

from typing import Any

from spatialq.udf import Work

TRIANGULATION = 500
"""Triangulating a point takes as long as binning this many."""


def work(rows: int, options: Any) -> Work:
    """Count what the kernel moves.

    Seeds are few beside the points they are found among; points that are ground themselves are
    all triangulated. The cells of the grid depend on the extent, which `rows` cannot tell.
    """
    steps = rows if options.source == "seeds" else TRIANGULATION * rows
    return Work(bytes_in=24 * rows, bytes_out=0, steps=steps, bytes_kernel=100 * rows)
