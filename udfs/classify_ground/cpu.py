"""`classify_ground` on the CPU: the stages of README.md, each a few loops over bands of rows."""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from spatialq.udfs.owm_ground import cpu as owm_ground

from spatialq.data.points import ids_of, not_finite, read_only
from spatialq.runtime import buffers, progress
from spatialq.runtime.threads import CHUNK, Workers, spans, workers

from . import discs, fill, method, points, small, terrain
from .grid import CloudRaster, extent, lay_grid, windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from . import Options

    Heights = NDArray[np.float32]
    Flags = NDArray[np.bool_]
    Cloud = list[NDArray[np.float64]]
    Seeds = dict[str, NDArray[Any]]
    Found = dict[str, NDArray[Any]]

ITEMS_PER_THREAD = 100_000  # with fewer points or cells, another thread costs more than it saves
BAND = 64  # rows for which the tables of discs are made together


def run(
    x: "NDArray[np.float64]",
    y: "NDArray[np.float64]",
    z: "NDArray[np.float64]",
    point_id: "NDArray[np.int64] | None",
    options: "Options",
) -> "dict[str, NDArray[Any]]":
    """Compute the height of each point above the terrain, and whether the point is ground.

    Parameters
    ----------
    x, y, z : float64[n], units of the cloud's CRS
    point_id : int64[n] or None
        None for 0, 1, 2 ...
    options : Options

    Returns
    -------
    dict of columns
        `point_id` as given; `height` float64[n]: above the terrain, in the units of z; `is_ground`
        bool[n]; `margin` float32[n], in the units of z: by how much `height` may change before
        `is_ground` does, negative where it is false. Rows are in the order of the input.

    Raises
    ------
    ValueError
        If a coordinate is not finite, or the grid would be too large for memory.

    Notes
    -----
    An empty cloud gives empty columns. A cloud of one point is ground. The result does not depend
    on the order of the points or on the number of threads.

    References
    ----------
    The seeds are those of Munoz, Asenjo, Navarro, Cabaleiro: CPU and GPU oriented optimizations
    for LiDAR data processing, J. Comput. Sci. 2024, section 2.1; the rest is ours: see README.md.
    """
    found = columns(x.size)
    if x.size > 0:
        cloud = [x, y, z]
        if options.metres != 1:
            with np.errstate(over="ignore"):  # values that become infinite are rejected below
                cloud = [np.multiply(v, options.metres, buffers.empty(v.size)) for v in cloud]
        cloud = [read_only(values) for values in cloud]
        with workers() as pool:
            _classify(Threads(pool), cloud, point_id, options, found)
    return {"point_id": ids_of(point_id, x.size), **found}


def columns(n: int) -> "Found":
    """Allocate what is found for points."""
    return {name: buffers.empty(n, kind) for name, kind in method.COLUMNS.items()}


@dataclass(frozen=True)
class Terrain:
    """Heights and slopes of the terrain, of the whole grid or of a part of it."""

    heights: "Heights"
    """Above `level`."""
    slopes: "Heights"
    level: float
    first: tuple[int, int] = (0, 0)
    """The first row and column of the part."""


