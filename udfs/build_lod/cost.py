"""How much work a call of `build_lod` is: bytes and steps, no machine constants."""

from typing import Any

from spatialq.udf import Work

BYTES_IN = 24 + 8 + 8
"""Of a point: coordinates, colour, point_id."""
BYTES_OUT = 42 * 3 // 2
"""Of a point: a sample of the leaf, and of half a voxel."""
BYTES_KERNEL = 120
"""Of a point on the device: input, sorted points, their order, masks and sums of the voxels."""
BYTES_GRID = 256 << 20
"""The counting grid, whatever the cloud."""
TILE = 1 << 22
"""Points that the device must have room for: a larger cloud goes through it tile by tile."""
NEIGHBOURS = 8
"""Voxels that a sample weighs in."""


def work(rows: int, options: Any) -> Work:
    """Count what the kernel moves and how many voxels its samples meet."""
    return Work(
        bytes_in=BYTES_IN * rows,
        bytes_out=BYTES_OUT * rows,
        steps=rows * (NEIGHBOURS if options.strategy == "weighted" else 1),
        bytes_kernel=BYTES_KERNEL * min(rows, max(TILE, options.max_points)) + BYTES_GRID,
    )
