"""Division of examples among the GPU's blocks: superpatches (section 4.1.2), their patches."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spatialq.data.grid import Grid, WindowAxis
from spatialq.runtime.arrays import Bytes, Ints

from .division import Division, Scale

if TYPE_CHECKING:
    from .options import Options

# the same values as in kernels.cu
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
    + [(name, np.int32) for name in ("slot", "min_cells", "along")]
)


class Side(NamedTuple):
    """The superpatches of an example along one axis."""

    axis: WindowAxis
    """The windows of the examples."""
    stride: int
    """Number of cells in which the patches of a superpatch start."""
    extent: int
    """Number of cells that its patches may cover."""

    @property
    def starts(self) -> Ints:
        """First cell of each superpatch."""
        return np.arange(0, self.axis.size, self.stride)


def lay_out(
    division: Division,
    scales: Sequence[Scale],
    grid: Grid,
    options: "Options",
    room: int | None,
    pitch: int,
) -> tuple[int, "Bytes"]:
    """Describe the superpatches of an example, and the patches of some scales in each.

    Parameters
    ----------
    division : Division
    scales : sequence of Scale, at most SCALES
    grid : Grid
    options : Options
    room : int, optional
        Number of columns of windows that a block can keep in shared memory.
    pitch : int
        Cells from a row of the heights on the device to the next.

    Returns
    -------
    places : int
        Number of superpatches of an example.
    sweep : uint8[]
        `Sweep` of kernels.cu, and the arrays that follow it.
    """
    x, y = superpatches(division, scales, room)
    west, south = (each.ravel() for each in np.meshgrid(x.starts, y.starts))
    place = np.zeros(west.size + west.size % 2, PLACE)
    place["west"][: west.size], place["south"][: west.size] = west, south
    place["wide"][: west.size] = np.minimum(x.extent, x.axis.size - west)
    place["deep"][: west.size] = np.minimum(y.extent, y.axis.size - south)
    part = np.zeros((west.size, len(scales)), PART)
    firsts = [0, *accumulate(scale.patches for scale in division.scales)]
    for k, scale in enumerate(scales):
        first = firsts[division.scales.index(scale)]
        _fill_in(part[:, k], scale, first, grid, options, (west, x.stride), (south, y.stride))
    head = np.zeros(1, HEAD)
    ends = _rounds(part, scales, room)
    head["ends"][0, : len(ends)] = ends
    head["rounds"], head["parts"], head["places"] = len(ends), len(scales), west.size
    head["pitch"], head["patches"] = pitch, firsts[-1]
    head["step_x"], head["step_y"] = division.x.step, division.y.step
    return west.size, np.concatenate([each.ravel().view(np.uint8) for each in (head, place, part)])


def _fill_in(
    part: Any, scale: Scale, first: int, grid: Grid, options: "Options", x: Any, y: Any
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
    part["min_cells"], part["along"] = scale.min_cells(options), scale.y.count


def _started(axis: WindowAxis, starts: Any, stride: int) -> tuple[Any, Any]:
    """Find the first window that starts in each superpatch, and the number of such windows."""
    first, stop = (
        np.minimum(-(-cells // axis.step), axis.count) for cells in (starts, starts + stride)
    )
    return first, stop - first


def _rounds(part: Any, scales: Sequence[Scale], room: int | None) -> list[int]:
    """Assign each part the slot of its first column; return the last scale of each round."""
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
    """Choose the part of an example in which the patches of one block start.

    The part is halved until its columns fit into shared memory, and its cells as well unless the
    part becomes smaller than a patch. Columns of patches that are too wide for that are not kept.

    Parameters
    ----------
    division : Division
    scales : sequence of Scale
    room : int, optional
        Maximum number of columns of all rows of patches of a scale.
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
    x, y = (
        Side(axis, stride, stride + size - 1)
        for axis, stride, size in zip(sides, strides, largest, strict=True)
    )
    return x, y


def _columns(scale: Scale, wide: int, deep: int) -> int:
    """Upper bound of the columns of all rows of patches that start in wide x deep cells."""
    across = min(scale.x.count, -(-wide // scale.x.step))
    up = min(scale.y.count, -(-deep // scale.y.step))
    return up * ((across - 1) * scale.x.step + scale.x.size)
