"""How much work a call of `pops_features` or `pops_patches` is: bytes and steps."""

from dataclasses import replace
from typing import Any

from spatialq.functions.declaration import Work

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


def work(rows: int, options: Any) -> Work:
    """Count what the kernel moves and how often it visits a cell: once for each patch it is in."""
    visits = sum(_patches_of_a_cell(options, k) for k in range(len(options.scales)))
    return Work(
        bytes_in=4 * rows,
        bytes_out=BYTES_RESULT * rows,
        steps=round(visits * len(options.methods) * rows),
        bytes_kernel=min(BYTES_KERNEL * rows, BYTES_BAND),
    )


def _patches_of_a_cell(options: Any, k: int) -> float:
    if options.steps is None:
        return 4.0  # half a patch along x and y
    overlap: float = max(1.0, options.scales[k] / options.steps[k])
    return overlap * overlap


def work_of_patches(rows: int, options: Any) -> Work:
    """Count the same, and one row for each patch and feature that comes back."""
    cell = min(options.scales) / CELLS
    steps = options.steps or [scale / 2 for scale in options.scales]
    patches = sum((cell / max(step, cell)) ** 2 for step in steps)
    found = sum(map(len, options.features.values()))
    return replace(work(rows, options), bytes_out=round(BYTES_ROW * found * patches * rows))
