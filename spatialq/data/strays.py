"""Stray points of a cloud: few points that are far from all others, wherever they come from.

Points at (0, 0, 0) or at a billion, such as readers make of damaged records, would otherwise decide
what grids and octrees are laid over.

The *core* of a cloud is the box that is left when the `few(n)` least and greatest values of each
axis are cut off. It grows: every point that is no farther from the box, along each axis, than half
its longest side joins it, as long as there are any; a core that is one place, since nearly all
points coincide, reaches PLACE units of x and y first. The points that never join are stray. So
there are at most `few(n)` on each side; which they are depends neither on the order of the points
nor on how far the stray points are; and one more of them makes no other point stray or not, as long
as there are no more than `few(n)` on its side: the core then ends at another point that has joined
anyway.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Any

import numpy as np

from spatialq.data.points import in_parts
from spatialq.errors import StrayPointsWarning
from spatialq.runtime import buffers, cuda, progress
from spatialq.runtime.arrays import Floats
from spatialq.runtime.cuda import on_gpu

STRAYS_ALWAYS_ALLOWED, POINTS_PER_STRAY, LEAST_POINTS_PER_STRAY = 10, 100_000, 100
"""Stray points on each side of a cloud, at most: this many, or one of POINTS_PER_STRAY points if
that is more, but no more than one of LEAST_POINTS_PER_STRAY points."""
REACH = 1 / 2
"""How far a point may be from the box of the others to belong to it, in longest sides."""
PLACE = 1000.0
"""Likewise of a box without a size, in units of x and y."""
SAMPLED, TAIL = 4096, 64
"""Points of a sample, at least, and the share of them that is cut off on each side."""
NAMED = 3
"""Points whose places a warning has."""
BLOCK = 1 << 16
"""Values that the cache holds."""


def few(n: int) -> int:
    """Count the points that may be stray on each side of n points."""
    return min(max(STRAYS_ALWAYS_ALLOWED, n // POINTS_PER_STRAY), n // LEAST_POINTS_PER_STRAY)


@dataclass(frozen=True)
class Box:
    """A box that grows. Lengths along z count `z_to_xy_scale` times."""

    low: Any
    high: Floats
    """float64[3]"""
    z_to_xy_scale: float

    @property
    def weights(self) -> Any:
        """How many times lengths along each axis count."""
        return np.array([1.0, 1.0, self.z_to_xy_scale])

    @property
    def side(self) -> float:
        """Longest side."""
        return float(((self.high - self.low) * self.weights).max())

    @property
    def reach(self) -> "Box":
        """The box of the points that belong to this one."""
        return self.widened(REACH * self.side)

    def widened(self, length: float) -> "Box":
        """Make the box that ends so many units of x and y farther out."""
        far = length / self.weights
        return Box(self.low - far, self.high + far, self.z_to_xy_scale)

    def holds(self, other: "Box") -> bool:
        """Whether another box is inside this one; never one with NaN."""
        return bool((self.low <= other.low).all() and (other.high <= self.high).all())

    def around(self, other: "Box") -> "Box":
        """Make the box around this one and another."""
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Box(low, high, self.z_to_xy_scale)

    def around_points(self, points: Any) -> "Box":
        """Make the box around this one and points (float64[n, 3])."""
        low, high = (
            end(points, axis=0, initial=first)
            for end, first in ((np.min, np.inf), (np.max, -np.inf))
        )
        return self.around(Box(low, high, self.z_to_xy_scale))

    def has(self, points: Any) -> Any:
        """Say which of some points (float64[n, 3]) are inside: bool[n]."""
        return ((points >= self.low) & (points <= self.high)).all(axis=1)

    def grown(self, points: Any) -> tuple["Box", Any]:
        """Let points join; give the box that is left, and which of the points are outside.

        Every second step makes the box longer by half its longest side, or ends it.
        """
        box, outside = self, np.arange(len(points))
        while outside.size:
            near = box.reach.has(points[outside])
            if not near.any():
                break
            box = box.around_points(points[outside[near]])
            outside = outside[~near]
        return box, outside


def ends_of(xyz: Sequence[Any]) -> Any:
    """Find the box around all points: float64[2, 3], NaN where a value is.

    Parameters
    ----------
    xyz : three of float64[n], n > 0
        As for `strays_of`.
    """
    return _ends(_views(xyz))


def strays_of(
    xyz: Sequence[Any], z_to_xy_scale: float = 1.0, ends: Any = None
) -> tuple[Any, Box] | None:
    """Find the stray points of a cloud.

    Parameters
    ----------
    xyz : three of float64[n]
        Arrays of NumPy, mapped files included, or of the GPU.
    z_to_xy_scale : float
        Units of x and y in one unit of z.
    ends : float64[2, 3], optional
        As `ends_of` gives them, where they are known.

    Returns
    -------
    rows : int64[k], k > 0
        The positions of the stray points, ascending, in main memory.
    box : Box
        Around all others.
    None
        If there are none, or if a coordinate is not finite.
    """
    axes = _views(xyz)
    n = len(xyz[0])
    most = few(n)
    if most == 0:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        sample = _sample(axes, most, z_to_xy_scale)
        ends = _ends(axes) if ends is None else ends
        if sample.reach.holds(Box(ends[0], ends[1], z_to_xy_scale)) or not np.isfinite(ends).all():
            return None
        rows, box = _outside(axes, sample)
        points = np.stack([values_at(each, rows) for each in axes], axis=1)
        box, outside = box.grown(points)
        rows, points = rows[outside], points[outside]
        # The points that have joined are in the box, so that what the core has more is among those
        # outside; and what grows from a part of the core is a part of what grows from the core.
        box, outside = grow(box.around(_core_among(points, box, most)), points)
    return (rows[outside], box) if outside.size else None


def grow(core: Box, points: Any) -> tuple[Box, Any]:
    """Let points join a core.

    Parameters
    ----------
    core : Box
        Or a box that it grows to.
    points : float64[n, 3]
        All points outside, at least.

    Returns
    -------
    box : Box
        Around all that are not stray.
    outside : int64[k]
        Which points are stray.
    """
    box, outside = core.grown(points)
    if box.side == 0:  # the core is one place, which nothing has joined
        near = box.widened(PLACE).has(points)
        box, outside = box.around_points(points[near]).grown(points)
    return box, outside


def _views(xyz: Sequence[Any]) -> list[Any]:
    return [cuda.device().view(each) if on_gpu(each) else each for each in xyz]


def _sample(axes: list[Any], most: int, z_to_xy_scale: float) -> Box:
    """Find a box that the core contains, from points that are evenly spread over the arrays.

    As many points of the sample as are cut off are at or beyond its end, so that at least as many
    of the cloud are: more than are cut off for the core, which therefore ends there or farther out.
    """
    n = len(axes[0])
    rows = np.arange(0, n, max(1, n // max(SAMPLED, TAIL * (most + 1))))
    low, high = np.empty(3), np.empty(3)
    for axis, values in enumerate(axes):
        part = values_at(values, rows)
        cut = max(most, part.size // TAIL)
        low[axis], high[axis] = np.partition(part, [cut, part.size - 1 - cut])[
            [cut, part.size - 1 - cut]
        ]
    return Box(low, high, z_to_xy_scale)


def _ends(axes: list[Any]) -> Any:
    if not isinstance(axes[0], np.ndarray):
        return np.array([[float(end(values)) for values in axes] for end in _END_OF])

    def ends(first: int, stop: int) -> Any:
        return _joined(
            np.array([[end(values[block]) for values in axes] for end in _END_OF])
            for block in _blocks(first, stop)
        )

    return _joined(in_parts(ends, axes[0].size))


_END_OF = tuple(map(methodcaller, ("min", "max")))


def _outside(axes: list[Any], box: Box) -> tuple[Any, Box]:
    """Find the points that are out of reach of a box, and let all others join it.

    Returns
    -------
    rows : int64[m]
        Ascending, in main memory.
    box : Box
    """
    reach = box.reach

    def look(block: slice) -> tuple[Any, Any]:
        parts = [values[block] for values in axes]
        near: Any = True
        for values, low, high in zip(parts, reach.low.tolist(), reach.high.tolist(), strict=True):
            near &= (values >= low) & (values <= high)
        rows = _on_host((~near).nonzero()[0]) + block.start
        joined = [values[near] for values in parts] if rows.size else parts
        if not joined[0].size:
            return rows, np.stack([box.low, box.high])
        return rows, np.array([[float(end(values)) for values in joined] for end in _END_OF])

    if isinstance(axes[0], np.ndarray):

        def part(first: int, stop: int) -> tuple[Any, Any]:
            found, ends = zip(*map(look, _blocks(first, stop)), strict=True)
            return np.concatenate(found), _joined(ends)

        found, ends = zip(*in_parts(part, axes[0].size), strict=True)
    else:
        found, ends = zip(look(slice(0, axes[0].size)), strict=True)
    low, high = _joined(ends)
    return np.concatenate(found), box.around(Box(low, high, box.z_to_xy_scale))


def _core_among(points: Any, box: Box, most: int) -> Box:
    """Make a box larger where the core is: more than `most` of the points are beyond its side."""
    low, high = box.low.copy(), box.high.copy()
    for axis, values in enumerate(points.T):
        below, above = values[values < low[axis]], values[values > high[axis]]
        if below.size > most:
            low[axis] = np.partition(below, most)[most]
        if above.size > most:
            high[axis] = -np.partition(-above, most)[most]
    return Box(low, high, box.z_to_xy_scale)


def _blocks(first: int, stop: int) -> Iterator[slice]:
    for start in range(first, stop, BLOCK):
        progress.check()
        yield slice(start, min(start + BLOCK, stop))


def _joined(boxes: Iterable[Any]) -> Any:
    first, *others = boxes
    if not others:
        return first
    lows, highs = zip(first, *others, strict=True)
    return np.stack([np.min(lows, axis=0), np.max(highs, axis=0)])


def warn_of(
    function: str, xyz: Sequence[Any], strays: Any, *, level: float = 1.0, rows: Sequence[str] = ()
) -> None:
    """Warn that stray points are left out: how many, where the first ones are, and what they have.

    Parameters
    ----------
    function : str
    xyz : three of float64[n]
        All points, in main memory or on the GPU.
    strays : int64[k]
        Positions of the stray points.
    level : float
        By how much z is to be divided for the unit of z that the user knows.
    rows : sequence of str
        What their rows have, such as "height NULL"; nothing if they have no rows.
    """
    k, is_one = len(strays), len(strays) == 1
    first = np.stack([values_at(values, strays[:NAMED]) for values in xyz], axis=1)
    places = [f"({x:.10g}, {y:.10g}, {z / level:.10g})" for x, y, z in first.tolist()]
    places += [f"{k - NAMED} more"] if k > NAMED else []
    listed = " and ".join(filter(None, [", ".join(places[:-1]), places[-1]]))
    have = f" and {'has' if is_one else 'have'} {', '.join(rows)}" if rows else ""
    message = (
        f"{function}: {k} of {len(xyz[0])} points {'is' if is_one else 'are'} far from all others, "
        f"at {listed}: {'it was' if is_one else 'they were'} left out{have}"
    )
    warnings.warn(message, StrayPointsWarning, stacklevel=4)


def values_at(values: Any, rows: Any) -> Any:
    """Give, in main memory, the values in some rows of an array, which may be on the GPU."""
    if not on_gpu(values):
        return buffers.take(values, rows)
    device = cuda.device()
    return device.download(device.view(values)[device.upload_small(rows)])


def _on_host(values: Any) -> Any:
    return values if isinstance(values, np.ndarray) else cuda.device().download(values)
