"""The positions of the windows: the borders that cut each axis, as in the reference program.

Everything here is one-dimensional, uses NumPy only, and serves all kernels. `borders` are the
sorted borders of all windows and all fill cells along an axis. They cut the axis into *slots*: the
open intervals between two borders, and the borders themselves, because windows are open and a point
on a border belongs to neither side. A window or a fill cell is then exactly a run of slots; no
tolerance is needed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np

from spatialq.data.tiles import Strip
from spatialq.runtime.arrays import Bools, Floats, Int32s, Ints

from . import Options
from .rounding import round_half_away, window_step

MAX_BORDERS = 20_000_000  # per axis
MAX_CELLS = 1 << 30
LEAF = 0.10  # the reference halves octants while half of their half side exceeds this
MAX_OCTREE = LEAF * 2**20  # half side of a root whose codes fit into 63 bits
MIN_STEP = 1000  # a step must have this many spacings of double precision
CURE = "take larger windows and cells, less overlap, or tiles"
MIN_SPARSE = 1 << 22  # a table of at most this many cells may be mostly empty

Span = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """The extent of a cloud, or of the survey that it is of."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    @classmethod
    def of(cls, bounds: tuple[float, ...]) -> "Box":
        """Make the box of xmin, ymin, xmax, ymax."""
        xmin, ymin, xmax, ymax = bounds
        return cls(xmin, xmax, ymin, ymax)

    @property
    def sides(self) -> tuple[Span, Span]:
        """Both ends along x, and along y."""
        return (self.x_low, self.x_high), (self.y_low, self.y_high)

    @property
    def width(self) -> float:
        """Extent along x, rounded to hundredths as in the reference."""
        return hundredths(self.x_high - self.x_low)

    @property
    def height(self) -> float:
        """Extent along y, likewise."""
        return hundredths(self.y_high - self.y_low)


@dataclass(frozen=True)
class SlotAxis:
    """One axis of the cloud, cut by the borders of windows and fill cells.

    A slot has a rank along the axis and a column in the table of cells. Intervals have the first
    columns and borders the last, so that the few cells on borders do not dilute the cache lines of
    all others.
    """

    borders: Floats
    """Sorted and unique, followed by infinity, which stops every search."""
    guess: Int32s
    """Bucket -> a border at or below every coordinate of the bucket, where the search starts.
    The buckets are equal parts of the span of the borders; one more is for its upper end."""
    columns: Int32s
    """Place -> column of its slot; place 2k is border k, place 2k + 1 the interval above it."""
    step: float
    """Distance of the borders if border k is exactly borders[0] + k * step and no slot was left
    out; columns are then computed instead of searched. Otherwise 0."""
    order: Int32s
    """Column of each slot, in the order of the axis."""
    window_start: Ints
    window_stop: Ints
    """Run of slots (ranks) of each window that has any."""
    fill_start: Ints
    fill_stop: Ints
    """The same for fill cells."""

    @property
    def lookup(self) -> tuple[Any, ...]:
        """The arguments with which `cells.locate` finds the column of a coordinate."""
        return self.step, self.borders, self.guess, self.columns

    @property
    def fill_cells(self) -> Ints:
        """Fill cell of each column; -1 where there is none."""
        cells = np.full(self.n_slots, -1, np.int64)
        for k, run in enumerate(zip(self.fill_start, self.fill_stop, strict=True)):
            cells[self.order[slice(*run)]] = k
        return cells

    @property
    def n_slots(self) -> int:
        """Number of columns of the table of cells along this axis."""
        return int(self.order.size)


def hundredths(value: float) -> float:
    """Round to hundredths of a unit, as the reference rounds lengths."""
    return round_half_away(100.0 * value) / 100.0


def window_count(extent: float, window_size: float, overlap: float) -> int:
    """Windows along an axis of this extent (already rounded to hundredths)."""
    if overlap == 0:
        return floor(extent / window_size) + 1
    step = window_step(window_size, overlap)
    return int(round_half_away((extent + 2 * window_size * overlap) / step)) - 1


def window_borders(
    low: float,
    high: float,
    window_size: float,
    overlap: float,
    half: float,
    near: Span | None = None,
) -> tuple[Floats, Floats]:
    """Lower and upper borders of the windows along an axis whose points span [low, high].

    Windows are twice `half` wide. With `near`, those that do not reach into it may be left out.
    """
    extent = hundredths(high - low)
    step = window_step(window_size, overlap)
    count = window_count(extent, window_size, overlap)
    first = low - half + step
    centre = first + _numbers(count, step, (first - half, first + half), near) * step
    return centre - half, centre + half


