"""`contours` on the CPU: marching squares by contourpy, one height after the other."""

from math import ceil, floor
from struct import pack
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.runtime import budget, progress
from spatialq.runtime.arrays import Array, Floats, Ints

from . import BYTES_PER_CELL, Options

if TYPE_CHECKING:
    from spatialq.data.grid import Grid


RAISED = 1e-3
"""Share of the interval by which heights on a contour are raised, as GDAL does it: otherwise lines
of one height would meet in these cells."""
MOST_LEVELS = 100_000
LINE = 2
"""The code of a linestring in WKB."""


def run(grid: "Grid", options: Options) -> dict[str, Any]:
    """Trace the contours.

    Parameters
    ----------
    grid : Grid
        In main memory, the whole of it.
    options : Options

    Returns
    -------
    dict of arrays
        `height` float64, `is_closed` bool, `length` float64, `geometry` WKB LINESTRING; by height.

    Raises
    ------
    ValueError
        If the grid needs more memory than there is for the call, or there are too many heights.
    """
    from contourpy import LineType, contour_generator  # only who wants contours waits for it

    needed, there = BYTES_PER_CELL * grid.z.size, budget.current()
    if needed > there:
        message = (
            f"{options.function}: a grid must be held whole, got {grid.z.size:,} cells, which need "
            f"{needed / 2**30:.1f} of {there / 2**30:.1f} GiB: raise memory, or take parts of it"
        )
        raise ValueError(message)
    z = grid.z.astype(np.float64)
    missing = np.isnan(z)
    heights = _levels(z, options)
    z[z == options.base + np.rint((z - options.base) / options.interval) * options.interval] += (
        RAISED * options.interval
    )
    trace: Any = contour_generator(
        grid.x0 + (grid.first_column + np.arange(z.shape[1])) * grid.dx,
        grid.y0 + (grid.first_row + np.arange(z.shape[0])) * grid.dy,
        np.ma.array(z, mask=missing),
        name="serial",
        corner_mask=True,
        line_type=LineType.ChunkCombinedOffset,
    )
    progress.stage("contours", 1.0)
    found: list[tuple[Array, ...]] = []
    geometries: list[bytes] = []
    for k, height in enumerate(heights):
        (points,), (offsets,) = trace.lines(height)
        if points is not None:
            first, stop = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
            steps = np.hypot(*np.diff(points, axis=0).T)
            steps[stop[:-1] - 1] = 0  # from the end of a line to the next one
            is_closed = (points[first] == points[stop - 1]).all(axis=1)
            found.append((np.full(first.size, height), is_closed, np.add.reduceat(steps, first)))
            geometries += _wkb(points, first, stop)
        progress.report(k + 1, len(heights))
    kinds = (np.float64, np.bool_, np.float64)
    nothing = tuple(np.empty(0, kind) for kind in kinds)
    columns = [np.concatenate(parts) for parts in zip(nothing, *found, strict=True)]
    lines = np.empty(len(geometries), object)
    lines[:] = geometries
    return dict(zip(("height", "is_closed", "length"), columns, strict=True)) | {"geometry": lines}


def _levels(z: Floats, options: Options) -> list[float]:
    """List the heights of contours between the lowest and the highest cell."""
    low, high = ((float(f(z)) - options.base) / options.interval for f in (np.nanmin, np.nanmax))
    if high - low > MOST_LEVELS:
        options.reject(
            "interval", f"so large that there are at most {MOST_LEVELS:,} contours between the "
            f"lowest and the highest of the cells, {(high - low) * options.interval:g} apart",
        )  # fmt: skip
    return [options.base + k * options.interval for k in range(ceil(low), floor(high) + 1)]


def _wkb(points: Floats, first: Ints, stop: Ints) -> list[bytes]:
    """Write runs of points as lines."""
    text = points.astype("<f8").tobytes()
    return [
        pack("<BII", 1, LINE, b - a) + text[16 * a : 16 * b]
        for a, b in zip(first.tolist(), stop.tolist(), strict=True)
    ]
