"""What the tasks of `classify_ground` do.

Coordinates of the files are converted as one call does it: heights to the unit of x and y, then all
to metres.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.cluster.arrays import read_all, read_arrays, write_arrays
from spatialq.cluster.points import CLASS, batches, is_own, open_cloud, read_points, write_rows
from spatialq.execution.call import call_as_given
from spatialq.functions.catalogue import catalogue
from spatialq.runtime import buffers
from spatialq.runtime.threads import workers
from spatialq.udfs.classify_ground import cpu, points
from spatialq.udfs.classify_ground.grid import CloudRaster, extent, part_between, windows
from spatialq.workflows import cloud_points
from spatialq.workflows.ground import IS_KEPT, mark_ground, write_cloud

if TYPE_CHECKING:
    from numpy.typing import NDArray

FUNCTION, SEEDS = "classify_ground", "owm_ground"
COLUMNS = ("point_id", "height", "is_ground")

Rows = dict[str, Any]


def mark_squares(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Write which squares have points of a core: those of step 1 of the method."""
    west, south, side, shape = data["squares"]
    (low_x, high_x), (low_y, high_y) = data["ends"]
    metres = _options(data).metres
    xmin, ymin, xmax, ymax = (value * metres for value in data["read"])
    part = part_between(
        shape, (west, south), side, (max(xmin, low_x), min(xmax, high_x)),
        (max(ymin, low_y), min(ymax, high_y)),
    )  # fmt: skip
    first, occupied = _part(part, 0, np.bool_)
    for rows in batches(data):
        own = is_own(data["own"], rows)
        x, y = (rows[axis][own] * metres for axis in "xy")
        points.mark(x, y, west, south, side, (*shape, *first), occupied, 0, x.size)
    write_arrays(partial, {"first": np.array(first), "grid": occupied})
    return {}


def count_squares(data: dict[str, Any], _: Path) -> dict[str, Any]:
    """Count the squares that have points.

    Returns
    -------
    dict
        `squares`
    """
    occupied = buffers.zeros(data["shape"], np.bool_)
    for each in read_all(data["folder"]):
        occupied[_place(each)] |= each["grid"]
    return {"squares": int(np.count_nonzero(occupied))}


