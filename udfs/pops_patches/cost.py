"""How much work a call of `pops_patches` is: that of `pops_features`, and every patch back."""

from dataclasses import replace
from typing import Any

from spatialq.functions.declaration import Work

from ..pops_features.cost import work as features

CELLS = 5
"""Along the smallest patch, as in the paper: a grid of so many cells may have any spacing."""

BYTES_ROW = 44
"""Of the result: three whole numbers, two numbers, two codes of texts."""


def work(rows: int, options: Any) -> Work:
    """Count what the kernel moves: a row for each patch and feature."""
    cell = min(options.scales) / CELLS
    steps = options.steps or [scale / 2 for scale in options.scales]
    patches = sum((cell / max(step, cell)) ** 2 for step in steps)
    found = sum(map(len, options.features.values()))
    bytes_out = round(BYTES_ROW * found * patches * rows)
    return replace(features(rows, options), bytes_out=bytes_out)
