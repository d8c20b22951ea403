"""How much work a call of `pops_features` or `pops_patches` is: bytes and steps."""

from dataclasses import replace
from typing import TYPE_CHECKING

from spatialq.functions.declaration import Size, Work

if TYPE_CHECKING:
    from .options import Options

BYTES_RESULT = 8
"""Of the result for each cell of the grid: 99 rows of statistics are of 33 x 33 cells, say."""

BYTES_KERNEL = 64
"""For each cell of the grid: height, features of its patches, result."""

BYTES_BAND = 3 << 30
"""At most, whatever the grid: it goes through the device in bands."""

CELLS = 5
"""Along the smallest patch, as in the paper: a grid of so many cells may have any spacing."""

BYTES_ROW = 44
"""Of a patch in the result: three whole numbers, two numbers, two codes of texts."""


def work(size: Size, options: "Options") -> Work:
    """Count cells, how often one is visited (once for each patch that it is in), and patches."""
    visits = sum(_patches_of_a_cell(options, k) for k in range(len(options.scales)))
    methods = len(options.methods)
    return Work(
        bytes_in=4 * size.rows,
        bytes_out=BYTES_RESULT * size.rows,
        steps={
            "cells": size.rows,
            "visits": visits * methods * size.rows,
            "patches": _patches(size, options) * methods,
        },
        bytes_kernel=min(BYTES_KERNEL * size.rows, BYTES_BAND),
    )


def _patches_of_a_cell(options: "Options", k: int) -> float:
    if options.steps is None:
        return 4.0  # half a patch along x and y
    overlap = max(1.0, options.scales[k] / options.steps[k])
    return overlap * overlap


def _patches(size: Size, options: "Options") -> float:
    """Estimate the patches of all scales; without an extent, of cells as large as the paper's."""
    cell = min(options.scales) / CELLS
    area = size.rows * cell * cell if size.extent is None else size.area
    steps = options.steps or [scale / 2 for scale in options.scales]
    return sum(min(area / step / step, size.rows) for step in steps)


def work_of_patches(size: Size, options: "Options") -> Work:
    """Count the same, and one row for each patch and feature that comes back."""
    found = sum(map(len, options.features.values()))
    rows = found * _patches(size, options)
    counted = work(size, options)
    return replace(
        counted, bytes_out=round(BYTES_ROW * rows), steps={**counted.steps, "rows": rows}
    )
