"""How much work a call of `detect_planes` or `plane_points` is: bytes and steps."""

from dataclasses import replace
from math import ceil
from typing import Any

from spatialq.functions.declaration import Size, Work

POINTS_PER_NODE = 50
"""A planar node has about a sixteenth of the points of the cells where the search begins, and
those have a few hundred."""
MAX_NODES = 20_000
"""Above a million points, a cell of the beginning has a share of the cloud: nodes do not grow."""


def steps(size: Size) -> dict[str, float]:
    """Count points, planar nodes, and pairs of nodes.

    Every point is read about nine times: for the bounds, its order, its cell, outliers, layers, the
    rest, twice for the extents of planes, and for their surfaces. Nodes vote in threads or on the
    GPU; then the host compares the nodes that are left with each plane, on one thread. How many
    planes there are, only the search itself finds out: rough terrain in a small extent takes ten
    times as long as a room of as many points.
    """
    nodes = min(size.rows / POINTS_PER_NODE, MAX_NODES)
    return {"points": size.rows, "nodes": nodes, "pairs": nodes * nodes}


def work(size: Size, options: Any) -> Work:
    """Count what the kernel moves and goes over.

    In the memory of a GPU a point has its coordinates, those of the rest, and its step and cell
    twice.
    """
    del options
    return Work(
        bytes_in=24 * size.rows, bytes_out=0, steps=steps(size), bytes_kernel=72 * size.rows
    )


def work_of_points(size: Size, options: Any) -> Work:
    """Count the same, and one row per point that comes back."""
    planes = work(size, options)
    return replace(
        planes, bytes_out=16 * size.rows, bytes_kernel=planes.bytes_kernel + 28 * size.rows
    )


BYTES_RESIDENT = 16
"""Of a point, for the cells of the octree that it is in, which no tile divides."""

PASSES = 8
"""Over the coordinates, or the steps, of the tiles: those of `steps`, and the levels of octrees."""


def work_in_tiles(size: Size, options: Any, tiles: int) -> Work:
    """Count passes over runs of points, beside the cells and planes of all."""
    return _in_tiles(work(size, options), size, tiles)


def work_of_points_in_tiles(size: Size, options: Any, tiles: int) -> Work:
    """Count the same, and one row per point that comes back."""
    return _in_tiles(work_of_points(size, options), size, tiles)


def _in_tiles(whole: Work, size: Size, tiles: int) -> Work:
    needed = BYTES_RESIDENT * size.rows + ceil(whole.bytes_kernel / tiles)
    return replace(whole, bytes_in=PASSES * whole.bytes_in, bytes_kernel=needed)
