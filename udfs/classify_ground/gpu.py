"""`classify_ground` on the GPU: the stages of README.md, each a few launches over the grid."""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from spatialq.udfs.owm_ground import Options as OwmOptions
from spatialq.udfs.owm_ground import gpu as owm_ground
from spatialq.udfs.owm_ground.windows import Box

from spatialq.data.points import ids_of, not_finite, to_device, to_host
from spatialq.data.tiles import runs_of
from spatialq.runtime import buffers, cuda, progress

from . import method
from .grid import CloudRaster, extent, lay_grid, windows

if TYPE_CHECKING:
    from . import Options

SOURCE = Path(__file__).parent / "kernels.cu"
STRIP = 256  # starts of runs per block of `classify_runs`
MAX_ROWS = 65535  # maximum number of blocks along y
POINTS_PER_BLOCK, BLOCKS = 1024, 16  # points per block at least, blocks per multiprocessor


def run(
    x: Any, y: Any, z: Any, point_id: Any, options: "Options", tiles: int = 1
) -> dict[str, Any]:
    """Compute the height of each point above the terrain, and whether the point is ground.

    Parameters
    ----------
    x, y, z : float64[n], units of the cloud's CRS
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n] or None
        In the same memory as the coordinates; None for 0, 1, 2 ...
    options : Options
    tiles : int
        Runs of points that the cloud, of NumPy arrays, is divided into, so that only one at a time
        is on the device, beside the grid; the result is the same.

    Returns
    -------
    dict of columns
        As from `cpu.run`, in the memory of the coordinates.

    Raises
    ------
    ValueError
        As from `cpu.run`.
    """
    device = cuda.device()
    with device.use():
        progress.stage("transfer", 0.3)
        given, here = (x, y, z, point_id), False
        cloud: _Whole | _InTiles
        if tiles > 1:
            cloud = _InTiles(device, given, options, tiles)
        else:
            there, here = to_device(device, "classify_ground", given)
            cloud = _Whole(device, there, options)
        if cloud.size > 0:
            progress.stage("classes", 0.9)
            try:
                with progress.nested():
                    _Kernels(device).classify(cloud, options)
            except owm_ground.NotFiniteError:
                raise ValueError(not_finite("classify_ground", x, y, z, point_id)) from None
        ids = ids_of(point_id, cloud.size, device.xp if here else np)
        return {"point_id": ids, **cloud.results(here=here)}


class _Whole:
    """All points on the device, and what is found for them."""

    def __init__(self, device: cuda.Device, cloud: tuple[Any, ...], options: "Options") -> None:
        *self.coordinates, self.point_id = cloud
        if options.metres != 1:
            self.coordinates = [values * options.metres for values in self.coordinates]
        self.device, self.size = device, self.coordinates[0].size
        kinds, empty = method.COLUMNS.items(), device.xp.empty
        self.found = {name: empty(self.size, kind) for name, kind in kinds}

    def each(self, work: Callable[..., None]) -> None:
        """Call with x, y and z of each run of points on the device, in metres."""
        work(*self.coordinates)

    def seeds(self, asked: OwmOptions, box: Box) -> list[Any]:
        """Give x, y and z of the seeds, on the device."""
        cloud = (*self.coordinates, self.point_id)
        seeds, _, _ = owm_ground.find(self.device, cloud, asked, box)
        return [values[seeds] for values in self.coordinates]

    def classify(self, classify: Callable[..., None]) -> None:
        """Call with the coordinates, and the columns that are found, of each run of points."""
        classify(self.coordinates, self.found.values())

    def results(self, *, here: bool) -> dict[str, Any]:
        """Give the columns, on the device if `here`."""
        if here:
            return self.found
        return {name: to_host(self.device, values) for name, values in self.found.items()}


