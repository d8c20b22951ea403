"""`classify_ground` on the CPU: the stages of README.md, each a Numba loop over bands of rows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.parallel import n_threads, spans
from spatialq.udfs.owm_ground import Options as OwmOptions
from spatialq.udfs.owm_ground import cpu as owm_ground

from . import discs, fill, method, points, terrain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from . import Options

    Heights = NDArray[np.float32]
    Flags = NDArray[np.bool_]

MAX_CELLS = 1 << 28
ITEMS_PER_THREAD = 100_000
BAND = 64


class Threads:
    """Runs a loop over parts of a range, on as many threads as pay."""

    def __init__(self, pool: ThreadPoolExecutor, threads: int) -> None:
        self.pool, self.threads = pool, threads

    def each(self, loop: Callable[..., Any], *arguments: Any, n: int, size: int = 1) -> list[Any]:
        parts = max(1, min(self.threads, n * size // ITEMS_PER_THREAD, n))
        if parts == 1:
            return [loop(*arguments, 0, n)]
        return list(self.pool.map(lambda part: loop(*arguments, *part), spans(n, parts)))

    def rows(self, loop: Callable[..., Any], *arguments: Any) -> list[Any]:
        rows, columns = arguments[-1].shape
        return self.each(loop, *arguments, n=rows, size=columns)


@dataclass(frozen=True)
class Grid:
    west: float
    south: float
    cell: float
    rows: int
    columns: int

def run(x, y, z, point_id, options):
    arrays = [np.ascontiguousarray(values).view() for values in (x, y, z)]
    if options.unit != 1:
        arrays = [values * options.unit for values in arrays]
    for values in arrays:
        values.flags.writeable = False
    n = point_id.size
    height, is_ground = np.empty(n), np.empty(n, np.bool_)
    if n:
        threads = n_threads()
        with ThreadPoolExecutor(threads) as pool:
            _classify(Threads(pool, threads), arrays, point_id, options, height, is_ground)
    return {"point_id": point_id, "height": height / options.unit, "is_ground": is_ground}


def _classify(threads, cloud, point_id, options, height, is_ground):
    x, y, z = cloud
    grid = _grid(threads, cloud, point_id)
    z_low = np.full((grid.rows, grid.columns), np.inf)
    points.lowest(x, y, z, grid.west, grid.south, grid.cell, z_low, 0, x.size)
    points.lowest(x, y, z, grid.west, grid.south, grid.cell, z_low, 0, x.size)
    known = np.isfinite(z_low)
    level = float(np.floor(np.median(z_low[known])))
    low = (z_low - level).astype(np.float32)
    low[~known] = 0
    cell = np.float32(grid.cell)
    surface = _fill(threads, low, known)
    pits = _opening(threads, -surface, 1, 0)
    known &= ~((-pits) - surface > method.PIT_SLOPE * cell)
    surface = _fill(threads, low, known)
    raw = _objects(threads, surface, grid, method.RAW_SLOPE)
    base = _base(threads, cloud, point_id, options, grid, surface, known & ~raw, level)
    ground = ~(raw & _objects(threads, surface - base, grid, method.BASE_SLOPE))
    height_above = surface - _fill(threads, low, known & ground)
    slope_x, slope_y, rms = (np.empty_like(surface) for _ in range(3))
    threads.rows(terrain.fit_planes, surface, np.float32(1) / cell, slope_x, slope_y, rms)
    for _ in range(method.GROWTHS):
        new = np.empty_like(ground)
        threads.rows(terrain.grow, surface, slope_x, slope_y, rms, ground, cell, method.SMOOTH_RMS,
                     method.SMOOTH_STEP, method.SMOOTH_NEIGHBOURS, new)
        ground = new
    candidate = known & (height_above >= method.CREST_HEIGHT)
    reach = floor(method.CREST_RADIUS / grid.cell)
    span = np.arange(-reach, reach + 1)
    dr, dc = np.meshgrid(span, span, indexing="ij")
    near = (dr**2 + dc**2 > 0) & ((dr**2 + dc**2) * grid.cell**2 <= method.CREST_RADIUS**2)
    dr, dc = dr[near].astype(np.int32), dc[near].astype(np.int32)
    dx, dy = (dc * grid.cell).astype(np.float32), (dr * grid.cell).astype(np.float32)
    most = method.CREST_DISTANCE + method.CREST_SLOPE * np.sqrt(dx * dx + dy * dy)
    needed = np.float32(method.CREST_NEIGHBOURS / grid.cell**2)
    for _ in range(method.CRESTS):
        new = np.empty_like(ground)
        threads.rows(terrain.extend, surface, slope_x, slope_y, rms, ground & known if method.__dict__.get("EXT_KNOWN", True) else ground, candidate,
                     dr, dc, dx, dy, most, method.CREST_RMS, needed, method.CREST_SHARE, new)
        ground = new | ground
    candidate = known & (height_above >= method.CLIFF_HEIGHT)
    new = np.empty_like(ground)
    threads.rows(terrain.join_cliffs, surface, ground & known, candidate, round(method.CLIFF_REACH / grid.cell),
                 cell, np.float32(sqrt(2) * grid.cell), method.CLIFF_SLOPE, method.CLIFF_DISTANCE,
                 method.CLIFF_TOP_SLOPE, new)
    ground = new & known | (ground & known)
    slope = np.empty_like(surface)
    half = np.float32(0.5) / cell
    dtm = _fill(threads, low, ground)
    for k in range(method.DENSIFICATIONS):
        threads.rows(terrain.slopes, dtm, half, slope)
        new = np.empty_like(ground)
        changed = sum(threads.rows(terrain.near_terrain, low, known, dtm, slope, method.DENSE_DISTANCE,
                                method.DENSE_SLOPE, ground, new))
        if not changed:
            break
        ground = new
        dtm = _fill(threads, low, ground)
    threads.rows(terrain.slopes, dtm, half, slope)
    threads.each(points.classify, x, y, z, grid.west, grid.south, level, grid.cell, dtm, slope,
                 options.max_distance, options.max_distance_slope, height, is_ground, n=x.size)


def _grid(threads, cloud, point_id):
    sides = []
    for values in cloud:
        ends = threads.each(points.extent, values, n=values.size)
        if any(bad for *_, bad in ends):
            raise ValueError(_not_finite(cloud, point_id))
        sides.append((min(low for low, *_ in ends), max(high for _, high, _ in ends)))
    (west, east), (south, north), _ = sides
    rows, columns = (int((high - low) / method.BLOCK) + 1 for low, high in (sides[1], sides[0]))
    occupied = np.zeros((rows, columns), np.bool_)
    threads.each(points.mark, cloud[0], cloud[1], west, south, method.BLOCK, occupied, n=cloud[0].size)
    area = min((east - west) * (north - south), np.count_nonzero(occupied) * method.BLOCK**2)
    cell = max(method.LEAST_CELL, method.SPACINGS_PER_CELL * sqrt(area / cloud[0].size))
    west, south = floor(west / cell) * cell, floor(south / cell) * cell
    return Grid(west, south, cell, int((north - south) / cell) + 1, int((east - west) / cell) + 1)


def _not_finite(cloud, point_id):
    bad = ~(np.isfinite(cloud[0]) & np.isfinite(cloud[1]) & np.isfinite(cloud[2]))
    return (
        f"classify_ground: x, y and z must be finite, got {np.count_nonzero(bad)} points with NaN "
        f"or infinity, the first with point_id {point_id[np.argmax(bad)]}"
    )


def _fill(threads, z, known):
    levels = [(z, known)]
    while max(levels[-1][0].shape) > 1:
        z, known = levels[-1]
        shape = (z.shape[0] + 1) // 2, (z.shape[1] + 1) // 2
        coarse, coarse_known = np.empty(shape, np.float32), np.empty(shape, np.bool_)
        threads.rows(fill.halve, z, known, coarse, coarse_known)
        levels.append((coarse, coarse_known))
    filled, _ = levels.pop()
    for z, known in reversed(levels):
        coarse, filled, other = filled, np.empty_like(z), np.empty_like(z)
        threads.rows(fill.double, coarse, z, known, filled)
        for _ in range(method.SWEEPS):
            threads.rows(fill.relax, filled, known, method.RELAXATION, other)
            filled, other = other, filled
    return filled


def _opening(threads, z, radius, margin):
    """Opening by a disc; its centre may lie `margin` cells outside."""
    half_widths = np.array([floor(sqrt(radius**2 - d**2)) for d in range(radius + 1)])
    frame = np.pad(z, margin, constant_values=np.inf) if margin else z
    eroded, opened = np.empty_like(frame), np.empty_like(frame)
    _bands(threads, discs.lowest, frame, np.float32(1), half_widths, eroded)
    _bands(threads, discs.lowest, eroded, np.float32(-1), half_widths, opened)
    return opened[margin : margin + z.shape[0], margin : margin + z.shape[1]]


def _bands(threads, loop, *arguments):
    rows = arguments[-1].shape[0]
    bands = spans(rows, -(-rows // BAND))
    list((threads.pool.map if len(bands) > 1 and threads.threads > 1 else map)(lambda band: loop(*arguments, *band), bands))


def _objects(threads, z, grid, slope):
    flags = np.zeros(z.shape, np.bool_)
    before = np.ascontiguousarray(z)
    for radius in range(1, floor(method.LARGEST_RADIUS / grid.cell) + 1):
        after = np.ascontiguousarray(_opening(threads, before, radius, floor(method.MARGIN * radius)))
        threads.rows(terrain.flag, before, after, slope * np.float32(radius * grid.cell), flags)
        before = after
    return flags


def _base(threads, cloud, point_id, options, grid, surface, candidate, level):
    x, y, z = cloud
    area = None
    seeds = owm_ground.run(x, y, z, np.arange(x.size), OwmOptions(options.window_size, options.overlap, options.min_points, options.cell_size))
    c = ((seeds["x"] - grid.west) / grid.cell).astype(np.int64).clip(0, grid.columns - 1)
    r = ((seeds["y"] - grid.south) / grid.cell).astype(np.int64).clip(0, grid.rows - 1)
    zs = (seeds["z"] - level).astype(np.float32)
    use = candidate[r, c] & (zs <= surface[r, c] + np.float32(0.01))
    if not use.any():
        return np.zeros_like(surface)
    known = np.zeros(surface.shape, np.bool_)
    low = np.zeros_like(surface)
    known[r[use], c[use]] = True
    low[r[use], c[use]] = surface[r[use], c[use]]
    base = _fill(threads, low, known)
    radius = round(method.BASE_RADIUS / grid.cell)
    other = np.empty_like(base)
    for _ in range(2):
        threads.rows(terrain.blur_rows, base, radius, other)
        threads.rows(terrain.blur_columns, other, radius, base)
    return base
