"""How much work a call of `plane_elements` is: that of `detect_planes`, and one more pass."""

from dataclasses import replace
from typing import Any

from spatialq.functions.declaration import Work

from ..detect_planes import cost


def work(rows: int, options: Any) -> Work:
    """Count what the kernel moves; rows are the points.

    The planes' points come back to the host, where some thousand of each plane are matched with
    the elements near it: few beside the points.
    """
    return replace(cost.work(rows, options), bytes_out=8 * rows)
