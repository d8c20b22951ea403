"""The terrain of a survey in parts that are GeoTIFF files: one grid, each of its cells in one part.

The ground points of all cores become one triangulation, so that one task makes the whole grid, as
`spatialq ground -o terrain.tif` does; parts are windows of it. A tile has the cells whose centre is
in it. A file has those whose centre is in the box around its points and in none of a file before
it; a height between these boxes goes with the nearest cell in its row that is in one, or in the
nearest row that has some.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spatialq.cluster.arrays import write_arrays
from spatialq.cluster.points import CLASS, CorePart, OwnPart
from spatialq.cluster.staged import Make
from spatialq.functions.stages import TaskResult
from spatialq.runtime import buffers
from spatialq.runtime.arrays import Array, Floats, Int32s, Ints
from spatialq.workflows.ground import GROUND_SURFACE, IS_KEPT, terrain_of

if TYPE_CHECKING:
    from spatialq.export.raster import Raster
    from spatialq.udfs.ground_surface import Options

TIF = "tif"
NOBODY = -1
"""The owner of a cell that is in no part, as it has no height."""
Window = tuple[int, int, int, int]
"""The first row and the one behind the last, the first column and the one behind the last."""


def write_ground(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write the ground points of a core, with heights as its files have them, and its box."""
    points = part.own(part.read())
    there = make(OwnPart(part, points))["is_ground"] & ~IS_KEPT[points[CLASS]]
    write_arrays(path, {axis: points[axis][there] for axis in "xyz"} | {"box": part.box})
    return {"points": int(there.sum())}


def make_surface(
    ground: Iterator[TaskResult],
    extent: tuple[float, float, float, float],
    options: "Options",
    device: str,
    by_file: bool,  # noqa: FBT001
) -> TaskResult:
    """Make the heights of all cells, and say which file has which, if parts are files.

    Returns
    -------
    TaskResult
        `heights`, and `owners` of parts that are files; with the facts `west` and `north`, the
        outer corner; `resolution`; `shape`; and the `windows` of such parts.
    """
    found: dict[str, list[Array]] = {axis: [] for axis in "xyz"}
    boxes = []
    for each in ground:
        boxes.append(each.arrays["box"].tolist())
        for axis, values in found.items():
            values.append(each.arrays[axis])
    points = {axis: _joined(values) for axis, values in found.items()}
    xmin, ymin, xmax, ymax = extent
    raster = terrain_of(points, ((xmin, xmax), (ymin, ymax)), options, None, device)
    arrays: dict[str, Any] = {"heights": raster.z}
    facts: dict[str, Any] = {
        "west": raster.west,
        "north": raster.north,
        "resolution": raster.resolution,
        "shape": list(raster.z.shape),
    }
    if by_file:
        arrays["owners"] = owners_of(raster, boxes)
        facts["windows"] = windows_of(arrays["owners"], len(boxes)).tolist()
    return TaskResult(arrays, facts)


def _joined(parts: list[Array]) -> Floats:
    joined: Floats = buffers.empty(sum(each.size for each in parts))
    np.concatenate(parts, out=joined)
    return joined


def surface_options(more: Mapping[str, Any]) -> Any:
    """Give the parameters of `ground_surface` with which a terrain is made.

    Raises
    ------
    ValueError
        If one is wrong.
    """
    from spatialq.functions.catalogue import catalogue
    from spatialq.functions.declaration import parameters_of
    from spatialq.udfs.ground_surface import TerrainOptions

    own = {each.name: more[each.name] for each in parameters_of(TerrainOptions)}
    return catalogue()[GROUND_SURFACE].choose({"source": "points", "thin": True} | own)


def _centres(corner: float, count: int, resolution: float) -> Floats:
    """Give centres of cells, eastward or northward from the outer corner of the first."""
    first = round(corner / resolution)
    index = np.arange(first, first + count, dtype=np.float64)
    centres: Floats = (index + 0.5) * resolution
    return centres


class Cells:
    """Where the cells of a grid are whose first row is in the north."""

    def __init__(
        self, west: float, north: float, resolution: float, shape: tuple[int, int]
    ) -> None:
        rows, columns = shape
        south = (round(north / resolution) - rows) * resolution
        self.rows = rows
        self.x, self.y = _centres(west, columns, resolution), _centres(south, rows, resolution)

    def within(self, box: "list[float]", last: Literal["left", "right"]) -> Window:
        """Give the cells whose centre is in a box.

        With `last` 'left' the sides xmax and ymax are not of the box, with 'right' they are.
        """
        xmin, ymin, xmax, ymax = box
        first, stop = np.searchsorted(self.x, xmin), np.searchsorted(self.x, xmax, last)
        low, high = np.searchsorted(self.y, ymin), np.searchsorted(self.y, ymax, last)
        return self.rows - int(high), self.rows - int(low), int(first), int(stop)


