"""Build a grid from cells in any order; its spacing is found from their coordinates alone."""

from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple, TypeVar

import numpy as np

from spatialq.data.grid import Grid, require_values
from spatialq.runtime.arrays import Array, Floats
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import CHUNK, workers

Result = TypeVar("Result")
NEAR = 0.01
"""Maximum distance in cells of a coordinate from its place: coordinates in text are rounded."""
EXACT = 1e-6
"""Maximum distance in cells that floating-point arithmetic explains."""
SPARSE = 100
"""Maximum ratio of places in a grid to cells given: points that are no grid exceed it."""
MAX_DISTINCT = 1 << 20
"""Maximum number of distinct values per thread from which the spacing is derived; all values are
checked against it."""
EMPTY = np.uint64(2**64 - 1)  # the bits of a NaN, which no coordinate has


class RegularAxis(NamedTuple):
    """The places of cells along an axis."""

    first: float
    spacing: float
    places: int

    def off(self, values: Array) -> Array:
        """Distance of values from the nearest place, in cells."""
        at = (values - self.first) / self.spacing
        distance: Array = np.abs(at - np.rint(at))
        return distance


def grid_of(function: str, x: Array, y: Array, z: Array) -> Grid:
    """Build a grid from cells in any order; some cells may be absent.

    Parameters
    ----------
    function : str
        The function that was called, for the error sentence.
    x, y : float64[n], n > 0
        Centres of the cells, each within a hundredth of a cell of its place.
    z : float64[n]
        NaN where there is no value. The grid has float32 if it can hold every value exactly.

    Returns
    -------
    Grid

    Raises
    ------
    ValueError
        If the cells are not regularly spaced along x and y, a cell occurs twice, there is only one
        row or column, a value is infinite, or all values are missing.
    """
    along_x, along_y = _axes(function, x, y)
    shape = along_y.places, along_x.places
    single = all(_in_parts(lambda part: _is_single(z[part]), z.size))
    heights = np.full(shape, np.nan, np.float32 if single else np.float64)
    there = np.zeros(shape, np.bool_)
    near = _in_parts(
        lambda part: _place(x[part], y[part], z[part], *along_x[:2], *along_y[:2], heights, there),
        x.size,
    )
    if not all(near):
        _require_near(function, "x", x, along_x)
        _require_near(function, "y", y, along_y)
    if np.count_nonzero(there) < x.size:
        there[:] = False
        row = _first_again(x, y, *along_x[:2], *along_y[:2], there)
        cell = f"x = {float(x[row])!r}, y = {float(y[row])!r}"
        message = f"{function}: a cell must be there once, got {cell} twice"
        raise ValueError(message)
    grid = Grid(heights, along_x.first, along_y.first, along_x.spacing, along_y.spacing)
    require_values(function, grid)
    return grid


def _axes(function: str, x: Array, y: Array) -> tuple[RegularAxis, RegularAxis]:
    """Find the spacing along x and y.

    Arithmetic may leave small gaps between values of one place. The second attempt therefore
    ignores gaps that are small compared with the widest one. The first does not, because the
    widest gap may lie between two parts of a grid.
    """
    xs, ys = _different(function, "x", x), _different(function, "y", y)
    for share in (1e-9, 0.1):
        along_x, along_y = _axis(xs, share), _axis(ys, share)
        near = max(along_x.off(xs).max(), along_y.off(ys).max()) <= NEAR
        places = along_x.places * along_y.places
        # compared with a very wide gap, several places may seem to be one, with too few places then
        all_apart = along_x.places >= xs.size and along_y.places >= ys.size
        if near and (all_apart or x.size <= places) and places <= SPARSE * x.size:
            return along_x, along_y
    _require_near(function, "x", xs, along_x)
    _require_near(function, "y", ys, along_y)
    message = (
        f"{function}: x and y must be those of a grid's cells, got {x.size} in {along_x.places} x "
        f"{along_y.places} places {along_x.spacing:g} x {along_y.spacing:g} apart, with a gap "
        f"{_widest_gap(xs, ys)}"
    )
    raise ValueError(message)


def _different(function: str, axis: str, values: Array) -> Array:
    """Sort the distinct values of an axis; there must be at least two."""
    extents = np.array(_in_parts(lambda part: _extent(values[part]), values.size))
    low, high = float(extents[:, 0].min()), float(extents[:, 1].max())
    if not isfinite(high - low):
        message = f"{function}: {axis} must be finite, got {high if isfinite(low) else low!r}"
        raise ValueError(message)
    tables = _in_parts(lambda part: _table(values[part].view(np.uint64)), values.size, values.size)
    different = [table[table != EMPTY].view(np.float64) for table in tables]
    found = np.unique(np.concatenate([*different, [low, high]]))
    if found.size == 1:
        message = (
            f"{function}: the grid must have two rows and two columns or more, got "
            f"{axis} = {float(found[0])!r} in all cells"
        )
        raise ValueError(message)
    return found


