"""How much work a call of `detect_planes` or `plane_points` is: bytes and steps."""

from dataclasses import replace
from typing import Any

from spatialq.functions.declaration import Work


def work(rows: int, options: Any) -> Work:
    """Count what the kernel moves.

    Every point is read six times: for the bounds, its cell, outliers, the rest, and twice for
    its plane. Voting and peaks depend on the nodes, which are few beside the points. In the
    memory of a GPU a point has its coordinates, those of the rest, and its step and cell twice.
    """
    del options
    return Work(bytes_in=24 * rows, bytes_out=0, steps=rows, bytes_kernel=72 * rows)


def work_of_points(rows: int, options: Any) -> Work:
    """Count the same, and one row per point that comes back."""
    planes = work(rows, options)
    return replace(planes, bytes_out=16 * rows, bytes_kernel=planes.bytes_kernel + 28 * rows)
