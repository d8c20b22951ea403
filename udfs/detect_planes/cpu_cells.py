"""Loops over cells, nodes and pixels on the CPU, in threads: what needs no points."""

from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.runtime import buffers, progress
from spatialq.runtime.threads import Workers

from . import nodes, pixels, votes
from .accumulator import RADIUS
from .cells import OPEN
from .octree import EXACT, MIN_S_MS, WIDTHS, Summary, weighted_median

if TYPE_CHECKING:
    from numpy.typing import NDArray

CELLS_PER_THREAD = 500
CELLS_PER_CALL = 1 << 17  # of which each may be an eigenvalue problem
VOTERS_PER_CALL = 1 << 9  # each votes in many cells of the accumulator
CELLS_PER_VOTER = 128  # of an accumulator that are cleared and added up while a node votes
ROWS_PER_THREAD, ROWS_PER_CALL = 1 << 6, 1 << 11  # of the accumulator


class CpuCells:
    """The part of a cloud that needs no points, in main memory; see `octree.Cloud`."""

    xp = np

    def __init__(self, threads: Workers) -> None:
        self.threads = threads

    def empty(self, shape: Any, kind: Any = np.float64) -> Any:
        """Allocate an array."""
        return buffers.scratch(shape, kind)

    def full(self, shape: Any, value: Any, kind: Any = np.float64) -> Any:
        """Allocate an array of one value."""
        return buffers.full(shape, value, kind)

    def copies_for(self, size: int, worth: int) -> int:
        """Count the threads that are worth a table of their own for so many items."""
        return max(1, min(self.threads.threads, size // worth))

    def summarize(self, grid: Any) -> list[Summary]:
        """Summarize the cells of each level of a grid, see `octree.Cloud`."""
        found, first, size = [], 0, grid.n_first
        for level in grid.levels:
            inside = slice(first, first + size)
            first, size = first + size, size << 3
            counts, values = grid.moments[inside, 0], grid.values[inside]
            filled = np.sort(counts[counts > 0])
            parts = grid.planar[inside]
            flat = (parts > 0) & (parts < nodes.LAYERS) & (counts >= MIN_S_MS)
            n, ratios = counts[flat], values[flat, 0] / np.maximum(values[flat, 1], EXACT**2)
            found.append(
                Summary(
                    level,
                    weighted_median(filled, filled),
                    float(n.sum()),
                    weighted_median(ratios, n),
                )
            )
        return found

    def describe(self, levels: Any, codes: Any, sums: Any) -> Any:
        """Describe the sums of `cells.add_sides`, see `octree.Cloud.sides`."""
        rows = np.empty((len(sums), sum(WIDTHS)))
        self.each("describe_sums", len(sums), levels, codes, sums, rows)
        return rows

    def walk(self, grid: Any, s_level: int, deepest: int, s_ms: float) -> tuple[Any, ...]:
        """Find the coarsest planar cell around each of the finest cells, see `octree.Cloud`."""
        first, last = grid.levels[0], grid.levels[-1]
        state = buffers.scratch(grid.n_last, np.int32)
        is_node = buffers.zeros(grid.size, np.bool_)
        self.each(
            "walk", grid.n_last, grid.moments, grid.planar, grid.n_first, first, last, s_level,
            deepest, s_ms, state, is_node,
        )  # fmt: skip
        at, parts = np.flatnonzero(is_node), np.flatnonzero(state == OPEN)
        numbers = buffers.scratch(grid.size, np.int32)
        ranks = buffers.scratch(grid.n_last, np.int32)
        numbers[at], ranks[parts] = np.arange(at.size), np.arange(parts.size)
        inside = state >= 0
        state[inside] = numbers[state[inside]]
        finer = 3 * (last - grid.base)
        inner = grid.open_cells[parts >> finer] << finer | parts & ((1 << finer) - 1)
        return at, state, inner, ranks

    def each(self, loop: str, size: int, *arguments: Any) -> None:
        """Run a loop of nodes.py, see `octree.Cloud`."""
        run = getattr(nodes, loop)
        parts = self.threads.spans(size, CELLS_PER_THREAD, CELLS_PER_CALL)
        self.threads.map(lambda part: run(*arguments, *part), parts)

    def download(self, array: Any) -> Any:
        """Return the array, which is in main memory already."""
        return array

    def peaks(
        self, nodes: Any, means: Any, weights: Any, around: Any, rho_step: float,
        shape: tuple[int, int], kernel: str, unit: float,
    ) -> Any:  # fmt: skip
        """Vote, smooth, and find the peaks: positions in the accumulator, and their votes."""
        # to clear and to add up an accumulator takes as long as many votes
        worth = max(shape[0] * shape[1] // CELLS_PER_VOTER, CELLS_PER_THREAD)
        arrays = [np.zeros(shape, np.int64) for _ in range(self.copies_for(len(nodes), worth))]

        def vote(part: tuple[int, int], array: Any) -> None:
            if kernel == "tangent":
                votes.vote(
                    means, nodes.values, nodes.vectors, weights, around.directions, around.rows,
                    around.step, rho_step, shape[1], array, *part,
                )  # fmt: skip
            else:
                votes.vote_as_paper(
                    means, nodes.covariance, nodes.vectors, weights, around.phi, around.theta,
                    around.rows, around.step, rho_step, unit, shape[1], array, *part,
                )  # fmt: skip

        parts = self.threads.spans(len(nodes), worth, VOTERS_PER_CALL)
        self.threads.map_into(arrays, vote, parts)
        total = total_of(arrays)
        smoothed, is_peak = np.empty_like(total), np.empty(shape, np.bool_)
        rows = self.threads.spans(shape[0], ROWS_PER_THREAD, ROWS_PER_CALL)
        self.threads.map(lambda part: votes.smooth(total, around.beside, smoothed, *part), rows)
        self.threads.map(
            lambda part: votes.peaks(
                smoothed, around.near, around.near_starts, RADIUS, is_peak, *part
            ),
            rows,
        )  # fmt: skip
        places = np.flatnonzero(is_peak)
        return places, smoothed.ravel()[places]

    def connect(self, rasters: Any, covered: Any) -> Any:
        """Find connected pixels: their runs and connected parts, planes and sizes of the parts."""
        runs: list[Any] = []
        sizes: list[Any] = []
        n_parts = 0
        for first, rows, columns in rasters.extents().tolist():
            progress.check()
            part = slice(first, first + rows * columns)
            firsts, lasts = np.empty((2, rows * (columns // 2 + 1)), np.int32)
            starts = np.empty(rows + 1, np.int32)
            pixels.find_runs(covered[part], rows, columns, firsts, lasts, starts)
            number = np.empty(starts[-1], np.int32)
            n = pixels.connect(firsts, lasts, starts, columns, number)
            sizes.append(np.bincount(number, lasts[: number.size] - firsts[: number.size], n))
            runs.append((firsts, lasts, number + n_parts))
            n_parts += n
        plane = np.repeat(np.arange(len(sizes)), [each.size for each in sizes])
        return runs, plane, np.concatenate(sizes)

    def paint(self, rasters: Any, runs: Any, numbers: Any, *, edges: bool) -> Any:
        """Label the pixels with the surfaces of their parts, and mark those at edges."""
        own = np.zeros(rasters.n_pixels, np.int32)
        labels = np.zeros_like(own) if edges else own
        for (first, rows, columns), (firsts, lasts, part) in zip(
            rasters.extents().tolist(), runs, strict=True
        ):
            progress.check()
            inside = slice(first, first + rows * columns)
            pixels.fill_runs(firsts, lasts, numbers[part], own[inside])
            if edges:
                inner = columns + 1, (rows - 1) * columns - 1
                pixels.mark_edges(own[inside], columns, labels[inside], *inner)
        return labels


def total_of(tables: "list[NDArray[np.int64]]") -> "NDArray[np.int64]":
    """Add tables up, in the first of them."""
    total = tables[0]
    for table in tables[1:]:
        total += table
    return total
