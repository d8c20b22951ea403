"""How much work a call of `plane_elements` is: that of `detect_planes`, and the matching."""

from dataclasses import replace
from typing import Any

from spatialq.functions.declaration import Size, Work

from ..detect_planes import cost


def work(size: Size, options: Any) -> Work:
    """Count what the kernel moves and goes over; rows are the points.

    The planes' points come back to the host, where some thousand of each plane are matched with
    the elements near it. There are about as many planes as elements, with each of which the search
    compares nodes.
    """
    planes = cost.work(size, options)
    elements = float(size.elements)
    matching = {"elements": elements, "nodes by elements": planes.steps["nodes"] * elements}
    return replace(planes, bytes_out=8 * size.rows, steps={**planes.steps, **matching})


def work_in_tiles(size: Size, options: Any, tiles: int) -> Work:
    """Count the same, with the planes found in tiles."""
    planes = cost.work_in_tiles(size, options, tiles)
    return replace(work(size, options), bytes_in=planes.bytes_in, bytes_kernel=planes.bytes_kernel)
