"""Whether a cloud has too few points for planes of the size of a roof."""

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Squares:
    """Squares of the size of a roof, looked at from above, in which points are counted.

    The square of the median point counts: what is not covered by points, such as the ground around
    the roofs of a cloud of roofs alone, changes nothing.
    """

    west: float
    south: float
    side: float
    """In units of x and y."""
    needed: float
    """Points of a square from which on its surfaces are usually found."""

    @classmethod
    def of(
        cls, low: Any, high: Any, size: int, options: "Options",
        metres: float,
    ) -> "Squares | None":  # fmt: skip
        """Make the squares of a cloud; None where no count can say that points are too few.

        Parameters
        ----------
        low, high : arrays or tuples of float
            The least and the greatest x and y.
        size : int
            Number of points.
        options : Options
        metres : float
            In a unit of x and y.
        """
        if size == 0:
            return None
        side = SQUARE / metres
        wide = (np.array(high[:2]) - np.array(low[:2])) / side
        if not WIDE <= wide.max() < np.iinfo(np.int32).max:
            return None
        needed = TIMES * (options.min_points or SUPPORT * fewest_of_node(options, size))
        if size >= needed * np.ceil(wide).prod():
            return None  # there are enough even if they cover the whole extent
        return cls(float(low[0]), float(low[1]), side, float(needed))

    def count(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Give the squares that have points, int64[n], and how many each has, int64[n]."""
        columns, rows = (
            ((_on_host(values) - least) / self.side).astype(np.int64)
            for values, least in ((x, self.west), (y, self.south))
        )
        return np.unique(columns << 32 | rows, return_counts=True)

    def doubt(self, counts: Any) -> str:
        """Say that surfaces have too few points, if they have: int64[squares]."""
        found = _of_median(counts)
        if found >= self.needed:
            return ""
        return (
            f"{found / SQUARE**2:.2g} points per square metre are few: surfaces of {SQUARE:.0f} by "
            f"{SQUARE:.0f} m have {found} points, and many of less than {self.needed:.0f} are not "
            "found; smaller s_ms and min_points, with max_rmse, find more of them"
        )


def doubt(arguments: Mapping[str, Any], options: "Options", metres: float) -> str:
    """Say that surfaces of the size of a roof have too few points, if they have.

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
    low, high = ends_of([x, y])
    squares = Squares.of(low, high, len(x), options, metres)
    if squares is None:
        return ""
    every = max(1, len(x) // SAMPLE)
    if every > 1:
        sample = _of_median(squares.count(x[::every], y[::every])[1])
        if every * sample >= CLEARLY * squares.needed:
            return ""
    return squares.doubt(squares.count(x, y)[1])


def _of_median(counts: Any) -> int:
    """Give the points of the square of the median point."""
    counts = np.sort(counts)
    upto = counts.cumsum()
    return int(counts[np.searchsorted(upto, upto[-1] / 2)])


def _on_host(values: Any) -> Any:
    return cuda.device().download(values) if on_gpu(values) else values