class _InTiles:
    """Points in main memory, of which runs go to the device one after the other; as `_Whole`."""

    def __init__(
        self, device: cuda.Device, cloud: tuple[Any, ...], options: "Options", tiles: int
    ) -> None:
        *coordinates, self.point_id = cloud
        self.coordinates = [np.ascontiguousarray(values, np.float64) for values in coordinates]
        if options.metres != 1:
            with np.errstate(over="ignore"):  # values that become infinite are rejected
                self.coordinates = [
                    np.multiply(values, options.metres, buffers.empty(values.size))
                    for values in self.coordinates
                ]
        self.device, self.size, self.tiles = device, self.coordinates[0].size, tiles
        self.found = {
            name: buffers.empty(self.size, kind, page_locked=True)
            for name, kind in method.COLUMNS.items()
        }

    def _upload(self, run: slice) -> tuple[Any, ...]:
        return tuple(self.device.upload([values[run] for values in self.coordinates]))

    def each(self, work: Callable[..., None]) -> None:
        for run in runs_of(self.size, self.tiles):
            work(*self._upload(run))
        self.device.trim()

    def seeds(self, asked: OwmOptions, box: Box) -> list[Any]:
        x, y, z = self.coordinates
        with progress.nested():
            seeds = owm_ground.run(x, y, z, self.point_id, asked, box, tiles=self.tiles)
        self.device.trim()
        there: list[Any] = self.device.upload([seeds[axis] for axis in "xyz"])
        return there

    def classify(self, classify: Callable[..., None]) -> None:
        for run in runs_of(self.size, self.tiles):
            self._classify(classify, run)

    def _classify(self, classify: Callable[..., None], run: slice) -> None:
        """Classify a run; its arrays are gone before those of the next one are made."""
        n = run.stop - run.start
        found = [self.device.xp.empty(n, kind) for kind in method.COLUMNS.values()]
        classify(self._upload(run), found)
        for values, whole in zip(found, self.found.values(), strict=True):
            self.device.download(values, whole[run])

    def results(self, *, here: bool) -> dict[str, Any]:
        del here  # arrays of the device are not divided
        return self.found


