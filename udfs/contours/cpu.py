"""`contours` on the CPU: marching squares by contourpy, one height after the other."""

from math import ceil, floor
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.runtime import budget, progress

from . import BYTES_PER_CELL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spatialq.data.grid import Grid

    from . import Options

RAISED = 1e-3
"""Share of the interval by which heights on a contour are raised, as GDAL does it: otherwise lines
of one height would meet in these cells."""
MOST_LEVELS = 100_000
LINE = 2
"""The code of a linestring in WKB."""


def run(grid: "Grid", options: "Options") -> dict[str, Any]:
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
    trace = contour_generator(
        grid.x0 + (grid.first_column + np.arange(z.shape[1])) * grid.dx,
        grid.y0 + (grid.first_row + np.arange(z.shape[0])) * grid.dy,
        np.ma.array(z, mask=missing),
        name="serial",
        corner_mask=True,
        line_type=LineType.Separate,
    )
    progress.stage("contours", 1.0)
    lines: list[tuple[float, NDArray[np.float64]]] = []
    for k, height in enumerate(heights):
        lines += [(height, line) for line in trace.lines(height)]
        progress.report(k + 1, len(heights))
    geometries = np.empty(len(lines), object)
    geometries[:] = [_wkb(line) for _, line in lines]
    return {
        "height": np.array([height for height, _ in lines], np.float64),
        "is_closed": np.array([bool((line[0] == line[-1]).all()) for _, line in lines], np.bool_),
        "length": np.array(
            [np.hypot(*np.diff(line, axis=0).T).sum() for _, line in lines], np.float64
        ),
        "geometry": geometries,
    }


def _levels(z: "NDArray[np.float64]", options: "Options") -> list[float]:
    """List the heights of contours between the lowest and the highest cell."""
    low, high = ((float(f(z)) - options.base) / options.interval for f in (np.nanmin, np.nanmax))
    if high - low > MOST_LEVELS:
        options.reject(
            "interval", f"so large that there are at most {MOST_LEVELS:,} contours between the "
            f"lowest and the highest of the cells, {(high - low) * options.interval:g} apart",
        )  # fmt: skip
    return [options.base + k * options.interval for k in range(ceil(low), floor(high) + 1)]


def _wkb(line: "NDArray[np.float64]") -> bytes:
    header = np.array([(1, LINE, len(line))], np.dtype("u1, <u4, <u4"))
    return header.tobytes() + line.astype("<f8").tobytes()