def find_lowest(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Write the lowest heights in the cells that have points of a core, and the core's seeds."""
    options, grid = _options(data), _grid(data)
    rows = read_points(data)
    own = is_own(data["own"], rows)
    cloud = _in_metres(data, rows)
    if not own.any():
        nothing = {"first": np.zeros(2, int), "grid": np.empty((0, 0)), "seeds": np.empty((3, 0))}
        write_arrays(partial, nothing)
        return {"points": 0}
    alone = [values[own] for values in cloud]
    first, lowest = _part(_part_around(grid, alone), np.inf, np.float64)
    place = *grid.shape, *first
    n = alone[0].size
    points.lowest(*alone, grid.west, grid.south, grid.cell, place, lowest, 0, n)
    asked = windows(grid, options)
    box = extent(grid, asked)
    asked = replace(asked, bounds=(box.x_low, box.y_low, box.x_high, box.y_high))
    arguments = dict(zip("xyz", cloud, strict=True)) | {"point_id": rows["point_id"]}
    seeds, _ = call_as_given(catalogue()[SEEDS], arguments, asked, data["device"], road="files")
    some = np.isin(seeds["point_id"], rows["point_id"][own])
    own_seeds = np.stack([seeds[axis][some] for axis in "xyz"])
    write_arrays(partial, {"first": np.array(first), "grid": lowest, "seeds": own_seeds})
    return {"points": n}


def find_terrain(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Write the terrain of all cells, and its slopes.

    Returns
    -------
    dict
        `level`, above which heights are.
    """
    grid = _grid(data)
    z, found = buffers.full(grid.shape, np.inf), []
    for each in read_all(data["folder"]):
        there = z[_place(each)]
        np.minimum(there, each["grid"], out=there)
        found.append(np.array(each["seeds"]))

    def seeds_of_all() -> "dict[str, NDArray[Any]]":
        return dict(zip("xyz", np.concatenate(found, axis=1), strict=True))

    with workers() as pool:
        threads = cpu.Threads(pool)
        lowest, known, level = cpu.above_median(threads, z)
        del z
        terrain = cpu.terrain_of(threads, lowest, known, level, grid, _options(data), seeds_of_all)
    write_arrays(partial, {"heights": terrain.heights, "slopes": terrain.slopes})
    return {"level": level}


def classify_rows(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Write the rows of a core: a row for each point."""
    rows = classified_points(data)
    write_rows(rows, partial, COLUMNS)
    return {"rows": rows["x"].size}


def classified_points(data: dict[str, Any]) -> Rows:
    """Read the points of a core, with `height` and `is_ground`."""
    rows = read_points(data)
    own = is_own(data["own"], rows)
    rows = {name: values[own] for name, values in rows.items()}
    rows |= _classified(data, rows)
    if CLASS in rows:
        rows["is_ground"] &= ~IS_KEPT[rows[CLASS]]
    return rows


def classify_cloud(data: dict[str, Any], partial: Path) -> dict[str, Any]:
    """Write all points of a core with their new classes to LAS or LAZ."""
    clouds = [open_cloud(data["caller"], path, stamp) for path, _, *stamp in data["sources"]]
    found = cloud_points.read_points(clouds, _box(data), None)
    rows = {**found.columns, CLASS: found.classes[found.point_id]}
    is_ground = _classified(data, rows)["is_ground"] & ~IS_KEPT[rows[CLASS]]
    mark_ground(found, is_ground)
    keep = found.keep
    if data["ground_only"]:
        keep = found.by_position(is_ground, np.bool_, missing=False)
    written = write_cloud(clouds, partial, found, keep, lambda *_: None, data["crs"])
    return {"rows": written}


def _box(data: dict[str, Any]) -> cloud_points.Bounds | None:
    """Give the box that the points of a core are in, or on whose border they are."""
    bounds = data["bounds"]
    if "box" not in data["own"]:
        return cloud_points.checked_bounds(data["caller"], bounds)
    xmin, ymin, xmax, ymax = data["own"]["box"]
    # the eastern and northern sides belong to the neighbours
    xmax, ymax = float(np.nextafter(xmax, -np.inf)), float(np.nextafter(ymax, -np.inf))
    if bounds is not None:
        xmin, ymin = max(xmin, bounds[0]), max(ymin, bounds[1])
        xmax, ymax = min(xmax, bounds[2]), min(ymax, bounds[3])
    return xmin, ymin, xmax, ymax


def _classified(data: dict[str, Any], rows: Rows) -> "dict[str, NDArray[Any]]":
    """Give height and class of points, with the part of the terrain that is around them."""
    n = rows["x"].size
    height, is_ground = np.empty(n), np.zeros(n, np.bool_)
    if n == 0:
        return {"height": height, "is_ground": is_ground}
    options, grid, cloud = _options(data), _grid(data), _in_metres(data, rows)
    part = _part_around(grid, cloud, margin=1)
    _, found = read_arrays(data["terrain"])
    heights, slopes = (np.array(found[name][part]) for name in ("heights", "slopes"))
    first = part[0].start, part[1].start
    terrain = cpu.Terrain(heights, slopes, data["terrain_level"], first)
    with workers() as pool:
        cpu.classify(cpu.Threads(pool), cloud, grid, terrain, options, height, is_ground)
    for unit in (options.metres, data["level"]):
        if unit != 1:
            height /= unit
    return {"height": height, "is_ground": is_ground}


def _options(data: dict[str, Any]) -> Any:
    return catalogue()[FUNCTION].choose(data["options"])


def _grid(data: dict[str, Any]) -> CloudRaster:
    return CloudRaster(**data["grid"] | {"shape": tuple(data["grid"]["shape"])})


def _in_metres(data: dict[str, Any], rows: Rows) -> "list[NDArray[np.float64]]":
    x, y, z = (rows[axis] for axis in "xyz")
    if data["level"] != 1:
        z = z * data["level"]
    metres = _options(data).metres
    return [x, y, z] if metres == 1 else [values * metres for values in (x, y, z)]


def _part_around(
    grid: CloudRaster, cloud: "list[NDArray[np.float64]]", margin: int = 0
) -> tuple[slice, slice]:
    x, y = ((float(values.min()), float(values.max())) for values in cloud[:2])
    part: tuple[slice, slice] = part_between(grid.shape, grid.origin, grid.cell, x, y, margin)
    return part


def _part(part: tuple[slice, slice], value: Any, kind: Any) -> tuple[tuple[int, int], Any]:
    """Make a grid for a part of the whole one; give its first row and column, and the grid."""
    rows, columns = part
    shape = rows.stop - rows.start, columns.stop - columns.start
    return (rows.start, columns.start), buffers.full(shape, value, kind)


def _place(part: Rows) -> tuple[slice, slice]:
    """Give the place of a part of a grid, `grid` with its `first` row and column, in the whole."""
    (row, column), (rows, columns) = part["first"].tolist(), part["grid"].shape
    return slice(row, row + rows), slice(column, column + columns)