@dataclass(frozen=True)
class _Kernels:
    """The stages on one device; grids are device arrays, float32 or bool, of the grid's shape."""

    device: cuda.Device

    def classify(self, cloud: _Whole | _InTiles, options: "Options") -> None:
        """Run the stages; the numbers are those of README.md."""
        progress.stage("grid", 0.06)
        grid = self.lay_grid(cloud)  # 1
        progress.stage("lowest points", 0.15)
        lowest, known, level = self.lowest(cloud, grid)  # 2
        progress.stage("outliers", 0.18)
        known &= ~self.pits(self.fill(lowest, known, grid.first), grid)  # 3
        surface = self.fill(lowest, known, grid.first)
        progress.stage("objects", 0.35)
        objects = self.objects(surface, grid, options)  # 4
        progress.stage("seeds", 0.5)
        base = self.base(cloud, options, grid, surface, known & ~objects, level)  # 5
        progress.stage("objects above the seeds", 0.65)
        objects &= self.objects(surface - base, grid, options)  # 6
        progress.stage("ground", 0.8)
        above = surface - self.fill(lowest, known & ~objects, grid.first)
        planes = [self.device.xp.empty_like(surface) for _ in range(3)]
        self.rows("planes", surface, np.float32(1 / grid.cell), shape=grid.shape, out=planes)
        ground = self.grow(surface, planes, ~objects, grid) & known  # 7
        ground = self.extend(surface, planes, ground, known, above, grid)  # 8
        ground = self.join_cliffs(surface, ground, known, above, grid)  # 9
        progress.stage("terrain", 0.9)
        dtm, slope = self.densify(lowest, known, ground, grid, options)  # 10
        progress.stage("heights", 1.0)

        def heights(coordinates: Any, found: Any) -> None:  # 11
            self.points(
                "points", *coordinates, place=(*grid.origin, level, grid.cell),
                out=(
                    dtm, slope, *_sizes(grid.shape), options.max_distance,
                    options.distance_per_slope, options.metres, *found,
                ),
            )  # fmt: skip

        cloud.classify(heights)

    def points(self, name: str, *columns: Any, place: Any = (), out: Any) -> None:
        """Launch a loop over points: columns, their length, place, results."""
        n = columns[0].size
        blocks = min(-(-n // POINTS_PER_BLOCK), self.device.multiprocessors * BLOCKS)
        numbers = (np.float64(value) for value in place)
        self.device.launch(SOURCE, f"classify_{name}", (blocks,), 256, *columns, n, *numbers, *out)

    def cells(self, name: str, shape: tuple[int, int], *arguments: Any) -> None:
        """Launch a loop over the cells of a grid."""
        blocks = -(-shape[1] // 32), min(-(-shape[0] // 8), MAX_ROWS)
        self.device.launch(SOURCE, f"classify_{name}", blocks, 256, *arguments)

    def rows(self, name: str, *arguments: Any, shape: tuple[int, int], out: Any) -> None:
        """Launch a loop over cells whose arguments end with rows, columns, results."""
        self.cells(name, shape, *arguments, *_sizes(shape), *out)

    def lay_grid(self, cloud: _Whole | _InTiles) -> CloudRaster:
        ends = [self.device.filled(0xFF, 16).view(np.uint64) for _ in range(3)]
        bad = self.device.filled(0, 8).view(np.uint64)

        def widen(*coordinates: Any) -> None:
            for values, low_high in zip(coordinates, ends, strict=True):
                self.points("extent", values, out=(low_high, bad))

        cloud.each(widen)
        if self.device.download(bad)[0]:
            raise owm_ground.NotFiniteError
        complements = np.array([0, 2**64 - 1], np.uint64)
        sides = [cuda.from_ordered(self.device.download(each) ^ complements) for each in ends[:2]]

        def count_occupied(west: float, south: float, side: float, shape: tuple[int, int]) -> int:
            occupied = self.device.filled(0, shape[0] * shape[1])
            place = west, south, side
            out = *_sizes(shape), occupied
            cloud.each(lambda x, y, _: self.points("mark", x, y, place=place, out=out))
            return cuda.count(occupied)

        x_ends, y_ends = ((low, high) for low, high in sides)
        return lay_grid(x_ends, y_ends, cloud.size, count_occupied)

    def lowest(self, cloud: _Whole | _InTiles, grid: CloudRaster) -> tuple[Any, Any, float]:
        """Find the lowest heights above their median, the cells that have one, and the median."""
        xp = self.device.xp
        n_cells = grid.shape[0] * grid.shape[1]
        lowest = self.device.filled(0xFF, 8 * n_cells).view(np.uint64)
        place = *grid.origin, grid.cell
        out = *_sizes(grid.shape), lowest
        cloud.each(lambda *xyz: self.points("lowest", *xyz, place=place, out=out))
        in_order = xp.sort(lowest)  # cells without a point come last
        n = cuda.count(lowest != np.uint64(2**64 - 1))
        central = self.device.download(in_order[[(n - 1) // 2, n // 2]])
        low, high = cuda.from_ordered(central)
        level = (low + high) / 2
        heights, known = xp.empty(grid.shape, np.float32), xp.empty(grid.shape, np.bool_)
        self.device.launch(
            SOURCE, "classify_heights", (min(-(-n_cells // 256), 1 << 20),), 256, lowest,
            np.float64(level), np.float64(method.FARTHEST), n_cells, heights, known,
        )  # fmt: skip
        return heights, known, level

    def fill(self, z: Any, known: Any, first: tuple[int, int]) -> Any:
        """Fill unknown cells smoothly; all are 0 where none is known."""
        xp = self.device.xp
        places = method.places_in_pairs(z.shape, first)
        levels = [(z, known)]
        for place in places:
            rows, columns = levels[-1][0].shape
            shape = (rows + place[0] + 1) // 2, (columns + place[1] + 1) // 2
            coarse = xp.empty(shape, np.float32), xp.empty(shape, np.bool_)
            given = _sizes((rows, columns, *place))
            self.rows("halve", *levels[-1], *given, shape=shape, out=coarse)
            levels.append(coarse)
        top, is_known = levels.pop()
        filled = xp.where(is_known, top, np.float32(0))
        for (fine, is_known), place in zip(reversed(levels), reversed(places), strict=True):
            coarse_filled, filled, other = filled, xp.empty_like(fine), xp.empty_like(fine)
            sizes = *fine.shape, *coarse_filled.shape, *place
            self.cells("double", fine.shape, coarse_filled, fine, is_known, *_sizes(sizes), filled)
            for _ in range(method.SWEEPS):
                self.rows(
                    "relax", filled, is_known, method.RELAXATION, shape=fine.shape, out=(other,)
                )
                filled, other = other, filled
        return filled

    def room(self, shape: tuple[int, int], radius: int) -> tuple[Any, Any]:
        """Allocate what openings with discs up to a radius share: tables, and the grid between.

        Arrays that grew from disc to disc would leave the memory of all smaller ones unused.
        """
        outside = floor(method.OUTSIDE * radius)
        rows, columns = (size + 2 * outside for size in shape)
        n_levels = int(method.table_levels(method.half_widths(radius))[0]) + 1
        empty = self.device.xp.empty
        tables = empty(n_levels * rows * (columns + 2 * radius), np.float32)
        return tables, empty(rows * columns, np.float32)

    def in_discs(
        self, z: Any, sign: float, radius: int, outside: int, tables: Any, result: Any
    ) -> None:
        """Minimum of sign * z in the disc around each cell, times sign; larger by `outside`."""
        rows, columns = z.shape
        half_widths = method.half_widths(radius)
        levels = method.table_levels(half_widths)
        margin, n_levels = radius + max(outside, 0), int(levels[0]) + 1
        blocks = -(-(columns + 2 * margin) // STRIP), min(rows, MAX_ROWS)
        self.device.launch(
            SOURCE, "classify_runs", blocks, STRIP, z, np.float32(sign), *_sizes(z.shape),
            np.int32(margin), np.int32(n_levels), tables,
        )  # fmt: skip
        self.cells(
            "discs", result.shape, tables, self.device.upload_small(half_widths),
            self.device.upload_small(levels), np.int32(radius), np.float32(sign),
            *_sizes(z.shape), np.int32(margin), np.int32(outside), *_sizes(result.shape), result,
        )  # fmt: skip

    def open(self, z: Any, radius: int, room: tuple[Any, Any], outside: int = 0) -> Any:
        """Open with a disc whose centre may lie up to `outside` cells outside the grid."""
        tables, between = room
        rows, columns = (size + 2 * outside for size in z.shape)
        eroded = between[: rows * columns].reshape(rows, columns)
        opened = self.device.xp.empty(z.shape, np.float32)
        self.in_discs(z, 1.0, radius, outside, tables, eroded)
        self.in_discs(eroded, -1.0, radius, -outside, tables, opened)
        return opened

    def pits(self, z: Any, grid: CloudRaster) -> Any:
        opened = self.open(-z, 1, self.room(z.shape, 1))
        return -opened - z > method.PIT_SLOPE * grid.step

    def objects(self, z: Any, grid: CloudRaster, options: "Options") -> Any:
        """Flag the cells that openings with growing discs cut off."""
        flags = self.device.xp.zeros(z.shape, np.bool_)
        widest = floor(options.object_width / 2 / grid.cell)
        room = self.room(z.shape, max(widest, 1))
        for radius in range(1, widest + 1):
            opened = self.open(z, radius, room, floor(method.OUTSIDE * radius))
            most = method.OBJECT_SLOPE * (np.float32(radius) * grid.step)
            self.rows("flag", z, opened, most, shape=z.shape, out=(flags,))
            z = opened
        return flags

    def base(
        self, cloud: _Whole | _InTiles, options: "Options", grid: CloudRaster, z: Any,
        candidate: Any, level: float,
    ) -> Any:  # fmt: skip
        """Make a smooth surface through the OWM seeds that are the lowest points of candidates."""
        xp = self.device.xp
        asked = windows(grid, options)
        x, y, heights = cloud.seeds(asked, extent(grid, asked))
        columns = xp.minimum((x - grid.west) / grid.cell, grid.shape[1] - 1).astype(np.int64)
        rows = xp.minimum((y - grid.south) / grid.cell, grid.shape[0] - 1).astype(np.int64)
        heights = xp.clip(heights - level, -method.FARTHEST, method.FARTHEST).astype(np.float32)
        lowest = heights == z[rows, columns]
        known = xp.zeros(grid.shape, np.bool_)
        known[rows[lowest], columns[lowest]] = True
        base = self.fill(z, known & candidate, grid.first)
        radius, along = np.int32(round(method.BASE_RADIUS / grid.cell)), xp.empty_like(base)
        for _ in range(2):
            self.rows("blur_rows", base, radius, shape=base.shape, out=(along,))
            self.rows("blur_columns", along, radius, shape=base.shape, out=(base,))
        return base

    def grow(self, z: Any, planes: Any, ground: Any, grid: CloudRaster) -> Any:
        for _ in range(method.GROWTHS):
            before, ground = ground, self.device.xp.empty_like(ground)
            self.rows(
                "grow", z, *planes, before, grid.step, method.SMOOTH,
                np.int32(method.SMOOTH_NEIGHBOURS), shape=z.shape, out=(ground,),
            )  # fmt: skip
        return ground

    def extend(
        self, z: Any, planes: Any, ground: Any, known: Any, above: Any, grid: CloudRaster
    ) -> Any:
        candidate = known & (above >= method.CREST_HEIGHT)
        near = method.neighbours(grid.cell)
        lists = [self.device.upload_small(each) for each in near]
        for _ in range(method.CRESTS):
            before, ground = ground, self.device.xp.empty_like(ground)
            self.rows(
                "extend", z, *planes[:2], before, known, candidate, *lists,
                np.int32(near.rows.size), method.CREST_CELLS, method.CREST_GROUND,
                method.CREST_KNOWN, shape=z.shape, out=(ground,),
            )  # fmt: skip
        return ground

    def join_cliffs(self, z: Any, ground: Any, known: Any, above: Any, grid: CloudRaster) -> Any:
        candidate = known & (above >= method.CLIFF_HEIGHT)
        joined = self.device.xp.empty_like(ground)
        self.rows(
            "join_cliffs", z, ground, candidate, np.float32(method.CLIFF_REACH), grid.step,
            np.float32(sqrt(2) * grid.cell), method.CLIFF_SLOPE, method.CLIFF_DISTANCE,
            method.CLIFF_TOP_SLOPE, shape=z.shape, out=(joined,),
        )  # fmt: skip
        return joined

    def densify(
        self, z: Any, known: Any, ground: Any, grid: CloudRaster, options: "Options"
    ) -> tuple[Any, Any]:
        """Repeatedly take as ground the cells near the terrain; give terrain and slope."""
        slope, scale = self.device.xp.empty_like(z), np.float32(1 / (6 * grid.cell))
        most = np.float32(options.max_distance), np.float32(options.distance_per_slope)
        for left in reversed(range(method.DENSIFICATIONS + 1)):
            dtm = self.fill(z, ground, grid.first)
            self.rows("slopes", dtm, scale, shape=z.shape, out=(slope,))
            if not left:
                break
            before, ground = ground, self.device.xp.empty_like(ground)
            changed = self.device.filled(0, 4).view(np.uint32)
            self.rows(
                "near_terrain", z, known, dtm, slope, *most, before, shape=z.shape,
                out=(ground, changed),
            )  # fmt: skip
            if self.device.download(changed)[0] == 0:
                break
        return dtm, slope


def _sizes(shape: tuple[int, ...]) -> "list[np.int32]":
    return [np.int32(size) for size in shape]
