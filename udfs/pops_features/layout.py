"""How the GPU's blocks divide examples: superpatches (section 4.1.2), and the patches of each."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .division import Division, Scale, WindowAxis

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spatialq.data.grid import Grid

    from . import Options

# as kernels.cu has them
SIDE, SCALES, ROOM = 33, 16, 4800
HEAD = np.dtype(
    [(name, np.int32) for name in ("pitch", "step_x", "step_y", "places", "parts", "patches")]
    + [("rounds", np.int32), ("ends", np.int32, SCALES), ("unused", np.int32)]
)
PLACE = np.dtype([(name, np.int32) for name in ("west", "south", "wide", "deep")])
PART = np.dtype(
    [(name, np.float64) for name in ("a", "c", "per_column", "per_row")]
    + [("at", np.int64)]
    + [(name, np.int32) for name in ("wide", "deep", "across", "up", "step_x", "step_y")]
    + [(name, np.int32) for name in ("left", "low", "width", "columns")]
    + [("inverse", np.uint32)]
    + [(name, np.int32) for name in ("slot", "least", "along")]
)


class Side(NamedTuple):
    """An axis of an example, in superpatches."""

    axis: WindowAxis
    """Of the examples."""
    stride: int
    """Cells in which the patches of a superpatch start."""
    reach: int
    """Cells that its patches may have."""

    @property
    def starts(self) -> "NDArray[np.int64]":
        """First cell of each superpatch."""
        return np.arange(0, self.axis.size, self.stride)


def lay_out(
    division: Division,
    scales: Sequence[Scale],
    grid: "Grid",
    options: "Options",
    room: int | None,
) -> tuple[int, "NDArray[np.uint8]"]:
    """Write down the superpatches of an example, and the patches of some scales in each.

    Parameters
    ----------
    division : Division
    scales : sequence of Scale, at most SCALES
    grid : Grid
    options : Options
    room : int, optional
        Columns of windows that a block can keep at a time.

    Returns
    -------
    places : int
        Superpatches of an example.
    sweep : uint8[]
        As `Sweep` in kernels.cu and what lies behind it.
    """
    x, y = superpatches(division, scales, room)
    west, south = (each.ravel() for each in np.meshgrid(x.starts, y.starts))
    place = np.zeros(west.size + west.size % 2, PLACE)
    place["west"][: west.size], place["south"][: west.size] = west, south
    place["wide"][: west.size] = np.minimum(x.reach, x.axis.size - west)
    place["deep"][: west.size] = np.minimum(y.reach, y.axis.size - south)
    part = np.zeros((west.size, len(scales)), PART)
    firsts = [0, *accumulate(scale.patches for scale in division.scales)]
    for k, scale in enumerate(scales):
        first = firsts[division.scales.index(scale)]
        _fill_in(part[:, k], scale, first, grid, options, (west, x.stride), (south, y.stride))
    head = np.zeros(1, HEAD)
    ends = _rounds(part, scales, room)
    head["ends"][0, : len(ends)] = ends
    head["rounds"], head["parts"], head["places"] = len(ends), len(scales), west.size
    head["pitch"], head["patches"] = grid.columns, firsts[-1]
    head["step_x"], head["step_y"] = division.x.step, division.y.step
    return west.size, np.concatenate([each.ravel().view(np.uint8) for each in (head, place, part)])


def _fill_in(
    part: Any, scale: Scale, first: int, grid: "Grid", options: "Options", x: Any, y: Any
) -> None:
    (px, across), (py, up) = _started(scale.x, *x), _started(scale.y, *y)
    n = scale.cells
    part["a"] = grid.dx * grid.dx * (n * (scale.x.size * scale.x.size - 1) / 12.0)
    part["c"] = grid.dy * grid.dy * (n * (scale.y.size * scale.y.size - 1) / 12.0)
    part["per_column"], part["per_row"] = 1.0 / scale.x.size, 1.0 / scale.y.size
    part["at"] = first + px * scale.y.count + py
    part["wide"], part["deep"] = scale.x.size, scale.y.size
    part["across"], part["up"] = across, up
    part["step_x"], part["step_y"] = scale.x.step, scale.y.step
    part["left"], part["low"] = px * scale.x.step - x[0], py * scale.y.step - y[0]
    width = np.where(across > 0, (across - 1) * scale.x.step + scale.x.size, 0)
    part["width"], part["columns"] = width, width * up
    part["inverse"] = np.where(width > 1, (2**32 - 1) // np.maximum(width, 1) + 1, 0)
    part["least"], part["along"] = scale.least(options), scale.y.count


def _started(axis: WindowAxis, starts: Any, stride: int) -> tuple[Any, Any]:
    """Find the first window that starts in each superpatch, and how many do."""
    first, stop = (
        np.minimum(-(-cells // axis.step), axis.count) for cells in (starts, starts + stride)
    )
    return first, stop - first


def _rounds(part: Any, scales: Sequence[Scale], room: int | None) -> list[int]:
    """Give each part the slot of its first column, and the ends of the scales of each round."""
    ends, kept = [], np.zeros(len(part), np.int64)
    for k, scale in enumerate(scales):
        columns = part["columns"][:, k]
        if room is None or scale.x.size > room:
            part["slot"][:, k] = -1
            continue
        if (kept + columns).max() > room:
            ends.append(k)
            kept[:] = 0
        part["slot"][:, k] = kept
        kept += columns
    return [*ends, len(scales)]


def superpatches(
    division: Division, scales: Sequence[Scale], room: int | None
) -> tuple[Side, Side]:
    """Say in how large a part of an example the patches start that a block takes.

    It is halved until its columns have room in shared memory, and its cells as well, unless it is
    smaller than a patch by then. Of patches that are too wide for that the columns are not kept.

    Parameters
    ----------
    division : Division
    scales : sequence of Scale
    room : int, optional
        Columns of all rows of patches of a scale, for which there is room.
    """
    sides = division.x, division.y
    largest = max(scale.x.size for scale in scales), max(scale.y.size for scale in scales)

    def fits(*strides: int) -> bool:
        axes = list(zip(sides, strides, largest, strict=True))
        is_tile = all(min(side.size, n + most - 1) <= SIDE for side, n, most in axes)
        if not is_tile and all(n >= most for _, n, most in axes):
            return False
        return room is None or all(
            scale.x.size > room or _columns(scale, *strides) <= room for scale in scales
        )

    strides = sides[0].size, sides[1].size
    while max(strides) > 1 and not fits(*strides):
        strides = (strides[0] + 1) // 2, (strides[1] + 1) // 2
    x, y = (Side(*each, 0) for each in zip(sides, strides, strict=True))
    return x._replace(reach=x.stride + largest[0] - 1), y._replace(reach=y.stride + largest[1] - 1)


def _columns(scale: Scale, wide: int, deep: int) -> int:
    """Count the columns of all rows of patches that start in so many cells, at most."""
    across = min(scale.x.count, -(-wide // scale.x.step))
    up = min(scale.y.count, -(-deep // scale.y.step))
    return up * ((across - 1) * scale.x.step + scale.x.size)
