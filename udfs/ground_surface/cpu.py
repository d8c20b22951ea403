"""`ground_surface` on the CPU: seeds, triangles, then the cells row by row."""

from typing import TYPE_CHECKING

import numpy as np

from spatialq.data.points import all_finite, not_finite
from spatialq.runtime import progress
from spatialq.runtime.threads import Workers, spans, workers

from ..owm_ground import cpu as owm_ground
from . import cells
from .buckets import sort_into_buckets
from .grid import SurfaceRaster, cover
from .triangles import Triangles, arrange, hull, triangulate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from . import Options

ROWS_PER_PART = 64  # small parts, since triangles are not distributed evenly
CELLS_PER_PART = 1 << 15  # whose nearest points are searched for at once


def run(
    x: "NDArray[np.float64]",
    y: "NDArray[np.float64]",
    z: "NDArray[np.float64]",
    point_id: "NDArray[np.int64] | None",
    options: "Options",
) -> "dict[str, NDArray[np.float64]]":
    """Make a terrain grid from the ground seeds of a cloud, or from ground points.

    Parameters
    ----------
    x, y, z : float64[n], units of the cloud's CRS
    point_id : int64[n], unique, or None
        None for 0, 1, 2 ...
    options : Options

    Returns
    -------
    dict of columns
        `x`, `y`: centre of each cell of the grid over all points, the northernmost row first,
        each from west to east; `z`: its height, NaN where there is none.

    Raises
    ------
    ValueError
        If a coordinate is not finite, or the grid or the windows are too large for memory.

    Notes
    -----
    An empty cloud gives empty columns. Ground points on one line have no convex hull; without
    `extrapolate` no cell then has a height.
    """
    if x.size == 0:
        return {name: np.empty(0) for name in "xyz"}
    progress.stage("extent", 0.05)
    if not all_finite(x, y, z):
        raise ValueError(not_finite(options.function, x, y, z, point_id))
    grid = cover(x, y, options)
    if options.source == "seeds":
        progress.stage("seeds", 0.4)
        with progress.nested():
            seeds = owm_ground.run(x, y, z, point_id, options)
        x, y, z = seeds["x"], seeds["y"], seeds["z"]
    progress.stage("triangles" if options.method == "tin" else "hull", 0.7)
    x, y, z = arrange(x, y, z, grid, thin=options.thin)
    heights = np.full((grid.rows, grid.columns), np.nan)
    with workers() as pool:
        if options.method == "tin":
            _rasterise(pool, (x, y, z), triangulate(x, y), grid, heights)
            if options.extrapolate:
                _weigh(pool, (x, y, z), grid, np.isnan(heights), 1, heights)
        else:
            wanted = np.ones(heights.shape, np.bool_)
            if not options.extrapolate:
                _rasterise(pool, (x, y, z), hull(x, y), grid, heights)
                wanted = ~np.isnan(heights)
            _weigh(pool, (x, y, z), grid, wanted, options.neighbours, heights)
    return grid.table(heights, np)


def _rasterise(
    pool: Workers,
    points: "tuple[NDArray[np.float64], ...]",
    triangles: Triangles,
    grid: SurfaceRaster,
    heights: "NDArray[np.float64]",
) -> None:
    x, y, z = points
    centre_x, centre_y = grid.centres_from()
    first, last = (np.empty(len(triangles), np.int32) for _ in range(2))
    size = grid.resolution
    pool.map(
        lambda part: cells.span_rows(
            y, triangles, centre_y[0], size, grid.rows, *part, first, last
        ),
        pool.spans(len(triangles)),
    )
    parts = max(pool.threads, grid.rows // ROWS_PER_PART)
    pool.map(
        lambda part: cells.rasterise(
            x, y, z, triangles, first, last, centre_x, centre_y, size, *part, heights
        ),
        spans(grid.rows, parts),
    )


def _weigh(
    pool: Workers,
    points: "tuple[NDArray[np.float64], ...]",
    grid: SurfaceRaster,
    wanted: "NDArray[np.bool_]",
    neighbours: int,
    heights: "NDArray[np.float64]",
) -> None:
    if points[0].size == 0:
        return
    buckets = sort_into_buckets(*points)
    centre_x, centre_y = grid.centres_from(buckets.corner)
    pool.map(
        lambda part: cells.weigh_cells(
            buckets.x, buckets.y, buckets.z, buckets.starts,
            buckets.side, buckets.columns, buckets.rows,
            centre_x, centre_y, neighbours, wanted, *part, heights,
        ),
        pool.spans(grid.rows, most=max(1, CELLS_PER_PART // grid.columns)),
    )  # fmt: skip