@dataclass(frozen=True)
class Threads:
    """Runs a loop over parts of a range, on as many threads as are worth their start."""

    pool: Workers

    def points(self, loop: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call a loop over the points; its first argument has one value per point."""
        n = arguments[0].size
        if n < ITEMS_PER_THREAD:
            progress.check()
            return [loop(*arguments, 0, n)]
        return self._each(loop, arguments, self.pool.spans(n, ITEMS_PER_THREAD))

    def rows(self, loop: Callable[..., Any], *arguments: Any, most: int | None = None) -> list[Any]:
        """Call a loop over rows of a grid, `most` at a time; the last argument is the result."""
        rows, columns = arguments[-1].shape
        most = most or max(1, CHUNK // columns)
        if rows <= most and self.pays(rows * columns) == 1:
            progress.check()
            return [loop(*arguments, 0, rows)]
        parts = max(-(-rows // most), min(rows, self.pays(rows * columns)))
        return self._each(loop, arguments, spans(rows, parts))

    def _each(
        self, loop: Callable[..., Any], arguments: Any, parts: list[tuple[int, int]]
    ) -> list[Any]:
        if len(parts) == 1:  # of a small cloud there are hundreds, which take less than to map
            progress.check()
            return [loop(*arguments, *parts[0])]
        return self.pool.map(lambda part: loop(*arguments, *part), parts)

    def cells(self, formula: Callable[..., Any], kind: Any, *grids: Any) -> Any:
        """Apply a formula of NumPy to grids of one shape, some rows at a time."""
        if self.pays(grids[0].size) == 1:
            return np.asarray(formula(*grids)).astype(kind, copy=False)
        result = buffers.scratch(grids[0].shape, kind)

        def apply(*arguments: Any) -> None:
            *parts, target, first, last = arguments
            target[first:last] = formula(*(each[first:last] for each in parts))

        self.rows(apply, *grids, result)
        return result

    def pays(self, items: int) -> int:
        """Count the threads that are worth their start."""
        return max(1, min(self.pool.threads, items // ITEMS_PER_THREAD))


def _classify(
    threads: Threads,
    cloud: "Cloud",
    point_id: "NDArray[np.int64] | None",
    options: "Options",
    found: "Found",
) -> None:
    """Run the stages; the numbers are those of README.md."""
    progress.stage("grid", 0.06)
    grid = _lay_grid(threads, cloud, point_id)  # 1

    def seeds() -> "Seeds":
        asked = windows(grid, options)
        with progress.nested():
            result: Seeds = owm_ground.run(*cloud, point_id, asked, extent(grid, asked))
        return result

    if cloud[0].size <= small.MAX_POINTS and grid.shape[0] * grid.shape[1] <= small.MAX_CELLS:
        dtm = _terrain_of_few(cloud, grid, options, seeds)  # 2 to 10
    else:
        progress.stage("lowest points", 0.15)
        lowest, known, level = above_median(threads, _lowest(threads, cloud, grid))  # 2
        dtm = terrain_of(threads, lowest, known, level, grid, options, seeds)  # 3 to 10
    progress.stage("heights", 1.0)
    classify(threads, cloud, grid, dtm, options, found)  # 11


def terrain_of(
    threads: Threads,
    lowest: "Heights",
    known: "Flags",
    level: float,
    grid: CloudRaster,
    options: "Options",
    seeds: "Callable[[], Seeds]",
) -> "Terrain":
    """Find the terrain: steps 3 to 10 of README.md.

    Parameters
    ----------
    threads : Threads
    lowest, known, level
        As from `above_median`.
    grid : CloudRaster
    options : Options
    seeds : callable
        Gives x, y and z, in metres, of the seeds of step 5; called when they are needed.
    """
    progress.stage("outliers", 0.18)
    pits = _pits(threads, _fill(threads, lowest, known, grid.first), grid)  # 3
    known = threads.cells(_without, np.bool_, known, pits)
    surface = _fill(threads, lowest, known, grid.first)
    progress.stage("objects", 0.35)
    objects = _objects(threads, surface, grid, options)  # 4
    progress.stage("seeds", 0.5)
    candidate = threads.cells(_without, np.bool_, known, objects)
    base = _base(threads, seeds(), grid, surface, candidate, level)  # 5
    progress.stage("objects above the seeds", 0.65)
    over = threads.cells(np.subtract, np.float32, surface, base)
    objects &= _objects(threads, over, grid, options)  # 6
    progress.stage("ground", 0.8)
    bare = threads.cells(_without, np.bool_, known, objects)
    above = threads.cells(
        np.subtract, np.float32, surface, _fill(threads, lowest, bare, grid.first)
    )
    planes = [buffers.empty_like(surface) for _ in range(3)]
    threads.rows(terrain.fit_planes, surface, np.float32(1 / grid.cell), *planes)
    start = threads.cells(np.logical_not, np.bool_, objects)
    ground = _grow(threads, surface, planes, start, grid)  # 7
    ground &= known
    ground = _extend(threads, surface, planes, ground, known, above, grid)  # 8
    ground = _join_cliffs(threads, surface, ground, known, above, grid)  # 9
    progress.stage("terrain", 0.9)
    return Terrain(*_densify(threads, lowest, known, ground, grid, options), level)  # 10


def _terrain_of_few(
    cloud: "Cloud",
    grid: CloudRaster,
    options: "Options",
    seeds: "Callable[[], Seeds]",
) -> "Terrain":
    """Find the terrain of a few points on a small grid: steps 2 to 10 of README.md."""
    places = np.array(method.places_in_pairs(grid.shape, grid.first), np.int64).reshape(-1, 2)
    widths = method.half_widths_to(_widest(options, grid))
    progress.stage("objects", 0.35)
    lowest, known, level, surface, objects = small.objects_of(
        *cloud, *grid.origin, grid.cell, (*grid.shape, 0, 0), places, method.half_widths(1), widths
    )
    progress.stage("seeds", 0.5)
    found, near = seeds(), method.neighbours(grid.cell)
    progress.stage("terrain", 0.9)
    heights, slopes = small.terrain_of(
        lowest, known, surface, objects, places, widths, *(found[axis] for axis in "xyz"),
        *grid.origin, grid.cell, level, round(method.BASE_RADIUS / grid.cell), *near,
        method.half_widths(near.reach), np.float32(options.max_distance),
        np.float32(options.distance_per_slope),
    )  # fmt: skip
    return Terrain(heights, slopes, level)


def classify(
    threads: Threads,
    cloud: "Cloud",
    grid: CloudRaster,
    dtm: "Terrain",
    options: "Options",
    found: "Found",
) -> None:
    """Fill in the columns that are found for the points, by step 11.

    Parameters
    ----------
    threads : Threads
    cloud : list of float64[n]
        x, y and z in metres.
    grid : CloudRaster
    dtm : Terrain
        Of a part of the grid that has the cells of `cells_around`.
    options : Options
    found : dict of columns
        As from `columns`, for n points.
    """
    threads.points(
        points.classify, *cloud, grid.west, grid.south, dtm.level, grid.cell,
        (*grid.shape, *dtm.first), dtm.heights, dtm.slopes, options.max_distance,
        options.distance_per_slope, options.metres, *found.values(),
    )  # fmt: skip


def _lay_grid(
    threads: Threads, cloud: "Cloud", point_id: "NDArray[np.int64] | None"
) -> CloudRaster:
    sides = []
    for values in cloud:
        ends = threads.points(points.extent, values)
        if any(bad for *_, bad in ends):
            x, y, z = cloud
            raise ValueError(not_finite("classify_ground", x, y, z, point_id))
        sides.append((min(low for low, *_ in ends), max(high for _, high, _ in ends)))

    def count_occupied(west: float, south: float, side: float, shape: tuple[int, int]) -> int:
        occupied = buffers.zeros(shape, np.bool_)
        threads.points(points.mark, *cloud[:2], west, south, side, (*shape, 0, 0), occupied)
        return int(np.count_nonzero(occupied))

    return lay_grid(sides[0], sides[1], cloud[0].size, count_occupied)


def _lowest(threads: Threads, cloud: "Cloud", grid: CloudRaster) -> "NDArray[np.float64]":
    """Find the lowest height in each cell; infinite where there is no point."""
    n_points, n_cells = cloud[0].size, grid.shape[0] * grid.shape[1]
    # Each thread fills its own grid, unless merging the grids is more work than the points.
    copies = max(1, min(threads.pays(n_points), n_points // n_cells))
    grids = [buffers.full(grid.shape, np.inf) for _ in range(copies)]
    place = *grid.shape, 0, 0

    def fill_grid(part: tuple[int, int], grid_of_part: "NDArray[np.float64]") -> None:
        points.lowest(*cloud, grid.west, grid.south, grid.cell, place, grid_of_part, *part)

    threads.pool.map_into(grids, fill_grid, threads.pool.spans(n_points, ITEMS_PER_THREAD))
    z: NDArray[np.float64] = grids[0]
    for other in grids[1:]:
        np.minimum(z, other, out=z)
    return z


def above_median(threads: Threads, z: "NDArray[np.float64]") -> "tuple[Heights, Flags, float]":
    """Give the lowest heights above their median, the cells that have one, and the median."""
    known = threads.cells(np.isfinite, np.bool_, z)
    level = _median(buffers.select(z, known))
    on_grid = threads.cells(
        lambda heights, is_known: _on_grid(np.where(is_known, heights, level), level),
        np.float32, z, known,
    )  # fmt: skip
    return on_grid, known, level


def _median(values: "NDArray[np.float64]") -> float:
    """Give the median, and sort in part; `numpy.median` takes as long as the grid of a group."""
    ends = (values.size - 1) // 2, values.size // 2
    values.partition(ends)
    low, high = (float(values[end]) for end in ends)
    return low if low == high else (low + high) / 2


def _without(flags: "Flags", others: "Flags") -> "Flags":
    return flags & ~others


def _on_grid(z: "NDArray[np.float64]", level: float) -> "Heights":
    """Convert heights to those of the grid."""
    with np.errstate(over="ignore"):
        above = np.maximum(z - level, -method.FARTHEST)  # `numpy.clip` takes twice as long
        return np.minimum(above, method.FARTHEST).astype(np.float32)


def _fill(
    threads: Threads, z: "Heights", known: "Flags", first: tuple[int, int] = (0, 0)
) -> "Heights":
    """Fill unknown cells smoothly; all are 0 where none is known.

    `first` are the numbers of the first row and column, see `CloudRaster.first`.
    """
    places = method.places_in_pairs(z.shape, first)
    filled: Heights = buffers.empty_like(z)
    if threads.pays(z.size) == 1:
        levels = np.array(places, np.int64).reshape(-1, 2)
        fill.fill(z, known, levels, method.SWEEPS, method.RELAXATION, filled)
        return filled
    (rows, columns), place = z.shape, places[0]
    shape = (rows + place[0] + 1) // 2, (columns + place[1] + 1) // 2
    coarse_known, coarse = buffers.scratch(shape, np.bool_), buffers.scratch(shape, np.float32)
    threads.rows(fill.halve, z, known, *place, coarse_known, coarse)
    coarse = _fill(threads, coarse, coarse_known, (first[0] >> 1, first[1] >> 1))
    threads.rows(fill.double, coarse, z, known, *place, filled)
    other = buffers.empty_like(z)
    for _ in range(method.SWEEPS):
        threads.rows(fill.relax, filled, known, method.RELAXATION, other)
        filled, other = other, filled
    return filled


def _lowest_around(threads: Threads, z: "Heights", radius: int) -> "Heights":
    """Find the lowest height in the disc around each cell."""
    return _in_discs(threads, z, np.float32(1), radius)


def _highest_around(threads: Threads, z: "Heights", radius: int) -> "Heights":
    """Find the maximum height in the disc around each cell."""
    return _in_discs(threads, z, np.float32(-1), radius)


def _in_discs(threads: Threads, z: "Heights", sign: np.float32, radius: int) -> "Heights":
    result: Heights = buffers.empty_like(z)
    threads.rows(discs.lowest, z, sign, method.half_widths(radius), result, most=BAND)
    return result


def _open(threads: Threads, z: "Heights", radius: int, outside: int = 0) -> "Heights":
    """Open with a disc whose centre may lie up to `outside` cells outside the grid."""
    rows, columns = z.shape
    frame = buffers.full((rows + 2 * outside, columns + 2 * outside), np.inf, z.dtype)
    frame[outside : outside + rows, outside : outside + columns] = z
    opened = _highest_around(threads, _lowest_around(threads, frame, radius), radius)
    return opened[outside : outside + rows, outside : outside + columns]


def _pits(threads: Threads, z: "Heights", grid: CloudRaster) -> "Flags":
    closed = _open(threads, threads.cells(np.negative, np.float32, z), 1)
    most = method.PIT_SLOPE * grid.step
    pits: Flags = threads.cells(lambda low, here: -low - here > most, np.bool_, closed, z)
    return pits


def _objects(threads: Threads, z: "Heights", grid: CloudRaster, options: "Options") -> "Flags":
    """Flag the cells that openings with growing discs cut off."""
    flags: Flags = buffers.zeros(z.shape, np.bool_)
    for radius in range(1, _widest(options, grid) + 1):
        opened = _open(threads, z, radius, floor(method.OUTSIDE * radius))
        most = method.OBJECT_SLOPE * (np.float32(radius) * grid.step)
        threads.rows(terrain.flag, z, opened, most, flags)
        z = opened
    return flags


def _widest(options: "Options", grid: CloudRaster) -> int:
    """Give the radius of the largest disc of openings, in cells."""
    return floor(options.object_width / 2 / grid.cell)


def _base(
    threads: Threads,
    seeds: "Seeds",
    grid: CloudRaster,
    z: "Heights",
    candidate: "Flags",
    level: float,
) -> "Heights":
    """Make a smooth surface through the OWM seeds that are the lowest points of candidates."""
    columns = np.minimum((seeds["x"] - grid.west) / grid.cell, grid.shape[1] - 1).astype(np.int64)
    rows = np.minimum((seeds["y"] - grid.south) / grid.cell, grid.shape[0] - 1).astype(np.int64)
    lowest = _on_grid(seeds["z"], level) == z[rows, columns]
    known = buffers.zeros(grid.shape, np.bool_)
    known[rows[lowest], columns[lowest]] = True
    known &= candidate
    base = _fill(threads, z, known, grid.first)
    radius, along = round(method.BASE_RADIUS / grid.cell), buffers.empty_like(base)
    for _ in range(2):
        threads.rows(terrain.blur_rows, base, radius, along)
        threads.rows(terrain.blur_columns, along, radius, base)
    return base


def _grow(
    threads: Threads, z: "Heights", planes: "list[Heights]", ground: "Flags", grid: CloudRaster
) -> "Flags":
    for _ in range(method.GROWTHS):
        before, ground = ground, buffers.empty_like(ground)
        threads.rows(
            terrain.grow, z, *planes, before, grid.step, method.SMOOTH, method.SMOOTH_NEIGHBOURS,
            ground,
        )  # fmt: skip
    return ground


def _extend(
    threads: Threads, z: "Heights", planes: "list[Heights]", ground: "Flags", known: "Flags",
    above: "Heights", grid: CloudRaster,
) -> "Flags":  # fmt: skip
    candidate = threads.cells(
        lambda is_known, height: is_known & (height >= method.CREST_HEIGHT),
        np.bool_, known, above,
    )  # fmt: skip
    if not candidate.any():
        return ground
    near = method.neighbours(grid.cell)
    added = ground
    for _ in range(method.CRESTS):
        # A cell near which no ground was added cannot change, which saves most of the work.
        grown = threads.cells(np.positive, np.float32, added.view(np.uint8))
        reached = _highest_around(threads, grown, near.reach)
        may_grow = threads.cells(lambda may, by: may & (by > 0), np.bool_, candidate, reached)
        if not may_grow.any():
            break
        before, ground = ground, buffers.empty_like(ground)
        threads.rows(
            terrain.extend, z, *planes[:2], before, known, may_grow, *near,
            method.CREST_CELLS, method.CREST_GROUND, method.CREST_KNOWN, ground,
        )  # fmt: skip
        added = threads.cells(_without, np.bool_, ground, before)
    return ground


def _join_cliffs(
    threads: Threads,
    z: "Heights",
    ground: "Flags",
    known: "Flags",
    above: "Heights",
    grid: CloudRaster,
) -> "Flags":
    candidate = threads.cells(
        lambda is_known, height: is_known & (height >= method.CLIFF_HEIGHT),
        np.bool_, known, above,
    )  # fmt: skip
    joined: Flags = buffers.empty_like(ground)
    threads.rows(
        terrain.join_cliffs, z, ground, candidate, np.float32(method.CLIFF_REACH), grid.step,
        np.float32(sqrt(2) * grid.cell), method.CLIFF_SLOPE, method.CLIFF_DISTANCE,
        method.CLIFF_TOP_SLOPE, joined,
    )  # fmt: skip
    return joined


def _densify(
    threads: Threads,
    z: "Heights",
    known: "Flags",
    ground: "Flags",
    grid: CloudRaster,
    options: "Options",
) -> "tuple[Heights, Heights]":
    """Repeatedly take as ground the cells near the terrain; give terrain and slope."""
    slope, scale = buffers.empty_like(z), np.float32(1 / (6 * grid.cell))
    most = np.float32(options.max_distance), np.float32(options.distance_per_slope)
    for left in reversed(range(method.DENSIFICATIONS + 1)):
        dtm = _fill(threads, z, ground, grid.first)
        threads.rows(terrain.slopes, dtm, scale, slope)
        before, ground = ground, buffers.empty_like(ground)
        changed = left and threads.rows(
            terrain.near_terrain, z, known, dtm, slope, *most, before, ground,
        )  # fmt: skip
        if not changed or sum(changed) == 0:
            break
    return dtm, slope
