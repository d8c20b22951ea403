"""`ground_surface` on the CPU: seeds, triangles, then the cells row by row."""

from bisect import bisect_left
from math import floor

import numpy as np

from spatialq.data.points import all_finite, not_finite
from spatialq.runtime import buffers, progress
from spatialq.runtime.arrays import Bools, Floats, Int32s, Ints
from spatialq.runtime.threads import Workers, workers

from ..owm_ground import cpu as owm_ground
from . import Options, cells
from .buckets import sort_into_buckets
from .grid import SurfaceRaster, cover
from .triangles import arrange, hull, triangulate

COLUMNS_PER_STRIP = 64
TRIANGLES_PER_STRIP = 1 << 17  # about: small strips, since triangles are not distributed evenly
CELLS_PER_STRIP = 1 << 15  # cells and triangles that are worth a strip of their own
CELLS_PER_PART = 1 << 15  # whose nearest points are searched for at once
FEW_CELLS = 1 << 8  # for which a thread does so in less time than it takes to tell another to


def run(
    x: Floats,
    y: Floats,
    z: Floats,
    point_id: Ints | None,
    options: Options,
) -> dict[str, Floats]:
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
    return interpolate(x, y, z, grid, options)


def interpolate(
    x: Floats,
    y: Floats,
    z: Floats,
    grid: SurfaceRaster,
    options: Options,
) -> dict[str, Floats]:
    """Give the cells of a grid, with heights between ground points; arguments as of `run`."""
    progress.stage("triangles" if options.method == "tin" else "hull", 0.7)
    x, y, z = arrange(x, y, z, grid, thin=options.thin)
    triangles = triangulate(x, y) if options.method == "tin" else hull(x, y)
    progress.stage("cells", 0.95)
    heights = buffers.empty((grid.rows, grid.columns))
    heights.fill(np.nan)
    with workers() as pool:
        if options.method == "tin":
            _rasterise(pool, (x, y, z), triangles, grid, heights)
            if options.extrapolate:
                _weigh(pool, (x, y, z), grid, np.isnan(heights), 1, heights)
        else:
            wanted = np.ones(heights.shape, np.bool_)
            if not options.extrapolate:
                _rasterise(pool, (x, y, z), triangles, grid, heights)
                wanted = ~np.isnan(heights)
            _weigh(pool, (x, y, z), grid, wanted, options.neighbours, heights)
    return grid.table(heights, np)


def _rasterise(
    pool: Workers,
    points: tuple[Floats, ...],
    triangles: Int32s,
    grid: SurfaceRaster,
    heights: Floats,
) -> None:
    """Fill the cells in strips of columns; the first corner of a triangle is its west end."""
    x, n = points[0], len(triangles)
    if n == 0:
        return
    centre_x, centre_y = grid.centres_from()
    most = max(pool.threads, grid.columns // COLUMNS_PER_STRIP)
    wide = max(1, min(most, (grid.rows * grid.columns + n) // CELLS_PER_STRIP))
    if wide == 1 and n <= TRIANGLES_PER_STRIP:
        progress.check()
        cells.rasterise(
            *points, triangles, np.empty((0, 2), np.int64), 0, n,
            centre_x, centre_y, grid.resolution, 0, grid.columns, heights,
        )  # fmt: skip
        return
    west = centre_x[0], grid.resolution

    def first_column(triangle: int) -> int:
        column = floor((x[triangles[triangle, 0]] - west[0]) / west[1]) - cells.MARGIN
        return max(0, int(column))

    even = [k * grid.columns // wide for k in range(wide)]
    dense = [first_column(t) for t in range(0, n, TRIANGLES_PER_STRIP)]
    edges = [*sorted({*even, *dense}), grid.columns]
    # those that begin in each strip, and those of the strips before it that reach into it
    firsts = [bisect_left(range(n), column, key=first_column) for column in edges[:-1]]
    starts, stops, behind = edges[:-1], edges[1:], [*firsts[1:], n]

    def crossing(first: int, behind: int, column: int) -> Ints:
        found = np.empty((0, 2), np.int64)
        n = cells.list_crossing(x, triangles, first, behind, *west, column, found)
        found = np.empty((n, 2), np.int64)
        cells.list_crossing(x, triangles, first, behind, *west, column, found)
        return found

    each = pool.map(crossing, firsts, behind, stops)
    ends = np.cumsum([0, *map(len, each)])
    together = np.concatenate(each)
    pool.map(
        lambda k: cells.rasterise(
            *points, triangles, together[: ends[k]], firsts[k], behind[k],
            centre_x, centre_y, grid.resolution, starts[k], stops[k], heights,
        ),
        range(len(starts)),
    )  # fmt: skip


def _weigh(
    pool: Workers,
    points: tuple[Floats, ...],
    grid: SurfaceRaster,
    wanted: Bools,
    neighbours: int,
    heights: Floats,
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
        pool.spans(
            grid.rows,
            worth=max(1, FEW_CELLS // grid.columns),
            most=max(1, CELLS_PER_PART // grid.columns),
        ),
    )  # fmt: skip