def fill_borders(
    low: float, high: float, cell_size: float, half: float, near: Span | None = None
) -> tuple[Floats, Floats]:
    """Lower and upper borders of the fill cells along an axis; none if `cell_size` is 0.

    Cells are twice `half` wide. With `near`, those that do not reach into it may be left out.
    """
    if cell_size == 0:
        return np.empty(0), np.empty(0)
    extent = hundredths(high - low)
    count, side = floor(extent / cell_size) + 1, 2 * half
    start = low + _numbers(count, cell_size, (low, low + side), near) * cell_size
    return start, start + side


def _numbers(count: int, step: float, first: Span, near: Span | None) -> Floats:
    """Give the numbers of intervals that begin at every step from the first one on.

    With `near`, those that reach into it, and one more on each side: quotients are rounded.
    """
    if near is None:
        return np.arange(count, dtype=np.float64)
    start = floor((near[0] - first[1]) / step) - 1
    stop = ceil((near[1] - first[0]) / step) + 2
    return np.arange(max(start, 0), max(min(stop, count), 0), dtype=np.float64)


def default_min_points(n_points: int, box: Box, window_size: float) -> int:
    """Points that a window needs by default: half of what the mean density gives.

    A cloud without area has no density; a window then needs one point.
    """
    area = box.width * box.height
    if area == 0:
        return 1
    return max(1, int(0.5 * (n_points / area) * window_size * window_size))


def octree_root(box: Box, function: str) -> tuple[float, float, float]:
    """Centre and half side of the reference's octree.

    Raises
    ------
    ValueError
        If its leaves cannot be numbered in 63 bits.
    """
    half = max(box.width, box.height) / 2
    if half > MAX_OCTREE:
        message = (
            f"{function}: ties 'octree' must have an extent of at most {2 * MAX_OCTREE:g}, "
            f"got {2 * half:g}; take ties 'lowest_id'"
        )
        raise ValueError(message)
    return (box.x_low + box.x_high) / 2, (box.y_low + box.y_high) / 2, half


def max_borders(extent: float, window_size: float, overlap: float, cell_size: float) -> float:
    """Upper bound of the borders along an axis, to reject what would not fit into memory."""
    step = window_step(window_size, overlap)
    windows = (extent + 2 * window_size) / step
    return 2 * (windows + (extent / cell_size if cell_size else 0.0))


Used = Callable[[tuple[SlotAxis, SlotAxis]], tuple[Bools, Bools]]
"""Finds out which places of both axes have points."""


def cut_axes(
    box: Box,
    n_points: int,
    options: Options,
    used: Used,
    strip: Strip | None = None,
    there: Box | None = None,
) -> tuple[SlotAxis, SlotAxis]:
    """Cut both axes; leave out slots without points if the table would be too large.

    Parameters
    ----------
    box : Box
        The extent that windows and fill cells divide.
    n_points : int
    options : Options
    used : callable
    strip : Strip, optional
        The part of the extent whose windows and fill cells are wanted: those that lie in it and in
        its halo as a whole.
    there : Box, optional
        The extent of the points, by default `box`: windows and fill cells beside it have none, and
        are left out.

    Raises
    ------
    ValueError
        If double precision cannot tell the windows apart, or they are too many for memory.
    """
    size, cell = options.window_size, options.cell_size
    near = (None, None) if there is None else there.sides
    borders = [
        (
            _of_strip(window_borders(*side, size, overlap, options.half(size), part), axis, strip),
            _of_strip(fill_borders(*side, cell, options.half(cell), part), axis, strip),
        )
        for axis, side, overlap, part in zip(
            "xy", _sides(box, options), options.overlaps, near, strict=True
        )
    ]
    columns, rows = (cut_axis(*each) for each in borders)
    if columns.n_slots * rows.n_slots > MIN_SPARSE + 8 * n_points:
        places = used((columns, rows))
        columns, rows = (
            cut_axis(*each, (occupied[1::2], occupied[0::2]))
            for each, occupied in zip(borders, places, strict=True)
        )
    n_cells = columns.n_slots * rows.n_slots
    if n_cells > MAX_CELLS:
        message = (
            f"{options.function}: {_sizes(options)} cut {n_points} points over {box.width:g} x "
            f"{box.height:g} into {n_cells:.2g} cells, more than {MAX_CELLS:.2g}; {CURE}"
        )
        raise ValueError(message)
    return columns, rows


