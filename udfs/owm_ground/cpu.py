"""`owm_ground` on the CPU: one pass bins the points, then minima slide over the cells."""

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.parallel import n_threads, spans

from . import cells
from .windows import (
    Axis,
    Box,
    cut_axis,
    fill_borders,
    least_points,
    most_borders,
    window_borders,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from . import Options

CELL = np.dtype([("z", "f8"), ("n", "i4"), ("p", "i4")], align=True)
BIG_CELL = np.dtype([("z", "f8"), ("n", "i8"), ("p", "i8")], align=True)  # from 2^31 points on

MAX_BORDERS = 20_000_000  # along an axis
MAX_CELLS = 1 << 30
MAX_TABLES = 1 << 30  # bytes that the tables of further threads may take
MIN_SPARSE = 1 << 22  # cells up to which it does not matter how many are empty
POINTS_PER_THREAD = 100_000  # below this a further thread costs more than it brings


def run(
    x: "NDArray[np.float64]",
    y: "NDArray[np.float64]",
    z: "NDArray[np.float64]",
    point_id: "NDArray[np.int64]",
    options: "Options",
) -> "dict[str, NDArray[Any]]":
    """Find the lowest points of overlapping windows.

    Parameters
    ----------
    x, y, z : float64[n], units of the cloud's CRS
    point_id : int64[n], unique
    options : Options

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
    has no density: one point is then enough for a window.

    References
    ----------
    Munoz, Asenjo, Navarro, Cabaleiro: CPU and GPU oriented optimizations for LiDAR data
    processing, J. Comput. Sci. 2024, section 2.1. No tree is built, unlike there: see README.md.
    """
    arrays = [np.ascontiguousarray(values).view() for values in (x, y, z, point_id)]
    for values in arrays:
        # Read-only views have one Numba type, wherever the arrays came from.
        values.flags.writeable = False
    if x.size == 0:
        none = np.empty(0, np.int64)
        return _result(arrays, none, none, none, none)
    threads = max(1, min(n_threads(), x.size // POINTS_PER_THREAD))
    with ThreadPoolExecutor(threads) as pool:
        box = _box(pool, arrays, spans(x.size, threads))
        cloud = (*arrays, _root(box) if options.ties == "octree" else (0.0, 0.0, 0.0))
        columns, rows = _axes(cloud, box, options)
        on = _lookup(columns), _lookup(rows)
        table = _table(pool, cloud, on, spans(x.size, _copies(threads, columns, rows)))
        windows = _windows(pool, cloud, table, columns, rows, threads)
    least = options.min_points or least_points(x.size, box, options.window_size)
    needed = 1 if options.overlap == 0 else 2
    hits = np.zeros(table.shape, np.int32)
    seeds = cells.count_hits(cloud, windows, least, needed, *on, hits)
    filled = cells.fill_gaps(
        cloud,
        table,
        hits,
        needed,
        (rows.order, columns.order),
        (rows.fill_start, rows.fill_stop),
        (columns.fill_start, columns.fill_stop),
    )
    return _result(
        arrays,
        seeds,
        cells.hits_of(cloud, seeds, *on, hits),
        filled,
        cells.hits_of(cloud, filled, *on, hits),
    )


def _box(
    pool: ThreadPoolExecutor, arrays: "list[NDArray[Any]]", parts: list[tuple[int, int]]
) -> Box:
    extents = list(pool.map(lambda part: cells.extent(arrays[0], arrays[1], *part), parts))
    if any(bad for *_, bad in extents):
        raise ValueError(_not_finite(arrays))
    x_low, x_high, y_low, y_high, _ = zip(*extents, strict=True)
    return Box(min(x_low), max(x_high), min(y_low), max(y_high))


def _axes(cloud: Any, box: Box, options: "Options") -> tuple[Axis, Axis]:
    """Cut both axes, and leave out what has no points where the table would be too large."""
    borders = [
        (
            window_borders(low, high, options.window_size, options.overlap),
            fill_borders(low, high, options.cell_size),
        )
        for low, high in _sides(box, options)
    ]
    axes = [cut_axis(*each) for each in borders]
    n_points = cloud[0].size
    if axes[0].n_slots * axes[1].n_slots > MIN_SPARSE + 8 * n_points:
        for k, axis in enumerate(axes):
            used = np.zeros(axis.n_slots, np.bool_)
            cells.occupy(cloud[k], _lookup(axis), used)
            axes[k] = cut_axis(
                *borders[k], (used[axis.interval_column], used[axis.border_column])
            )
    if axes[0].n_slots * axes[1].n_slots > MAX_CELLS:
        message = (
            f"owm_ground: window_size {options.window_size} and overlap {options.overlap} cut "
            f"{n_points} points over {box.width:g} x {box.height:g} into "
            f"{axes[0].n_slots * axes[1].n_slots:.2g} cells, more than {MAX_CELLS:.2g}; "
            "take larger windows, less overlap, or tiles"
        )
        raise ValueError(message)
    return axes[0], axes[1]


def _sides(box: Box, options: "Options") -> "Iterator[tuple[float, float]]":
    for low, high in ((box.x_low, box.x_high), (box.y_low, box.y_high)):
        n = most_borders(high - low, options.window_size, options.overlap, options.cell_size)
        if n > MAX_BORDERS:
            message = (
                f"owm_ground: window_size {options.window_size} and overlap {options.overlap} "
                f"give {n:.2g} window borders along an extent of {high - low:g}, more than "
                f"{MAX_BORDERS:.2g}; take larger windows, less overlap, or tiles"
            )
            raise ValueError(message)
        yield low, high


def _table(
    pool: ThreadPoolExecutor, cloud: Any, on: Any, parts: list[tuple[int, int]]
) -> "NDArray[Any]":
    """Bin the points: each thread into a table of its own, the first takes in the others."""
    shape = (on[1][-1], on[0][-1])
    record = CELL if cloud[0].size < 2**31 else BIG_CELL
    tables = [np.zeros(shape, record) for _ in parts]
    bad = list(
        pool.map(
            lambda part, table: cells.fill_table(cloud, *part, *on, table), parts, tables
        )
    )
    if any(bad):
        raise ValueError(_not_finite(list(cloud[:4])))
    for other in tables[1:]:
        list(
            pool.map(
                lambda part, other=other: cells.merge(cloud, tables[0], other, *part),
                spans(shape[0], len(parts)),
            )
        )
    return tables[0]


def _windows(
    pool: ThreadPoolExecutor,
    cloud: Any,
    table: "NDArray[Any]",
    columns: Axis,
    rows: Axis,
    threads: int,
) -> "NDArray[Any]":
    """Lowest point and count of each window: slide along the rows, then along the columns."""

    def slide(source: Any, order: Any, axis: Axis, n_rows: int) -> Any:
        result = np.empty((axis.window_start.size, n_rows), source.dtype)
        runs = (axis.window_start, axis.window_stop)
        list(
            pool.map(
                lambda part: cells.slide(cloud, source, order, runs, *part, result),
                spans(n_rows, threads),
            )
        )
        return result

    along_rows = slide(table, (rows.order, columns.order), columns, rows.n_slots)
    as_they_are = tuple(np.arange(n, dtype=np.int32) for n in along_rows.shape)
    return slide(along_rows, as_they_are, rows, columns.window_start.size)


def _lookup(axis: Axis) -> tuple[Any, ...]:
    return (
        axis.borders,
        axis.guess,
        axis.scale,
        axis.interval_column,
        axis.border_column,
        axis.n_slots,
    )


def _copies(threads: int, columns: Axis, rows: Axis) -> int:
    """Tables to fill at once: one a thread, unless that asked for too much memory."""
    size = columns.n_slots * rows.n_slots * CELL.itemsize
    return max(1, min(threads, MAX_TABLES // size if size else threads))


def _root(box: Box) -> tuple[float, float, float]:
    """Centre and half side of the reference's octree."""
    return (
        (box.x_low + box.x_high) / 2,
        (box.y_low + box.y_high) / 2,
        max(box.width, box.height) / 2,
    )


def _not_finite(arrays: "list[NDArray[Any]]") -> str:
    bad = ~(np.isfinite(arrays[0]) & np.isfinite(arrays[1]) & np.isfinite(arrays[2]))
    return (
        f"owm_ground: x, y and z must be finite, got {np.count_nonzero(bad)} points with NaN or "
        f"infinity, the first with point_id {arrays[3][np.argmax(bad)]}"
    )


def _result(
    arrays: "list[NDArray[Any]]",
    seeds: "NDArray[np.int64]",
    hits: "NDArray[Any]",
    filled: "NDArray[np.int64]",
    filled_hits: "NDArray[Any]",
) -> "dict[str, NDArray[Any]]":
    x, y, z, point_id = arrays
    points = np.concatenate([seeds, filled])
    is_filled = np.arange(points.size) >= seeds.size
    order = np.lexsort((point_id[points], is_filled))
    points = points[order]
    return {
        "point_id": point_id[points],
        "x": x[points],
        "y": y[points],
        "z": z[points],
        "hits": np.concatenate([hits, filled_hits]).astype(np.int32)[order],
        "filled": is_filled[order],
    }
