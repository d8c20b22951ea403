"""`owm_ground` on the CPU: one pass bins the points, then minima slide over the cells."""

import operator
from typing import Any

import numpy as np

from spatialq.data.points import all_finite, not_finite, read_only
from spatialq.data.tiles import Strip
from spatialq.runtime import budget, buffers, progress
from spatialq.runtime.arrays import Array, Bools, Floats, Int32s, Ints
from spatialq.runtime.threads import CHUNK, Workers, n_threads, steps, workers

from . import Options, cells, small
from .result import columns_of, result_of
from .windows import Box, SlotAxis, cut_axes, default_min_points, octree_root

CELL = np.dtype([("z", "f8"), ("n", "i4"), ("p", "i4")], align=True)
BIG_CELL = np.dtype([("z", "f8"), ("n", "i8"), ("p", "i8")], align=True)  # from 2^31 points on

MAX_TABLES = 1 << 30  # bytes that the tables of all threads but the first may take
MIN_TABLES = 1 << 24  # what they may always take
TABLES_SHARE = 8  # and they may take this part of the budget of memory
NONE = read_only(np.empty(0, np.int64))
POINTS_PER_THREAD = 100_000  # with fewer, another thread costs more than it saves


def run(
    x: Floats,
    y: Floats,
    z: Floats,
    point_id: Ints | None,
    options: Options,
    box: Box | None = None,
    strip: Strip | None = None,
) -> dict[str, Array]:
    """Find the lowest points of overlapping windows.

    Parameters
    ----------
    x, y, z : float64[n], units of the cloud's CRS
    point_id : int64[n], unique, or None
        None for 0, 1, 2 ...
    options : Options
        `bounds`, if given, is the extent that windows and fill cells divide and the default of
        `min_points` follows from; it must hold all points.
    box : Box, optional
        That extent, in the place of `bounds`; by default that of the points.
    strip : Strip, optional
        The part of the extent, with its halo, that the points are of; hits and filled points are
        right in the strip itself, see tiled.py.

    Returns
    -------
    dict of columns
        `point_id`, `x`, `y`, `z`; `hits` int32: in how many windows the point is the lowest;
        `filled` bool: whether it was added because its fill cell had no seed. Seeds come first,
        then filled points, each by ascending point_id.

    Raises
    ------
    ValueError
        If a coordinate is not finite, or the windows are too many for memory.

    Notes
    -----
    An empty cloud gives empty columns. A cloud without area (one point, a line along an axis)
    has no density; a window then needs only one point.

    References
    ----------
    Munoz, Asenjo, Navarro, Cabaleiro: CPU and GPU oriented optimizations for LiDAR data
    processing, J. Comput. Sci. 2024, section 2.1. No tree is built here: see README.md.
    """
    given = point_id
    ids = NONE if given is None else read_only(given)
    arrays: list[Array] = [read_only(values) for values in (x, y, z)]
    x, y, z = arrays
    cloud = x, y, z, given
    if x.size == 0:
        return result_of(cloud, NONE, NONE, NONE, NONE)
    if box is None and options.bounds is not None:
        box = Box.of(options.bounds)
    if x.size <= small.MAX_POINTS and strip is None and options.ties == "lowest_id":
        found = small.seeds_of((x, y, z, ids), options, box)
        if found is not None:
            points, hits, n_seeds = found
            there = points if given is None else ids[points]
            return columns_of((x, y, z), there, points, hits, n_seeds, operator.getitem)
    threads = max(1, min(n_threads(), x.size // POINTS_PER_THREAD))
    with workers(threads) as pool:
        progress.stage("extent", 0.1)
        there = extent(pool, cloud, options.function)
        box = box or there
        code = NONE
        if options.ties == "octree":
            progress.stage("octree codes", 0.3)
            code = _octree_codes(pool, arrays, octree_root(box, options.function))
        progress.stage("points to cells", 0.8)

        def used(axes: tuple[SlotAxis, SlotAxis]) -> tuple[Bools, Bools]:
            return _used(x, axes[0]), _used(y, axes[1])

        columns, rows = cut_axes(box, x.size, options, used, strip, there)
        shape = rows.n_slots, columns.n_slots
        if 0 in shape:  # a small cloud may have no window, or none with a point
            if not all_finite(z):
                raise ValueError(not_finite(options.function, *cloud))
            return result_of(cloud, NONE, NONE, NONE, NONE)
        table = _table(pool, (x, y, z, code, ids), columns, rows)
        if table is None:
            raise ValueError(not_finite(options.function, *cloud))
        progress.stage("windows", 0.95)
        windows = _windows(pool, (code, ids), table, columns, rows)

    def cells_of(points: Array) -> tuple[Array, Array]:
        return _columns(buffers.take(y, points), rows), _columns(buffers.take(x, points), columns)

    min_points = options.min_points or default_min_points(x.size, box, options.window_size)
    needed = options.hits_needed
    hits = buffers.zeros(shape, np.int32)
    winners = _winners(windows, min_points)
    progress.stage("seeds", 1.0)
    seeds = buffers.scratch(winners.size // needed, np.int64)
    seeds = seeds[: cells.count_hits(winners, *cells_of(winners), needed, hits, seeds)]
    filled = _fill_gaps((z, code, ids), table, columns, rows, *cells_of(seeds))
    if given is None:
        seeds.sort()
        filled.sort()
    return result_of(cloud, seeds, hits[cells_of(seeds)], filled, hits[cells_of(filled)])


def extent(pool: Workers, cloud: tuple[Any, ...], function: str) -> Box:
    """Find the extent of a cloud of at least one point.

    Raises
    ------
    ValueError
        If x or y is not finite somewhere.
    """
    parts = pool.spans(cloud[0].size)
    extents = pool.map(lambda part: cells.extent(cloud[0], cloud[1], *part), parts)
    if any(bad for *_, bad in extents):
        raise ValueError(not_finite(function, *cloud))
    x_low, x_high, y_low, y_high, _ = zip(*extents, strict=True)
    return Box(min(x_low), max(x_high), min(y_low), max(y_high))


def _table(
    pool: Workers,
    cloud: tuple[Array, ...],
    columns: SlotAxis,
    rows: SlotAxis,
) -> Array | None:
    """Bin the points: each thread fills a table; all are then merged into the first.

    None if a z is not finite.
    """
    x, _, _, code, point_id = cloud
    record = CELL if x.size < 2**31 else BIG_CELL
    copies = _copies(pool.threads, (rows.n_slots, columns.n_slots))
    tables = [buffers.zeros(rows.n_slots * columns.n_slots, record) for _ in range(copies)]
    lookup = (*columns.lookup, *rows.lookup)

    def fill(part: tuple[int, int], table: Array) -> int:
        return int(cells.fill_table(*cloud, *part, *lookup, table, columns.n_slots))

    if any(pool.map_into(tables, fill, pool.spans(x.size))):
        return None
    first, *others = tables
    for other in others:

        def merge(part: tuple[int, int], other: Array = other) -> None:
            cells.merge(code, point_id, first, other, *part)

        pool.map(merge, pool.spans(first.size))
    table: Array = first.reshape(rows.n_slots, columns.n_slots)
    return table


def _windows(
    pool: Workers,
    ties: tuple[Array, ...],
    table: Array,
    columns: SlotAxis,
    rows: SlotAxis,
) -> Array:
    """Find the lowest point and the count of each window: along the rows, then the columns."""

    def slide(source: Any, order: Any, axis: SlotAxis, n_rows: int) -> Any:
        result: Array = buffers.scratch((axis.window_start.size, n_rows), source.dtype)
        runs = (axis.window_start, axis.window_stop)
        pool.map(
            lambda part: cells.slide(*ties, source, *order, *runs, *part, result),
            pool.spans(n_rows, most=max(1, CHUNK // order[1].size)),
        )
        return result

    along_rows = slide(table, (rows.order, columns.order), columns, rows.n_slots)
    as_they_are = tuple(np.arange(n, dtype=np.int32) for n in along_rows.shape)
    windows: Array = slide(along_rows, as_they_are, rows, columns.window_start.size)
    return windows


def _winners(windows: Array, min_points: int) -> Array:
    """Give the lowest points of the windows that have enough points."""
    enough = buffers.scratch(windows.shape, np.bool_)
    np.greater_equal(windows["n"], min_points, out=enough)
    winners: Array = buffers.select(windows["p"], enough)
    return winners


def _used(values: Floats, axis: SlotAxis) -> Bools:
    """Tell which places of an axis have points."""
    used = np.zeros(axis.n_slots, np.bool_)
    for first, stop in steps(0, values.size):
        slots = _columns(values[first:stop], axis)
        used[slots[slots >= 0]] = True
    return used[axis.columns]


def _columns(values: Floats, axis: SlotAxis) -> Int32s:
    found: Int32s = buffers.scratch(values.size, np.int32)
    cells.locate(values, *axis.lookup, found)
    return found


def _fill_gaps(
    cloud: tuple[Array, ...],
    table: Array,
    columns: SlotAxis,
    rows: SlotAxis,
    seed_rows: Array,
    seed_columns: Array,
) -> Ints:
    """Find the lowest points of the fill cells that have no seed."""
    seeded = np.zeros((rows.fill_start.size, columns.fill_start.size), np.bool_)
    j, i = rows.fill_cells[seed_rows], columns.fill_cells[seed_columns]
    inside = (j >= 0) & (i >= 0)
    seeded[j[inside], i[inside]] = True
    along = (rows.order, rows.fill_start, rows.fill_stop)
    across = (columns.order, columns.fill_start, columns.fill_stop)
    most = max(1, CHUNK * rows.fill_start.size // table.size)
    found = [
        cells.fill_gaps(*cloud, table, seeded, *along, *across, *part)
        for part in steps(0, rows.fill_start.size, most)
    ]
    return np.concatenate([np.empty(0, np.int64), *found])


def _copies(threads: int, shape: tuple[int, int]) -> int:
    """Count the tables: one per thread, unless that takes too much memory."""
    size = shape[0] * shape[1] * CELL.itemsize
    if size * threads <= MIN_TABLES:
        return threads
    most = min(MAX_TABLES, budget.current() // TABLES_SHARE)
    return max(1, min(threads, most // size))


def _octree_codes(pool: Workers, arrays: list[Array], root: tuple[float, float, float]) -> Ints:
    codes: Ints = buffers.scratch(arrays[0].size, np.int64)
    pool.map(
        lambda part: cells.octree_codes(*arrays[:3], *root, *part, codes), pool.spans(codes.size)
    )
    codes.flags.writeable = False
    return codes
