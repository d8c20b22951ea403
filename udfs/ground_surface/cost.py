"""How much work a call of `ground_surface` is: bytes and steps, no machine constants."""

import sys
from dataclasses import replace
from typing import Any

from spatialq.functions.declaration import Size, Work

from ..owm_ground import cost as owm_ground

WINDOWS_PER_SEED = 8
"""A seed is the lowest point of several windows; there are hardly more than this suggests."""

BYTES_PER_POINT = 24 + 24
"""x, y, z; the same in order."""

BYTES_PER_VERTEX = 2 * (12 + 2 * 8)
"""Two triangles for each point that is triangulated, with the number of their strips and sum."""

BYTES_PER_CELL = 8 + 4 + 1 + 24
"""Height, triangle, whether a height is wanted; x, y, z of the result."""


def work(size: Size, options: Any) -> Work:
    """Count what finds the seeds, the points that are triangulated, and the cells of the result.

    Points that are ground themselves are all triangulated, which the host does for either device.
    """
    steps, vertices = _vertices(size, options)
    cells = _cells(size, options)
    visits = options.neighbours if options.method == "idw" else 1
    return Work(
        bytes_in=24 * size.rows,
        bytes_out=round(8 * cells),  # x and y are made where they are needed
        steps=steps | {"vertices": vertices, "cells": visits * cells},
        bytes_kernel=round(
            BYTES_PER_POINT * size.rows + BYTES_PER_VERTEX * vertices + BYTES_PER_CELL * cells
        ),
    )


def work_in_tiles(size: Size, options: Any, tiles: int) -> Work:
    """Count the tiles in which seeds are found; triangles and cells are not divided."""
    whole = work(size, options)
    if options.source != "seeds":
        return whole
    _, vertices = _vertices(size, options)
    rest = (BYTES_PER_VERTEX + 24) * vertices + BYTES_PER_CELL * _cells(size, options)
    seeds = owm_ground.work_in_tiles(size, options, tiles)
    return replace(
        whole,
        bytes_in=seeds.bytes_in,
        bytes_kernel=seeds.bytes_kernel + round(rest),
        bytes_host=seeds.bytes_host,
    )


def _vertices(size: Size, options: Any) -> tuple[dict[str, float], float]:
    """Give the steps of finding seeds, and the number of points that are triangulated."""
    if options.source != "seeds":
        return {"points": size.rows, "windows": 0.0, "scattered": 0.0}, float(size.rows)
    steps = owm_ground.steps(size, options)
    return steps, min(float(size.rows), steps["windows"] / WINDOWS_PER_SEED)


def _cells(size: Size, options: Any) -> float:
    cells: float = min(1 + size.area / options.resolution / options.resolution, sys.maxsize)
    return cells
