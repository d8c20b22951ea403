"""Tiles of a cloud: strips with a halo, which say what a part of a call is of.

A tile is plain data. Its kernel gets the points of the strip and of its halo, and what it finds for
points of the halo is dropped, since their own tile finds that.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from spatialq.data.points import in_parts, read_only
from spatialq.runtime import buffers
from spatialq.runtime.arrays import Bools, Floats, Ints
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import n_threads, workers

SAMPLE = 1 << 16
"""Points that borders are found from: a tile then has its share of all, but for a hundredth."""
POINTS_PER_THREAD = 100_000
"""With fewer points per thread, starting another thread costs more than it saves."""


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

    def core(self, values: Floats) -> Bools:
        """Tell which points are of the strip itself, by their x or y."""
        inside: Bools = (values >= self.low) & (values < self.high)
        return inside


def runs_of(size: int, tiles: int) -> list[slice]:
    """Divide range(size) into at most so many runs, all of one length but for the last.

    Memory of a GPU that one run had is then exactly what the next one needs.
    """
    length = max(1, -(-size // tiles))
    return [slice(first, min(first + length, size)) for first in range(0, size, length)]


def strips(x: Floats, y: Floats, tiles: int, halo: float) -> list[Strip]:
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


def members(values: Floats, tiles: list[Strip]) -> list[Ints]:
    """List the positions of the points of each strip and its halo, ascending, in two passes.

    Parameters
    ----------
    values : float64[n]
        Finite x or y of the points, along the axis of the strips.
    tiles : list of Strip
        Along one axis, in its order.
    """
    values = read_only(values)
    lows, highs = (np.array(ends) for ends in zip(*(tile.around for tile in tiles), strict=True))
    with workers(max(1, min(n_threads(), values.size // POINTS_PER_THREAD))) as pool:
        parts = pool.spans(values.size)
        # of each strip, one part after the other
        counts = np.transpose(pool.map(lambda part: _count(values, lows, highs, *part), parts))
        ends = np.cumsum(counts).reshape(counts.shape)
        at = buffers.scratch(int(counts.sum()), np.int64)
        starts = [*np.transpose(ends - counts).copy()]
        pool.map(lambda part, first: _list(values, lows, highs, *part, first, at), parts, starts)
    return np.split(at, ends[:-1, -1])


def gather(values: Any, at: Ints) -> Any:
    """Take values by their positions, in threads, as `values[at]` does."""
    values, result = read_only(values), buffers.scratch(at.size, values.dtype)
    in_parts(lambda first, stop: _gather(values, at, result, first, stop), at.size)
    return result


@njit(cache=True, nogil=True)
def _count(values: Any, lows: Any, highs: Any, first: int, stop: int) -> Any:
    """Count the values of a part of them between the ends of each strip."""
    counts = np.zeros(lows.size, np.int64)
    for i in range(first, stop):
        k = np.searchsorted(highs, values[i])
        while k < lows.size and lows[k] <= values[i]:
            counts[k] += 1
            k += 1
    return counts


@njit(cache=True, nogil=True)
def _list(values: Any, lows: Any, highs: Any, first: int, stop: int, ends: Any, at: Any) -> None:
    """List them; `ends` is where the list of each strip goes on."""
    for i in range(first, stop):
        k = np.searchsorted(highs, values[i])
        while k < lows.size and lows[k] <= values[i]:
            at[ends[k]] = i
            ends[k] += 1
            k += 1


@njit(cache=True, nogil=True)
def _gather(values: Any, at: Any, result: Any, first: int, stop: int) -> None:
    for k in range(first, stop):
        result[k] = values[at[k]]
