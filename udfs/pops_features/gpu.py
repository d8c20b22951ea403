"""`pops_features` on the GPU: raw features of a band of examples, then their statistics."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.points import to_host
from spatialq.runtime import cuda, progress

from .division import Division, Examples, Scale, divide
from .layout import ROOM, SCALES, lay_out
from .methods import STATISTICS, first_rows
from .table import empty, features_table, patches_table, put, room_for_patches, series_of

if TYPE_CHECKING:
    from spatialq.data.grid import Grid

    from .options import Options

SOURCE = Path(__file__).parent / "kernels.cu"
RAW_BYTES = 1 << 30
"""Memory for raw features; it determines how many rows of examples are processed at a time."""

# the same values as in kernels.cu
SORTER_BYTES = 512
SORTED = {"float32": 64, "float64": 49}

THREADS = {"pca": 256, "stat": 256, "select": 384, "series": 256}
"""Threads per block: the fastest ones on an H200."""


def run(grid: "Grid", options: "Options", outputs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Take the features of each patch, and aggregate those of the patches of each example.

    Parameters
    ----------
    grid : Grid
        On the GPU (`__cuda_array_interface__` or DLPack), or in main memory, from where it is
        copied to the GPU band by band.
    options : Options
    outputs : sequence of 'pops_features', 'pops_patches'

    Returns
    -------
    dict of output -> dict of columns
        As from `cpu.run`, in the memory of the grid; text is in main memory.

    Raises
    ------
    ValueError
        As from `cpu.run`.
    """
    device = cuda.device()
    with device.use():
        kernels = Kernels(device, grid, options)
        xp, division, examples = kernels.xp, kernels.division, kernels.examples
        columns, rows = examples
        aggregated, kept = "pops_features" in outputs, "pops_patches" in outputs
        if aggregated:
            shape = len(columns), len(rows), len(kernels.series)
            statistics = empty((len(STATISTICS), *shape), xp=xp)
            patches = empty(shape, np.int64, xp)
        if kept:
            value, parts = room_for_patches(division, examples, options, xp)
        progress.stage("features of patches", 0.9)
        for band, raw in kernels.bands():
            if aggregated:
                nine, m = map(kernels.bring, kernels.aggregate(raw))
                put(statistics[:, :, band].swapaxes(0, 1), nine.swapaxes(0, 1))
                put(patches[:, band], m)
            if kept:
                there = kernels.bring(raw)
                for k, part in enumerate(parts):
                    put(part[:, :, band], there[..., kernels.firsts[k] : kernels.firsts[k + 1]])
            progress.report(band.stop, len(rows))
        progress.stage("table", 1.0)
        tables = {}
        if aggregated:
            tables["pops_features"] = features_table(
                grid, division, examples, options, statistics, patches, xp
            )
        if kept:
            tables["pops_patches"] = patches_table(division, examples, options, value, parts, xp)
        return {name: tables[name] for name in outputs}


