"""The layout of the table of cells in the memory of a GPU: `Axis` and `Grid` of kernels.cu."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.runtime import cuda
from spatialq.runtime.arrays import Array, Ints

from . import Options
from .windows import Box, SlotAxis, default_min_points, octree_root

MAX_MARGIN = 0.01  # part of a step; beyond it all coordinates are compared with the borders
ARRAYS = (
    "borders", "guess", "columns", "order", "window_start", "window_stop", "fill_start",
    "fill_stop",
)  # fmt: skip
AXIS = np.dtype(
    [(name, "u8") for name in ARRAYS]
    + [(name, "f8") for name in ("scale", "per_step", "margin")]
    + [(name, "i4") for name in ("low", "n_steps", "n_borders", "n_slots", "n_windows", "n_fills")]
)
GRID = np.dtype(
    [("x", AXIS), ("y", AXIS)]
    + [(name, "f8") for name in ("x_low", "x_high", "y_low", "y_high")]
    + [(name, "f8") for name in ("root_x", "root_y", "root_half")]
    + [("min_points", "u8")]
    + [(name, "i4") for name in ("needed", "id_bits", "octree", "padding")]
)


def lay_out(
    device: cuda.Device,
    axes: tuple[SlotAxis, SlotAxis],
    options: Options,
    box: Box,
    n_points: int,
) -> Any:
    """Lay out GRID and the arrays that it refers to, and copy them to the device in one piece."""
    pieces: list[Array] = []
    size = GRID.itemsize

    def place(array: Array) -> int:
        nonlocal size
        pieces.append(array)
        start = size
        size += -(-array.nbytes // 8) * 8
        return start

    lattices = [_lattice(axis, step) for axis, step in zip(axes, options.steps, strict=True)]
    starts = [
        {name: place(array) for name, array in _arrays(axis, lattice).items()}
        for axis, lattice in zip(axes, lattices, strict=True)
    ]
    memory = device.xp.empty(size, np.uint8)
    record = np.zeros(1, GRID)
    ends = (box.x_low, box.x_high), (box.y_low, box.y_high)
    for name, axis, lattice, end, offsets in zip("xy", axes, lattices, ends, starts, strict=True):
        for key, start in offsets.items():
            record[name][key] = device.address(memory) + start
        for key, value in _numbers(axis, lattice, *end).items():
            record[name][key] = value
    for key in ("x_low", "x_high", "y_low", "y_high"):
        record[key] = getattr(box, key)
    if options.ties == "octree":
        record["octree"] = 1
        record["root_x"], record["root_y"], record["root_half"] = octree_root(box, options.function)
    record["min_points"] = options.min_points or default_min_points(
        n_points, box, options.window_size
    )
    record["needed"] = options.hits_needed
    record["id_bits"] = max(1, (n_points - 1).bit_length())
    host = np.zeros(size, np.uint8)
    host[: GRID.itemsize] = record.view(np.uint8)
    for offsets in starts:
        for start in offsets.values():
            array = pieces.pop(0)
            host[start : start + array.nbytes] = array.view(np.uint8)
    memory[:] = device.xp.asarray(host)
    return memory


def _arrays(axis: SlotAxis, lattice: "Lattice | None") -> dict[str, Array]:
    arrays = {name: np.ascontiguousarray(getattr(axis, name)) for name in ARRAYS}
    if lattice is not None:
        for name in ("columns", "order"):
            arrays[name] = lattice.renumbered[arrays[name]]
    return {
        name: array if name == "borders" else array.astype(np.int32)
        for name, array in arrays.items()
    }


def _numbers(
    axis: SlotAxis, lattice: "Lattice | None", low: float, high: float
) -> dict[str, float]:
    borders = axis.borders[:-1]
    n_buckets = axis.guess.size - 1
    span = borders[-1] - borders[0] if borders.size else 0.0
    numbers: dict[str, float] = {
        "scale": n_buckets / span if span > 0 else 0.0,
        "n_borders": borders.size,
        "n_slots": axis.n_slots,
        "n_windows": axis.window_start.size,
        "n_fills": axis.fill_start.size,
    }
    if lattice is not None:
        first, last = (int(np.floor((end - borders[0]) / lattice.step)) for end in (low, high))
        numbers |= {
            "per_step": 1 / lattice.step,
            "margin": lattice.margin,
            "low": max(first, 0),
            "n_steps": min(last, lattice.n_steps - 1) - max(first, 0) + 1,
        }
    return numbers


@dataclass(frozen=True)
class Lattice:
    """Equidistant places from the first border on; each is a border up to rounding.

    For a coordinate that is not close to one of these places the number of its step is computed
    without reading the borders. The slots of the steps get the first columns, in their order.
    """

    step: float
    n_steps: int
    margin: float
    """Distance from a place, in steps, within which a coordinate is compared with the borders."""
    renumbered: Ints
    """New column of each column of the axis."""


def _lattice(axis: SlotAxis, step: float) -> Lattice | None:
    borders = axis.borders[:-1]
    if borders.size < 2 or axis.n_slots != 2 * borders.size - 1:
        return None
    places = np.rint((borders - borders[0]) / step)
    gaps = np.flatnonzero(np.diff(places) > 1)  # far fill cells may have borders beyond one
    n_steps = int(places[gaps[0] if gaps.size else -1])
    off = np.abs(borders - (borders[0] + places * step)).max()
    off += 4 * np.spacing(np.abs(borders[[0, -1]]).max())
    margin = off / step + 1e-15 * n_steps + 1e-9
    if margin > MAX_MARGIN or n_steps == 0:
        return None
    at = np.flatnonzero(np.diff(places))[:n_steps]  # the last border of each place
    main = axis.columns[2 * at + 1]
    renumbered = np.full(axis.n_slots, -1)
    renumbered[main] = np.arange(n_steps)
    rest = renumbered < 0
    renumbered[rest] = n_steps + np.arange(np.count_nonzero(rest))
    return Lattice(step, n_steps, margin, renumbered)
