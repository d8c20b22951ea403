"""`pops_features` on the CPU: runs of examples along x; all scales of a run while it is cached."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.runtime import progress
from spatialq.runtime.arrays import Floats
from spatialq.runtime.threads import in_threads

from .aggregation import NINE, aggregate
from .division import Division, Examples, divide
from .methods import BUILT_IN, first_rows
from .order import exchanges
from .patches import fill_patches
from .table import empty, features_table, patches_table, room_for_patches, series_of
from .user_methods import fill_cpu

if TYPE_CHECKING:
    from spatialq.data.grid import Grid

    from .options import Options

STAGE, SHARE_OF_PROGRESS = "features of patches", 0.9
"""The stage of the work in runs, and its share of the whole."""

RUN = 4096
"""Approximate number of columns of a run of examples: enough to be worth starting a task, and few
enough for its sums and features to stay in the cache."""


def run(grid: "Grid", options: "Options", outputs: "Sequence[str]") -> dict[str, dict[str, Any]]:
    """Take the features of each patch, and aggregate those of the patches of each example.

    Parameters
    ----------
    grid : Grid
        In main memory. If it is a window, the examples that lie completely in it are used.
    options : Options
    outputs : sequence of 'pops_features', 'pops_patches'
        Several come from one pass over the grid.

    Returns
    -------
    dict of output -> dict of columns
        'pops_features', one row per example, method, scale and feature: `example_id` int64, `x`
        and `y` float64 (centre of the example), `method` and `feature` Text, `scale` float64, the
        nine statistics float64 (NaN where there are too few patches), `patches` int64.
        'pops_patches', one row per patch, method and feature: `example_id` int64, `method` and
        `feature` Text, `scale` float64, `px` and `py` int64 (place of the patch in its example),
        `value` float64 (NaN where the patch has too few values).

    Raises
    ------
    ValueError
        If no example or patch fits.
    """
    division = divide(grid, options)
    examples = division.within(grid)
    columns, rows = examples
    takers: list[Callable[[Run, int, Any], None]] = []
    tables: dict[str, Callable[[], dict[str, Any]]] = {}
    if "pops_features" in outputs:
        series = series_of(division, options)
        shape = len(columns), len(rows), len(series)
        statistics, patches = empty((NINE, *shape)), empty(shape, np.int64)
        linear = options.quantiles == "linear"
        of_scale: list[list[int]] = [[] for _ in division.scales]
        for at, each in enumerate(series):
            of_scale[each.scale].append(at)

        def aggregate_patches(piece: "Run", k: int, raw: Floats) -> None:
            flat = raw.reshape(-1, raw.shape[2])
            nine, m = np.empty((NINE, len(flat))), np.empty(len(flat), np.int64)
            aggregate(flat, options.min_patches, *exchanges(raw.shape[2], linear), linear, nine, m)
            there = slice(piece.first - columns.start, piece.stop - columns.start)
            place = there, piece.row - rows.start, of_scale[k]
            statistics[:, *place] = nine.reshape(NINE, len(raw), -1).swapaxes(1, 2)
            patches[place] = m.reshape(len(raw), -1).T

        takers.append(aggregate_patches)
        tables["pops_features"] = lambda: features_table(
            grid, division, examples, options, statistics, patches
        )
    if "pops_patches" in outputs:
        value, parts = room_for_patches(division, examples, options)

        def keep_patches(piece: "Run", k: int, raw: Floats) -> None:
            there = slice(piece.first - columns.start, piece.stop - columns.start)
            parts[k][:, there, piece.row - rows.start] = raw

        takers.append(keep_patches)
        tables["pops_patches"] = lambda: patches_table(division, examples, options, value, parts)

    def work(piece: "Run", k: int) -> None:
        raw = raw_features(grid, division, options, piece, k)
        for take in takers:
            take(piece, k, raw)

    each_run(division, examples, work)
    progress.stage("table", 1.0)
    return {name: tables[name]() for name in outputs}


@dataclass(frozen=True)
class Run:
    """Adjacent examples: columns [first, stop) of a row of examples of the whole grid."""

    row: int
    first: int
    stop: int


def each_run(division: Division, examples: Examples, work: Callable[[Run, int], None]) -> None:
    """Call work with every run of examples and every scale, in several threads.

    A thread processes the scales of a run while its cells are in the cache. If an example is larger
    than a run, `raw_features` uses the threads instead.
    """
    n = max(1, RUN // division.x.step)
    columns, scales = examples.columns, range(len(division.scales))
    starts = columns[::n]
    runs = [Run(r, e, min(e + n, columns.stop)) for r in examples.rows for e in starts]
    tasks = [(piece, k) for piece in runs for k in scales]

    def some(span: tuple[int, int]) -> None:
        for piece, k in tasks[slice(*span)]:
            progress.check()
            work(piece, k)

    if division.x.size > RUN:
        for at in range(len(tasks)):
            progress.stage(STAGE, SHARE_OF_PROGRESS * (at + 1) / len(tasks))
            some((at, at + 1))
    else:
        progress.stage(STAGE, SHARE_OF_PROGRESS)
        in_threads(some, len(tasks))


def raw_features(
    grid: "Grid", division: Division, options: "Options", piece: Run, k: int
) -> Floats:
    """Compute the features of all patches of the k-th scale in a run of examples.

    Returns
    -------
    float64[features of all methods, examples, patches]
        NaN for a patch with too few values.
    """
    scale, (starts, total) = division.scales[k], first_rows(options.features)
    z = grid.z.view()
    z.flags.writeable = False  # so that code is compiled for one type of array only
    row = piece.row * division.y.step - grid.first_row
    examples, step = piece.stop - piece.first, division.x.step
    column = piece.first * step - grid.first_column
    rows = np.array([starts.get(name, -1) for name in BUILT_IN])
    linear, min_cells = options.quantiles == "linear", scale.min_cells(options)

    def fill(first: int, stop: int) -> Floats:
        """Compute the features of some columns of patches."""
        n = examples * (stop - first) * scale.y.count
        left = column + first * scale.x.step
        raw, counts = np.empty((total, n)), np.empty(n, np.int64)
        fill_patches(
            z, row, left, examples, step, scale.x.size, scale.y.size, scale.x.step, scale.y.step,
            stop - first, scale.y.count, grid.dx, grid.dy, min_cells, rows,
            *exchanges(scale.cells, linear), linear, raw, counts,
        )  # fmt: skip
        for name, method in options.user_methods.items():
            x = left + step * np.arange(examples)[:, None, None]
            x = x + scale.x.step * np.arange(stop - first)[:, None]
            y = row + scale.y.step * np.arange(scale.y.count)
            x, y = (each.flatten() for each in np.broadcast_arrays(x, y))
            fill_cpu(
                method, z, x, y, scale.x.size, scale.y.size, grid.dx, grid.dy, counts >= min_cells,
                raw[starts[name] : starts[name] + len(method.features)],
            )  # fmt: skip
        return raw

    if division.x.size <= RUN:
        return fill(0, scale.x.count).reshape(total, examples, scale.patches)
    raw = np.empty((total, examples, scale.x.count, scale.y.count))

    def part(span: tuple[int, int]) -> None:
        raw[:, :, slice(*span)] = fill(*span).reshape(total, examples, -1, scale.y.count)

    in_threads(part, scale.x.count)
    return raw.reshape(total, examples, scale.patches)
