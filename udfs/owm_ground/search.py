"""The launches of `owm_ground` on the GPU: points to cells, cells to seeds."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.runtime import cuda
from spatialq.runtime.arrays import Bools

from .windows import SlotAxis

SOURCE = Path(__file__).parent / "kernels.cu"
THREADS, RUN = 128, 4 * 8 * 256  # threads per block of `owm_bin`, consecutive points
BLOCKS = 16  # such blocks per multiprocessor
WORDS = 1024  # words of a bitmap per block of `owm_collect`
MAX_ROWS = 65535  # maximum number of blocks along y
CELL_BYTES = RUN_BYTES = 16  # as declared in kernels.cu


@dataclass(frozen=True)
class DeviceCells:
    """The cells of one extent on the device, usable for all clouds of this extent and size."""

    columns: SlotAxis
    rows: SlotAxis
    memory: Any
    """GRID on the device, followed by the arrays that it refers to."""

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.columns.n_slots * self.rows.n_slots


@dataclass(frozen=True)
class SearchResult:
    """The result of a search on the device; complete once the kernels have run."""

    positions: Any
    hits: Any
    totals: Any
    """uint64[4]: rejected points, complement of the first one's position, seeds, points found."""


class Marks:
    """Bits of the points that are seeds, and of those that are filled; zeroed in one piece."""

    def __init__(self, device: cuda.Device, n_points: int) -> None:
        self.parts = parts = -(-n_points // (32 * WORDS))  # of a bitmap
        zeros = device.filled(0, 32 + 8 * parts + 8 * parts * WORDS)
        self.totals = zeros[:32].view(np.uint64)  # as of `SearchResult`
        self.counts = zeros[32 : 32 + 8 * parts].view(np.uint32)  # of the parts of both
        self.words = zeros[32 + 8 * parts :].view(np.uint32)
        self.seeds, self.filled = self.words[: parts * WORDS], self.words[parts * WORDS :]


def search(device: cuda.Device, grid: DeviceCells, cloud: tuple[Any, ...]) -> SearchResult:
    """Launch all kernels without waiting for them."""
    marks = Marks(device, cloud[0].size)
    table = cells_of(device, grid, cloud, marks.totals)
    return seeds_of(device, grid, cloud, table, marks)


def _arguments(cloud: tuple[Any, ...]) -> tuple[Any, ...]:
    *coordinates, point_id = cloud
    return (*coordinates, 0 if point_id is None else point_id)


def cells_of(device: cuda.Device, grid: DeviceCells, cloud: tuple[Any, ...], totals: Any) -> Any:
    """Make the table of the cells of a cloud: how many points each has, and the lowest one."""
    n = cloud[0].size
    table = device.filled(0xFF, grid.size * CELL_BYTES)
    blocks = min(-(-n // RUN), device.multiprocessors * BLOCKS)
    points = _arguments(cloud)
    device.launch(SOURCE, "owm_bin", (blocks,), THREADS, grid.memory, *points, n, table, totals)
    return table


def seeds_of(
    device: cuda.Device, grid: DeviceCells, cloud: tuple[Any, ...], table: Any, marks: Marks
) -> SearchResult:
    """Find the seeds and the filled points of a table, whose keys are positions in the cloud."""
    columns, rows = grid.columns, grid.rows
    points, n = _arguments(cloud), cloud[0].size

    def launch(name: str, blocks: tuple[int, ...], threads: int, *arguments: Any) -> None:
        device.launch(SOURCE, f"owm_{name}", blocks, threads, grid.memory, *arguments)

    n_windows = columns.window_start.size * rows.window_start.size
    if n_windows:
        across = -(-columns.window_start.size // 128)
        runs = device.xp.empty(rows.n_slots * columns.window_start.size * RUN_BYTES, np.uint8)
        depth = min(rows.n_slots, MAX_ROWS)
        launch("rows", (across, depth), 128, *points, table, runs)
        depth = min(rows.window_start.size, MAX_ROWS)
        launch("columns", (across, depth), 128, *points, runs, table, marks.seeds)
    n_fills = columns.fill_start.size * rows.fill_start.size
    if n_fills:
        blocks = min(-(-n_fills // 4), 1 << 20)
        launch("fill", (blocks,), 128, *points, table, marks.filled)
    parts, counts = marks.parts, marks.counts
    device.launch(SOURCE, "owm_count", (2 * parts,), 256, marks.words, counts)
    positions = device.xp.empty(min(n, n_windows) + n_fills, np.int64)
    hits = device.xp.empty(positions.size, np.int32)
    launch(
        "collect", (2 * parts,), 256, *cloud[:2], table, marks.words, counts, np.int32(parts),
        marks.totals[2:], positions, hits,
    )  # fmt: skip
    return SearchResult(positions, hits, marks.totals)


def occupied(
    device: cuda.Device,
    memory: Any,
    axes: tuple[SlotAxis, SlotAxis],
    parts: Iterable[tuple[Any, Any]],
) -> tuple[Bools, Bools]:
    """Find out which places of both axes have points, of x and y in parts; `memory` is a GRID."""
    places = [device.filled(0, axis.columns.size) for axis in axes]
    for x, y in parts:
        blocks = min(-(-x.size // 1024), device.multiprocessors * 8)
        device.launch(SOURCE, "owm_occupied", (blocks,), 256, memory, x, y, x.size, *places)
    across, along = (device.download(each).astype(bool) for each in places)
    return across, along
