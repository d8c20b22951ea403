"""How much work a call of `plane_points` is: that of `detect_planes`, and a row a point back."""

from dataclasses import replace
from typing import Any

from spatialq.functions.declaration import Work

from ..detect_planes import cost


def work(rows: int, options: Any) -> Work:
    """Count what the kernel moves."""
    planes = cost.work(rows, options)
    return replace(planes, bytes_out=16 * rows, bytes_kernel=planes.bytes_kernel + 28 * rows)
