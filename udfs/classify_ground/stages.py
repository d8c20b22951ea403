"""`classify_ground` in parts: the grid is made of those of all cores, and one task works on it.

The stages are those of the kernel: the squares that have points, which say how large the cells are;
the lowest points of the cells, and the seeds; the terrain; the points. Lengths are in metres in
all but the points that a task reads.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from spatialq.udfs.owm_ground.cost import halo

from spatialq.functions.stages import Columns, Part, PointWork, TaskResult
from spatialq.runtime import buffers
from spatialq.runtime.threads import workers

from . import cpu, points
from .grid import CloudRaster, extent, lay_grid, part_between, windows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from . import Options

SEEDS = "owm_ground"


Ends = tuple[tuple[float, float], tuple[float, float]]
"""The least and the greatest x, and y, in metres."""


def classify_ground(work: "PointWork[Options]") -> None:
    """Classify the points of all cores."""
    options = work.options
    if work.cloud.size == 0:
        work.rows(classify, options, None, None)
        return
    grid = _lay_grid(work)
    width = halo(windows(grid, options)) / options.metres
    lowest = work.each("lowest", find_lowest, options, grid, halo=width)
    terrain = work.once("terrain", find_terrain, options, grid, lowest)
    work.rows(classify, options, grid, terrain)


def _lay_grid(work: "PointWork[Options]") -> CloudRaster:
    metres = work.options.metres
    xmin, ymin, xmax, ymax = (value * metres for value in work.cloud.box)
    ends = (xmin, xmax), (ymin, ymax)

    def count(west: float, south: float, side: float, shape: tuple[int, int]) -> int:
        marked = work.each("squares", mark_squares, (west, south), side, shape, ends, metres)
        return int(work.once("count", count_squares, shape, marked).facts["squares"])

    return lay_grid(*ends, work.cloud.size, count)


def mark_squares(
    part: Part,
    corner: tuple[float, float],
    side: float,
    shape: tuple[int, int],
    ends: Ends,
    metres: float,
) -> Columns:
    """Mark the squares that have points of a core: those of step 1 of the method."""
    (low_x, high_x), (low_y, high_y) = ends
    xmin, ymin, xmax, ymax = (value * metres for value in part.box)
    x_ends = max(xmin, low_x), min(xmax, high_x)
    y_ends = max(ymin, low_y), min(ymax, high_y)
    place = part_between(shape, corner, side, x_ends, y_ends)
    first, occupied = _part(place, 0, np.bool_)
    for rows in part.batches():
        own = part.is_own(rows)
        x, y = (rows[axis][own] * metres for axis in "xy")
        points.mark(x, y, *corner, side, (*shape, *first), occupied, 0, x.size)
    return {"first": np.array(first), "grid": occupied}


def count_squares(shape: tuple[int, int], marked: Iterator[TaskResult]) -> TaskResult:
    """Count the squares that have points, as the fact `squares`."""
    occupied = buffers.zeros(shape, np.bool_)
    for each in marked:
        occupied[_place(each)] |= each.arrays["grid"]
    return TaskResult({}, {"squares": int(np.count_nonzero(occupied))})


def find_lowest(part: Part, options: "Options", grid: CloudRaster) -> TaskResult:
    """Find the lowest heights in the cells that have points of a core, and the core's seeds."""
    rows = part.points()
    own = part.is_own(rows)
    if not own.any():
        nothing = {"first": np.zeros(2, int), "grid": np.empty((0, 0)), "seeds": np.empty((3, 0))}
        return TaskResult(nothing, {"points": 0})
    cloud = _in_metres(rows, options)
    alone = [values[own] for values in cloud]
    first, lowest = _part(_part_around(grid, alone), np.inf, np.float64)
    n = alone[0].size
    place = *grid.shape, *first
    points.lowest(*alone, grid.west, grid.south, grid.cell, place, lowest, 0, n)
    asked = windows(grid, options)
    box = extent(grid, asked)
    asked = replace(asked, bounds=(box.x_low, box.y_low, box.x_high, box.y_high))
    arguments = dict(zip("xyz", cloud, strict=True)) | {"point_id": rows["point_id"]}
    seeds = part.call(SEEDS, arguments, asked)
    some = np.isin(seeds["point_id"], rows["point_id"][own])
    own_seeds = np.stack([seeds[axis][some] for axis in "xyz"])
    return TaskResult({"first": np.array(first), "grid": lowest, "seeds": own_seeds}, {"points": n})


def find_terrain(options: "Options", grid: CloudRaster, lowest: Iterator[TaskResult]) -> TaskResult:
    """Find the terrain of all cells and its slopes; `level` is above which heights are."""
    z, found = buffers.full(grid.shape, np.inf), []
    for each in lowest:
        there = z[_place(each)]
        np.minimum(there, each.arrays["grid"], out=there)
        found.append(np.array(each.arrays["seeds"]))

    def seeds_of_all() -> "dict[str, NDArray[Any]]":
        return dict(zip("xyz", np.concatenate(found, axis=1), strict=True))

    with workers() as pool:
        threads = cpu.Threads(pool)
        flat, known, level = cpu.above_median(threads, z)
        del z
        terrain = cpu.terrain_of(threads, flat, known, level, grid, options, seeds_of_all)
    return TaskResult({"heights": terrain.heights, "slopes": terrain.slopes}, {"level": level})


def classify(
    part: Part, options: "Options", grid: CloudRaster | None, terrain: TaskResult | None
) -> Columns:
    """Classify the points of a core; what is found is beside what they have."""
    rows = part.own(part.points())
    n = rows["x"].size
    found = cpu.columns(n)
    if n and grid and terrain:
        cloud = _in_metres(rows, options)
        place = _part_around(grid, cloud, margin=1)
        heights, slopes = (np.array(terrain.arrays[name][place]) for name in ("heights", "slopes"))
        first = place[0].start, place[1].start
        there = cpu.Terrain(heights, slopes, terrain.facts["level"], first)
        with workers() as pool:
            cpu.classify(cpu.Threads(pool), cloud, grid, there, options, found)
    return rows | found


def _in_metres(rows: Columns, options: "Options") -> "list[NDArray[np.float64]]":
    xyz = [rows[axis] for axis in "xyz"]
    return xyz if options.metres == 1 else [values * options.metres for values in xyz]


def _part_around(
    grid: CloudRaster, cloud: "list[NDArray[np.float64]]", margin: int = 0
) -> tuple[slice, slice]:
    x, y = ((float(values.min()), float(values.max())) for values in cloud[:2])
    return part_between(grid.shape, grid.origin, grid.cell, x, y, margin)


def _part(part: tuple[slice, slice], value: Any, kind: Any) -> tuple[tuple[int, int], Any]:
    """Make a grid for a part of the whole one; give its first row and column, and the grid."""
    rows, columns = part
    shape = rows.stop - rows.start, columns.stop - columns.start
    return (rows.start, columns.start), buffers.full(shape, value, kind)


def _place(part: TaskResult) -> tuple[slice, slice]:
    """Give the place of a part of a grid, `grid` with its `first` row and column, in the whole."""
    (row, column), (rows, columns) = part.arrays["first"].tolist(), part.arrays["grid"].shape
    return slice(row, row + rows), slice(column, column + columns)
