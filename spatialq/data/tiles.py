"""Tiles of a cloud: strips with a halo, which say what a part of a call is of.

A tile is plain data. Its kernel gets the points of the strip and of its halo, and what it finds for
points of the halo is dropped, since their own tile finds that.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from spatialq.runtime.threads import n_threads, workers

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLE = 1 << 16
"""Points that borders are found from: a tile then has its share of all, but for a hundredth."""
POINTS_PER_THREAD = 1_000_000


@dataclass(frozen=True)
class Strip:
    """The points with low <= x < high, or y, and a halo on either side."""

    axis: Literal["x", "y"]
    low: float
    high: float
    halo: float
    """In the unit of x and y."""

    @property
    def around(self) -> tuple[float, float]:
        """Borders of the halo, both included."""
        return self.low - self.halo, self.high + self.halo

    def points(self, values: "NDArray[np.float64]") -> "NDArray[np.int64]":
        """List the positions of the points of the strip and its halo, by their x or y."""
        low, high = self.around

        def find(part: tuple[int, int]) -> "NDArray[np.int64]":
            some = values[slice(*part)]
            return part[0] + np.flatnonzero((some >= low) & (some <= high))

        with workers(max(1, min(n_threads(), values.size // POINTS_PER_THREAD))) as pool:
            found = pool.map(find, pool.spans(values.size))
        return np.concatenate([np.empty(0, np.int64), *found])

    def core(self, values: "NDArray[np.float64]") -> "NDArray[np.bool_]":
        """Tell which points are of the strip itself, by their x or y."""
        inside: NDArray[np.bool_] = (values >= self.low) & (values < self.high)
        return inside


def strips(
    x: "NDArray[np.float64]", y: "NDArray[np.float64]", tiles: int, halo: float
) -> list[Strip]:
    """Divide a cloud of finite coordinates into strips of about equally many points.

    They go across the longer side of the cloud, and cover the whole plane. There are fewer where
    many points have one coordinate.

    Parameters
    ----------
    x, y : float64[n]
        At least one point.
    tiles : int
    halo : float
    """
    part = slice(None, None, -(-x.size // SAMPLE))
    sides = [np.ptp(values[part]) for values in (x, y)]
    axis: Literal["x", "y"] = "x" if sides[0] > sides[1] else "y"
    sample = np.sort((x if axis == "x" else y)[part])
    inner = np.unique(sample[[k * sample.size // tiles for k in range(1, tiles)]])
    borders = [-np.inf, *inner.tolist(), np.inf]
    return [Strip(axis, low, high, halo) for low, high in pairwise(borders)]