def owners_of(raster: "Raster", boxes: list[list[float]]) -> Int32s:
    """Say of each cell which file has it.

    Parameters
    ----------
    raster : Raster
    boxes : list of [xmin, ymin, xmax, ymax]
        Around the points of each file.

    Returns
    -------
    int32[rows, columns]
        Places of boxes; NOBODY of cells without height that are in none.
    """
    cells = Cells(raster.west, raster.north, raster.resolution, raster.z.shape)
    owners: Int32s = buffers.full(raster.z.shape, NOBODY, np.int32)
    for k in reversed(range(len(boxes))):
        top, bottom, first, stop = cells.within(boxes[k], "right")
        owners[top:bottom, first:stop] = k
    inside = np.flatnonzero((owners != NOBODY).any(axis=1))
    if inside.size == 0:  # cells so large that no centre is in a box
        owners[...] = 0
        return owners
    rows = np.arange(len(owners))
    nearest = inside[_nearest(inside, rows)]
    # rows without a box come last: they follow those that have one
    for row in (*inside.tolist(), *np.setdiff1d(rows, inside).tolist()):
        between = np.flatnonzero((owners[row] == NOBODY) & ~np.isnan(raster.z[row]))
        model = owners[nearest[row]]
        known = np.flatnonzero(model != NOBODY)
        owners[row, between] = model[known[_nearest(known, between)]]
    return owners


def _nearest(known: Ints, wanted: Ints) -> Ints:
    """Give the places of the nearest of known numbers, ascending, of two the lower one."""
    behind = np.clip(np.searchsorted(known, wanted), 1, max(known.size - 1, 1))
    before = behind - 1
    behind = np.minimum(behind, known.size - 1)
    closer = np.abs(known[behind] - wanted) < np.abs(wanted - known[before])
    return np.where(closer, behind, before)


def windows_of(owners: Int32s, n: int) -> Ints:
    """Find the window that has all cells of each of n owners: int64[n, 4], empty where none."""
    rows, columns = owners.shape
    windows = np.tile(np.array([rows, 0, columns, 0]), (n, 1))
    for row in range(rows):
        starts = np.flatnonzero(np.diff(owners[row], prepend=NOBODY - 1))
        stops = np.append(starts[1:], columns)
        some = owners[row, starts] != NOBODY
        whose, starts, stops = owners[row, starts][some], starts[some], stops[some]
        np.minimum.at(windows[:, 0], whose, row)
        np.maximum.at(windows[:, 1], whose, row + 1)
        np.minimum.at(windows[:, 2], whose, starts)
        np.maximum.at(windows[:, 3], whose, stops)
    return windows


def windows_of_tiles(place: Mapping[str, Any], side: float) -> Iterator[tuple[str, Window, None]]:
    """Give name and window of each square tile with cells, those without points, too."""
    cells = Cells(place["west"], place["north"], place["resolution"], place["shape"])
    columns = range(floor(cells.x[0] / side) - 1, floor(cells.x[-1] / side) + 2)
    for row in range(floor(cells.y[0] / side) - 1, floor(cells.y[-1] / side) + 2):
        for column in columns:
            box = [column * side, row * side, (column + 1) * side, (row + 1) * side]
            window = top, bottom, first, stop = cells.within(box, "left")
            if top < bottom and first < stop:
                yield f"{column}_{row}.{TIF}", window, None


def cut_window(surface: TaskResult, window: Window, owner: int | None) -> "Raster":
    """Cut a window out of the terrain; cells of others have no height in it."""
    from spatialq.export.raster import Raster

    top, bottom, first, stop = window
    z = np.array(surface.arrays["heights"][top:bottom, first:stop])
    if owner is not None:
        z[surface.arrays["owners"][top:bottom, first:stop] != owner] = np.nan
    west, north, step = (surface.facts[name] for name in ("west", "north", "resolution"))
    west = (round(west / step) + first) * step
    north = (round(north / step) - top) * step
    return Raster(z, west, north, step)


def write_raster(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write a window of the terrain.

    Returns
    -------
    dict
        `rows`, here cells with a height.
    """
    from spatialq.export.raster import write_terrain

    raster = replace(make(part), crs=part.data["crs"])
    write_terrain(path, raster)
    return {"rows": int(np.count_nonzero(~np.isnan(raster.z)))}