@dataclass(frozen=True)
class Kernels:
    """Launches the kernels for one grid."""

    device: cuda.Device
    grid: "Grid"
    options: "Options"

    @cached_property
    def division(self) -> Division:
        """Examples and their patches."""
        return divide(self.grid, self.options)

    @cached_property
    def examples(self) -> Examples:
        """Examples that lie completely in the grid."""
        return self.division.within(self.grid)

    @cached_property
    def west(self) -> int:
        """Column of the heights at which the first example begins."""
        return self.examples.columns.start * self.division.x.step - self.grid.first_column

    @cached_property
    def series(self) -> Any:
        """Series of an example: its rows in the result."""
        return series_of(self.division, self.options)

    @cached_property
    def starts(self) -> dict[str, int]:
        """First raw feature of each method."""
        return first_rows(self.options.features)[0]

    @cached_property
    def firsts(self) -> list[int]:
        """First patch of each scale among those of an example, then the number of patches."""
        return [0, *accumulate(scale.patches for scale in self.division.scales)]

    @cached_property
    def _sweeps(self) -> dict[str, list[tuple[int, Any]]]:
        """Results of `_lay_out` for each kernel, filled in by `_sweep`."""
        return {}

    @property
    def patches(self) -> int:
        """Patches of an example, of all scales."""
        return self.firsts[-1]

    @cached_property
    def here(self) -> bool:
        """Whether the grid is in the memory of a GPU."""
        return bool(self.device.is_here(self.grid.z))

    @property
    def xp(self) -> Any:
        """The array library of the grid: NumPy or CuPy."""
        return self.device.xp if self.here else np

    def bring(self, array: Any) -> Any:
        """Copy an array of the device to the memory of the grid, if that is another one."""
        return array if self.here else to_host(self.device, array)

    def bands(self) -> Iterator[tuple[slice, Any]]:
        """Compute the raw features band by band, as many rows of examples as fit into memory.

        Yields
        ------
        band : slice
            Positions in the rows of `examples`.
        raw : float64[features of all methods, columns of examples, rows of examples, patches]
            On the device; patches are ordered by scale, then with y varying fastest.
        """
        _, features = first_rows(self.options.features)
        columns, y = len(self.examples.columns), self.division.y
        if not columns:
            return
        n = max(1, RAW_BYTES // (8 * features * columns * self.patches))
        for start in range(0, len(self.examples.rows), n):
            band = self.examples.rows[start : start + n]
            south = band[0] * y.step - self.grid.first_row
            north = band[-1] * y.step - self.grid.first_row + y.size
            raw = self.device.xp.empty((features, columns, len(band), self.patches))
            self._fill(self._cells(south, north), raw)
            yield slice(start, start + len(band)), raw

    def _cells(self, south: int, north: int) -> Any:
        """Copy rows of the grid to the device, from the first example on."""
        span = np.s_[south:north, self.west :]
        if self.here:
            return self.device.xp.ascontiguousarray(self.device.view(self.grid.z)[span])
        return self.device.upload([np.ascontiguousarray(self.grid.z[span])])[0]

    def _fill(self, z: Any, raw: Any) -> None:
        """Compute the raw features of a band; order statistics come before moments."""
        names = "pca", "pca_ternary", "stat", "stat_centred"
        pca, ternary, stat, centred = (np.int32(self.starts.get(name, -1)) for name in names)
        scales = self.division.scales
        if max(pca, ternary) >= 0:
            spacings = np.float64(self.grid.dx), np.float64(self.grid.dy)
            self._sweep("pca", scales, ROOM // 3, THREADS["pca"], z, raw, spacings, (pca, ternary))
        if max(stat, centred) >= 0:
            linear = np.int32(self.options.quantiles == "linear")
            most = SORTED[z.dtype.name]
            small = [scale for scale in scales if scale.cells <= most]
            large = [scale for scale in scales if scale.cells > most]
            sorters = SORTER_BYTES // z.dtype.itemsize
            self._sweep("sort", small, None, sorters, z, raw, (linear,), (stat, centred))
            self._sweep(
                "select", large, None, THREADS["select"], z, raw, (linear,), (stat, centred)
            )
            self._sweep("stat", scales, ROOM // 4, THREADS["stat"], z, raw, (), (stat, centred))
        for method in self.options.user_methods.values():
            self._fill_own(method, z, raw)

    def _fill_own(self, method: Any, z: Any, raw: Any) -> None:
        """Compute the raw features of a user-defined method."""
        from .user_methods_gpu import fill_gpu  # only user-defined methods need numba-cuda

        start, grid = self.starts[method.name], self.grid
        out = raw[start : start + len(method.features)]
        for first, scale in zip(self.firsts, self.division.scales, strict=False):
            min_cells = scale.min_cells(self.options)
            fill_gpu(method, z, self.division, scale, first, min_cells, grid.dx, grid.dy, out)

    def _sweep(
        self, kernel: str, scales: Sequence[Scale], room: int | None, threads: int, z: Any,
        raw: Any, numbers: tuple[Any, ...], rows: tuple[np.int32, ...],
    ) -> None:  # fmt: skip
        """Launch a kernel over the superpatches of all examples, for some of the scales."""
        if kernel not in self._sweeps:  # the same for all bands
            parts = [scales[first : first + SCALES] for first in range(0, len(scales), SCALES)]
            self._sweeps[kernel] = [self._lay_out(part, room) for part in parts]
        for places, sweep in self._sweeps[kernel]:
            name, blocks = f"pops_{kernel}_{z.dtype}", (raw.shape[1] * raw.shape[2] * places,)
            arguments = z, sweep, np.int32(raw.shape[2]), *numbers, raw, *rows
            self.device.launch(SOURCE, name, blocks, threads, *arguments)

    def _lay_out(self, scales: Sequence[Scale], room: int | None) -> tuple[int, Any]:
        """Count the superpatches of an example, and copy their description to the device."""
        pitch = int(self.grid.z.shape[1]) - self.west
        places, sweep = lay_out(self.division, scales, self.grid, self.options, room, pitch)
        return places, self.device.upload_small(sweep)

    def aggregate(self, raw: Any) -> tuple[Any, Any]:
        """Compute the statistics of raw features over the patches of each example.

        Returns
        -------
        statistics : float64[9, columns of examples, rows of examples, series]
        patches : int64[columns, rows, series]
            Both on the device.
        """
        xp, (columns, rows) = self.device.xp, raw.shape[1:3]
        examples, n = columns * rows, len(self.series)
        statistics = xp.empty((len(STATISTICS), columns, rows, n))
        patches = xp.empty((columns, rows, n), np.int64)
        table = [
            (each.feature, self.firsts[each.scale], self.division.scales[each.scale].patches, k)
            for k, each in enumerate(self.series)
        ]
        min_values = min(
            self.options.min_patches, self.patches + 1
        )  # one more than any example has
        linear = self.options.quantiles == "linear"

        def launch(kernel: str, some: list[Any], threads: int, lanes: int, *rest: Any) -> None:
            if some:
                there = self.device.upload_small(np.array(some, np.int32))
                blocks = -(-examples * lanes // threads), len(some)
                arguments = raw, there, examples, self.patches, n
                self.device.launch(SOURCE, f"pops_{kernel}", blocks, threads, *arguments, *rest)

        launch("sum_up", table, THREADS["series"], 1, min_values, statistics, patches)
        short = [row for row in table if row[2] <= SORTED["float64"]]
        long = [row for row in table if row[2] > SORTED["float64"]]
        choice = np.int32(min_values), np.int32(linear), statistics
        launch("sort_series", short, SORTER_BYTES // 8, 1, *choice)
        launch("select_series", long, THREADS["series"], 32, *choice)
        return statistics, patches
