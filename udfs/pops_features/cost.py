"""How much work a call of `pops_features` is: bytes and steps, no machine constants."""

from typing import Any

from spatialq.udf import Work


def work(rows: int, options: Any) -> Work:
    """Count what the kernel moves, for a grid of as many cells."""
    visits = sum(_overlap(options, k) for k in range(len(options.scales)))
    return Work(
        bytes_in=4 * rows,
        bytes_out=8 * rows,
        steps=max(1, round(visits * rows)),
        bytes_kernel=64 * rows,
    )


def _overlap(options: Any, k: int) -> float:
    """How many patches of a scale a cell is in."""
    return 4.0 if options.steps is None else max(1.0, options.scales[k] / options.steps[k]) ** 2
