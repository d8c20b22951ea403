"""How much work a call of `build_lod` is: bytes and steps, no machine constants."""

from math import log
from typing import Any

from spatialq.functions.declaration import Size, Work

BYTES_IN = 24 + 8 + 8
"""Of a point: coordinates, colour, point_id."""
BYTES_SAMPLE = 41
"""Of a point or a voxel in the result."""
BYTES_DEVICE = 95, 80
"""Of a point and of a voxel on the device: input and the sorting of its order; masks and sums."""
BYTES_KEPT = 8, 16
"""Of a point and a voxel of a tree that is built."""
BYTES_HOST = 172, 65
"""The same in main memory, the table and what is written of it included."""
BYTES_ATTRIBUTE = 8
"""Of a value of an attribute, of a point and of each sample, at most."""
BYTES_GRID = 256 << 20
"""The counting grid, whatever the cloud."""
TILE = 1 << 22
"""Points that the device must have room for: a larger cloud goes through it tile by tile."""
NEIGHBOURS = 8
"""Voxels that a sample weighs in."""


def voxels_a_point(options: Any) -> float:
    """Estimate how many voxels, on all levels, there are for each point of a surface.

    It goes through some 2 g^2 cells of a grid, and a lowest inner node has about twice the points
    of a full leaf. As long as points are fewer than cells, each has a voxel of its own on a level;
    above, points are four times as many from level to level, and voxels are not.
    """
    occupancy = options.grid_size**2 / options.max_points
    return 4 / 3 * occupancy if occupancy < 1 else 4 / 3 + log(occupancy, 4)


def bytes_device(options: Any) -> int:
    """Estimate the memory of the device for a point."""
    return _bytes(BYTES_DEVICE, options)


def bytes_kept(options: Any) -> int:
    """Estimate what a point takes on the device beside its coordinates until samples are made."""
    return _bytes(BYTES_KEPT, options)


def bytes_host(options: Any) -> int:
    """Estimate the main memory for a point."""
    point, voxel = BYTES_HOST
    attributes = BYTES_ATTRIBUTE * len(options.more_columns)
    return _bytes((point + 2 * attributes, voxel + attributes), options)


def _bytes(of_each: tuple[int, int], options: Any) -> int:
    point, voxel = of_each
    return round(point + voxel * voxels_a_point(options))


def work(size: Size, options: Any) -> Work:
    """Count points, and how many voxels their samples meet; a single leaf has no voxels."""
    rows = size.rows
    samples = rows if rows > options.max_points else 0
    return Work(
        bytes_in=BYTES_IN * rows,
        bytes_out=round(BYTES_SAMPLE * (rows + samples * voxels_a_point(options))),
        steps={
            "points": rows,
            "samples": samples * (NEIGHBOURS if options.strategy == "weighted" else 1),
        },
        bytes_kernel=bytes_device(options) * min(rows, max(TILE, options.max_points)) + BYTES_GRID,
    )