def _of_strip(
    borders: tuple[Floats, Floats], axis: str, strip: Strip | None
) -> tuple[Floats, Floats]:
    """Choose the windows or fill cells along an axis that a strip and its halo contain."""
    if strip is None or strip.axis != axis:
        return borders
    lower, upper = borders
    low, high = strip.around
    inside = (lower >= low) & (upper <= high)
    return lower[inside], upper[inside]


def _sizes(options: Options) -> str:
    overlap = " and ".join(map(str, dict.fromkeys(options.overlaps)))
    return f"window_size {options.window_size}, overlap {overlap} and cell_size {options.cell_size}"


def _sides(box: Box, options: Options) -> Iterator[tuple[float, float]]:
    for (low, high), overlap in zip(box.sides, options.overlaps, strict=True):
        step = window_step(options.window_size, overlap)
        largest = max(abs(low), abs(high))
        if np.spacing(largest) * MIN_STEP > step:
            message = (
                f"{options.function}: x and y must be small enough that double precision tells "
                f"apart {MIN_STEP} places in a step of {step:g}, got {largest:g}"
            )
            raise ValueError(message)
        n = max_borders(high - low, options.window_size, overlap, options.cell_size)
        if n > MAX_BORDERS:
            message = (
                f"{options.function}: {_sizes(options)} give {n:.2g} window borders along an "
                f"extent of {high - low:g}, more than {MAX_BORDERS:.2g}; {CURE}"
            )
            raise ValueError(message)
        yield low, high


def cut_axis(
    windows: tuple[Floats, Floats],
    fills: tuple[Floats, Floats],
    occupied: tuple[Bools, Bools] | None = None,
) -> SlotAxis:
    """Cut an axis at all borders.

    `occupied` says which intervals and which borders have points; the others get no slot. It is
    given only if the cloud fills a small part of its extent: a single stray point far away would
    otherwise require a huge table.
    """
    borders = np.unique(np.concatenate([*windows, *fills]))
    n_intervals = max(borders.size - 1, 0)
    if occupied is None:
        occupied = (np.ones(n_intervals, bool), np.ones(borders.size, bool))
    intervals, edges = occupied
    columns = np.empty(borders.size + n_intervals, np.int32)
    columns[1::2] = np.cumsum(intervals) - 1
    columns[0::2] = np.cumsum(edges) - 1 + np.count_nonzero(intervals)
    has_slot = np.empty(columns.size, bool)
    has_slot[0::2], has_slot[1::2] = edges, intervals
    rank = np.concatenate([[0], np.cumsum(has_slot)])

    def runs(low_high: tuple[Floats, Floats]) -> tuple[Ints, Ints]:
        # Open on both sides: from the interval above the lower border to that below the upper one.
        start = rank[2 * np.searchsorted(borders, low_high[0]) + 1]
        stop = rank[2 * np.searchsorted(borders, low_high[1])]
        some = stop > start
        return start[some], stop[some]

    window_start, window_stop = runs(windows)
    fill_start, fill_stop = runs(fills)
    return SlotAxis(
        borders=np.append(borders, np.inf),
        guess=_guess(borders),
        columns=columns,
        step=_even_step(borders) if has_slot.all() else 0.0,
        order=columns[has_slot],
        window_start=window_start,
        window_stop=window_stop,
        fill_start=fill_start,
        fill_stop=fill_stop,
    )


def _even_step(borders: Floats) -> float:
    if borders.size < 2:
        return 0.0
    step = float(borders[1] - borders[0])
    even = np.array_equal(borders, borders[0] + np.arange(borders.size) * step)
    return step if even else 0.0


def _guess(borders: Floats) -> Int32s:
    if borders.size == 0:
        return np.zeros(1, np.int32)
    n_buckets = 4 * borders.size
    # Rounding may put a coordinate one bucket too high, by far less than a millionth of a bucket.
    # Buckets start that much lower, so that no guess is too high.
    bucket = (borders[-1] - borders[0]) / n_buckets
    starts = borders[0] + (np.arange(n_buckets + 1) - 1e-6) * bucket
    below = np.searchsorted(borders, starts, side="right") - 1
    guess: Int32s = np.maximum(below, 0).astype(np.int32)
    return guess
