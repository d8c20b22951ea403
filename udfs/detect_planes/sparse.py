"""Whether a cloud has too few points for planes of the size of a roof."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.strays import ends_of
from spatialq.runtime import cuda
from spatialq.runtime.cuda import on_gpu

from .octree import fewest_of_node
from .search import SUPPORT

if TYPE_CHECKING:
    from . import Options

SQUARE = 10.0
"""Side of a surface of which is said how many points it has, metres: that of a roof."""

WIDE = 10
"""A cloud is looked at if it is as wide as this many squares: rooms are not surveys of roofs."""

TIMES = 5
"""A surface with this many times the points that a plane must have is usually found. Of the roof
faces of generated villages (`benchmarks/plane_roofs.py`, seeds 7 to 9) at least 80 % are found from
there on, with the defaults and with smaller planes."""

SAMPLE, CLEARLY = 100_000, 2
"""Points that are counted first, evenly spread over the rows; where they say that there are so many
times the points that are needed, no others are counted."""


def doubt(arguments: Mapping[str, Any], options: "Options", metres: float) -> str:
    """Say that surfaces of the size of a roof have too few points, if they have.

    Looked at from above, the square of the median point counts: what is not covered by points, such
    as the ground around the roofs of a cloud of roofs alone, changes nothing.

    Parameters
    ----------
    arguments
        Of a kernel.
    options : Options
    metres : float
        In a unit of x and y.
    """
    x, y = arguments["x"], arguments["y"]
    if len(x) == 0:
        return ""
    side = SQUARE / metres
    low, high = ends_of([x, y])
    wide = (high - low) / side
    if not WIDE <= wide.max() < np.iinfo(np.int32).max:
        return ""
    needed = TIMES * (options.min_points or SUPPORT * fewest_of_node(options, len(x)))
    if len(x) >= needed * np.ceil(wide).prod():
        return ""  # there are enough even if they cover the whole extent
    every = max(1, len(x) // SAMPLE)
    if every > 1 and every * _of_median([x[::every], y[::every]], low, side) >= CLEARLY * needed:
        return ""
    found = _of_median([x, y], low, side)
    if found >= needed:
        return ""
    return (
        f"{found / SQUARE**2:.2g} points per square metre are few: surfaces of {SQUARE:.0f} by "
        f"{SQUARE:.0f} m have {found} points, and many of less than {needed:.0f} are not found; "
        "smaller s_ms and min_points, with max_rmse, find more of them"
    )


def _of_median(xy: Sequence[Any], low: Any, side: float) -> int:
    """Count the points in the square of the median point."""
    columns, rows = (
        ((_on_host(values) - least) / side).astype(np.int64)
        for values, least in zip(xy, low, strict=True)
    )
    counts = np.unique(columns << 32 | rows, return_counts=True)[1]
    counts.sort()
    upto = counts.cumsum()
    return int(counts[np.searchsorted(upto, upto[-1] / 2)])


def _on_host(values: Any) -> Any:
    return cuda.device().download(values) if on_gpu(values) else values