def _axis(values: Array, share: float) -> RegularAxis:
    """Find the spacing of ascending values: the usual gap, exact over the whole extent."""
    gaps = np.diff(values)
    gaps = np.diff(values[np.append(True, gaps > share * gaps.max())])
    usual = np.partition(gaps, (gaps.size - 1) // 2)[(gaps.size - 1) // 2]
    # the mean of these is precise enough to count the places of a wide extent
    usual = gaps[np.abs(gaps - usual) < 0.1 * usual].mean()
    first, extent = float(values[0]), float(values[-1] - values[0])
    steps = round(extent / usual)
    ends = RegularAxis(first, extent / steps, steps + 1)
    if ends.off(values).max() <= EXACT:
        return ends
    # the ends are rounded, too: a line fitted to all values is more precise
    spacing, start = np.polyfit(np.rint((values - first) / ends.spacing), values - first, 1)
    line = RegularAxis(first + float(start), float(spacing), steps + 1)
    return line if line.off(values).max() <= NEAR else ends


def _widest_gap(xs: Array, ys: Array) -> str:
    """Say where the gap is that is widest compared with the usual gap of its axis."""
    found = []
    for axis, values in (("x", xs), ("y", ys)):
        gaps = np.diff(values)
        at = int(gaps.argmax())
        ends = " to ".join(f"{axis} = {float(value)!r}" for value in values[at : at + 2])
        found.append((gaps[at] / np.median(gaps), f"from {ends}"))
    return max(found)[1]


def _require_near(function: str, axis: str, values: Array, places: RegularAxis) -> None:
    off = places.off(values)
    row = int(np.argmax(off))
    if off[row] > NEAR:
        message = (
            f"{function}: {axis} is not regularly spaced: {float(values[row])!r} is "
            f"{off[row]:.2g} cells off, with cells {places.spacing:g} apart from "
            f"{places.first!r} on"
        )
        raise ValueError(message)


def _in_parts(work: Callable[[slice], Result], size: int, most: int = CHUNK) -> list[Result]:
    """Call work with parts of range(size), of at most so many items; return the results."""
    with workers() as pool:
        return pool.map(work, (slice(*span) for span in pool.spans(size, most=most)))


@njit(cache=True, nogil=True)
def _extent(values: Any) -> Any:
    """Find minimum and maximum; return a value that is not finite instead, if there is one."""
    low, high = np.inf, -np.inf
    for i in range(values.size):
        value = values[i]
        if not np.isfinite(value):
            return value, value
        low, high = min(low, value), max(high, value)
    return low, high


@njit(cache=True, nogil=True)
def _is_single(values: Any) -> Any:
    """Whether float32 holds every value."""
    for i in range(values.size):
        value = values[i]
        if np.float64(np.float32(value)) != value and value == value:
            return False
    return True


@njit(cache=True, nogil=True)
def _table(values: Any) -> Any:
    """Build a hash table (open addressing) of the distinct values, by their bits."""
    bits = 4
    while 1 << bits < 2 * min(values.size, MAX_DISTINCT):
        bits += 1
    shift, mask = np.uint64(64 - bits), np.int64((1 << bits) - 1)
    table = np.full(1 << bits, EMPTY, np.uint64)
    room = (1 << bits) // 2
    for i in range(values.size):
        value = values[i]
        at = np.int64((value * np.uint64(0x9E3779B97F4A7C15)) >> shift)
        while table[at] != EMPTY and table[at] != value:
            at = (at + 1) & mask
        if table[at] == EMPTY:
            table[at] = value
            room -= 1
            if room == 0:
                break
    return table


@njit(cache=True, nogil=True)
def _place(
    x: Floats,
    y: Floats,
    z: Floats,
    x0: float,
    dx: float,
    y0: float,
    dy: float,
    heights: Any,
    there: Any,
) -> bool:
    """Store cells at their places; return False at the first one that is not near a place."""
    for i in range(x.size):
        across, up = (x[i] - x0) / dx, (y[i] - y0) / dy
        column, row = round(across), round(up)
        if abs(across - column) > NEAR or abs(up - row) > NEAR:
            return False
        heights[row, column] = z[i]
        there[row, column] = True
    return True


@njit(cache=True, nogil=True)
def _first_again(
    x: Floats, y: Floats, x0: float, dx: float, y0: float, dy: float, there: Any
) -> int:
    """Find the first cell whose place is taken by an earlier cell."""
    for i in range(x.size):
        column, row = round((x[i] - x0) / dx), round((y[i] - y0) / dy)
        if there[row, column]:
            return i
        there[row, column] = True
    return -1
