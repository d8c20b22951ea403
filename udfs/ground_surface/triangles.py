"""Sort points, remove duplicates, and triangulate; for all kernels.

DuckDB does not guarantee an order of rows. The points are sorted, so that the triangulation, and
with it every bit of the result, does not depend on the order of the input.

Everything is done in parts that fit the caches, in several threads, and can be interrupted between
the parts; arrays of all points are those of `spatialq.runtime.buffers`.
"""

from typing import Any

import numpy as np

from spatialq.runtime import buffers, progress
from spatialq.runtime.arrays import Floats, Int32s
from spatialq.runtime.threads import Workers, chunks, steps, workers

from . import cells, delaunay
from .grid import SurfaceRaster

NONE: Int32s = np.empty((0, 3), np.int32)
POINTS_PER_TILE = 1 << 16
"""Points that are triangulated at once, at most; also of a run that is sorted at once, about."""
HALVES = 6
"""Half-edges of a point: a planar graph has less than three edges for each."""
SMALL_INDEX = 1 << 31
"""Half-edges that are numbered in 32 bits."""
SAMPLE = 64
"""Points that are looked at for each run, to find where it begins and ends."""


def arrange(
    x: Floats, y: Floats, z: Floats, grid: SurfaceRaster, *, thin: bool
) -> tuple[Floats, ...]:
    """Sort points by x and y, relative to the grid's corner, and keep one per place or cell.

    Of several points at one place the lowest is kept; with `thin`, of several points in one cell
    the one nearest to the centre of the cell.

    Returns
    -------
    x, y, z : float64[m]
        x and y are multiples of `grid.step`.
    """
    x, y = (grid.relative(values, start) for values, start in zip((x, y), grid.origin, strict=True))
    if thin:
        nearest = buffers.empty((grid.rows, grid.columns), np.int64)
        nearest.fill(-1)
        centres = grid.centres_from()
        for start, stop in steps(0, x.size):
            cells.nearest_to_centres(x, y, z, start, stop, *centres, grid.resolution, nearest)
        kept = nearest[nearest >= 0]
        x, y, z = x[kept], y[kept], z[kept]
    with workers() as pool:
        return _lowest_of_each_place(*_sorted_runs(pool, (x, y, z)))


def _sorted_runs(
    pool: Workers, points: tuple[Floats, ...]
) -> tuple[tuple[Floats, ...], list[tuple[int, int]]]:
    """Sort points by x, y, z; returns them and runs of them that have no x in common."""
    size = points[0].size
    if size <= POINTS_PER_TILE:
        x, y, z = points
        order = np.lexsort((z, y, x))
        return (x[order], y[order], z[order]), [(0, size)]
    n_runs = -(-size // POINTS_PER_TILE)
    sample = np.sort(points[0][:: max(1, size // (SAMPLE * n_runs))])
    ends = np.unique(sample[:: max(1, sample.size // n_runs)][1:])
    parts = chunks(size)

    def assign(part: tuple[int, int]) -> tuple[Any, Any]:
        run = np.searchsorted(ends, points[0][slice(*part)], "right").astype(np.int32)
        return np.argsort(run, kind="stable"), np.bincount(run, minlength=ends.size + 1)

    counts = np.array([count for _, count in pool.map(assign, parts)]).reshape(-1, ends.size + 1)
    stops = np.cumsum(counts.T).reshape(counts.T.shape).T
    into = tuple(buffers.empty(size) for _ in points)

    def divide(part: tuple[int, int], counts: Any, stops: Any) -> None:
        order, _ = assign(part)
        firsts = np.cumsum(counts) - counts
        for values, target in zip(points, into, strict=True):
            ordered = values[slice(*part)][order]
            for first, count, stop in zip(firsts, counts, stops, strict=True):
                target[stop - count : stop] = ordered[first : first + count]

    pool.map(divide, parts, counts, stops)
    runs = np.concatenate([[0], stops[-1]])

    def sort(start: int, stop: int) -> None:
        x, y, z = (values[start:stop] for values in into)
        order = np.lexsort((z, y, x))
        x[:], y[:], z[:] = x[order], y[order], z[order]

    pool.map(sort, runs[:-1], runs[1:])
    return into, list(zip(runs[:-1].tolist(), runs[1:].tolist(), strict=True))


def _lowest_of_each_place(
    points: tuple[Floats, ...], runs: list[tuple[int, int]]
) -> tuple[Floats, ...]:
    """Move the first point of each place to the front, in place."""
    n = 0
    for start, stop in runs:
        progress.check()
        x, y, _ = run = [values[start:stop] for values in points]
        first = np.ones(x.size, np.bool_)
        first[1:] = (x[1:] != x[:-1]) | (y[1:] != y[:-1])
        kept = int(np.count_nonzero(first))
        if n < start or kept < x.size:
            for values, part in zip(points, run, strict=True):
                values[n : n + kept] = part[first]
        n += kept
    return tuple(values[:n] for values in points)


def triangulate(x: Floats, y: Floats) -> Int32s:
    """Make the Delaunay triangulation of what `arrange` returns, in tiles that are then joined.

    Of points on one circle, that with the highest index is a corner of all their triangles. So the
    result is that of one tile, whatever the tiles.

    Returns
    -------
    int32[m, 3]
        The corners of each triangle, counterclockwise, the lowest index first; in the order of
        their first corner. Empty for points on one line.
    """
    if x.size < 3:
        return NONE
    with workers() as pool, progress.nested():
        progress.stage("triangles", 0.8)
        edges = _Edges(x, y)
        edges.cut(pool)
        edges.triangulate(pool)
        progress.stage("joining triangles", 0.85)
        edges.join(pool)
        progress.stage("listing triangles", 1.0)
        return edges.triangles(pool)


class _Edges:
    """The edges of a triangulation that is made in tiles; see `delaunay`."""

    def __init__(self, x: Floats, y: Floats) -> None:
        size, n_edges = x.size, HALVES * x.size
        index = np.int32 if n_edges < SMALL_INDEX else np.int64
        self.x, self.y = x, y
        self.points = buffers.empty(size, np.int32)
        self.points[:] = np.arange(size, dtype=np.int32)
        self.arrays = tuple(buffers.empty(n_edges, index) for _ in range(3))
        self.levels = [[(0, size)]]
        while self.levels[-1][0][1] > POINTS_PER_TILE:
            halves = [
                half
                for low, high in self.levels[-1]
                for half in ((low, low + (high - low) // 2), (low + (high - low) // 2, high))
            ]
            self.levels.append(halves)
        self.free = np.zeros((len(self.levels[-1]), 2), np.int64)
        self.hulls: list[int] = []

    def axis(self, level: int) -> int:
        """Along which axis the parts of a level are halved: first all by x, then all by y."""
        return delaunay.BY_X if level < len(self.levels) // 2 else delaunay.BY_Y

    def cut(self, pool: Workers) -> None:
        """Divide the points into tiles; by x they are sorted already."""
        for level, parts in enumerate(self.levels[:-1]):
            if self.axis(level) == delaunay.BY_Y:
                pool.map(
                    lambda part: delaunay.halve(self.y, self.points[slice(*part)], delaunay.BY_Y),
                    parts,
                )

    def triangulate(self, pool: Workers) -> None:
        """Triangulate each tile."""
        stop = progress.stop_flag()

        def tile(low: int, high: int, free: Any) -> int:
            edges = [array[HALVES * low : HALVES * high] for array in self.arrays]
            return int(
                delaunay.triangulate_tile(
                    self.x, self.y, self.points[low:high], HALVES * low, *edges, free, stop
                )
            )

        self.hulls = pool.map(tile, *zip(*self.levels[-1], strict=True), self.free)

    def join(self, pool: Workers) -> None:
        """Join the tiles two by two."""
        stop, after = progress.stop_flag(), self.arrays[1]
        for level in reversed(range(len(self.levels) - 1)):
            free = self.free.reshape(-1, 2, 2)
            after[free[:, 0, 1]] = free[:, 1, 0]  # two lists become one
            self.free = np.ascontiguousarray(np.stack([free[:, 0, 0], free[:, 1, 1]], axis=1))
            axis = self.axis(level)
            self.hulls = pool.map(
                lambda left, right, free, axis=axis: int(
                    delaunay.join(self.x, self.y, *self.arrays, free, left, right, axis, stop)
                ),
                self.hulls[::2],
                self.hulls[1::2],
                self.free,
            )

    def triangles(self, pool: Workers) -> Int32s:
        """List the triangles in their order."""
        leaving = buffers.empty(self.x.size, self.arrays[0].dtype)
        for start, stop in chunks(self.arrays[0].size):
            progress.check()
            delaunay.note_edges(self.arrays[0], start, stop, leaving)
        parts = chunks(self.x.size, POINTS_PER_TILE)

        def list_part(part: tuple[int, int], found: Int32s) -> int:
            listed = delaunay.list_triangles(self.x, self.y, *self.arrays, leaving, *part, found)
            return int(listed)

        if len(parts) == 1:  # there are less than twice as many triangles as points
            found: Int32s = np.empty((2 * self.x.size, 3), np.int32)
            return found[: list_part(parts[0], found)]
        ends = np.cumsum(pool.map(lambda part: list_part(part, NONE), parts))
        triangles: Int32s = buffers.empty((int(ends[-1]), 3), np.int32)
        pool.map(list_part, parts, np.split(triangles, ends[:-1]))
        return triangles


def hull(x: Floats, y: Floats) -> Int32s:
    """Int32s that fill the convex hull of sorted points, as a fan around the first of them."""
    corners = _corners(x, y)
    first = np.full(max(0, corners.size - 2), corners[0] if corners.size else 0)
    return np.column_stack([first, corners[1:-1], corners[2:]]).astype(np.int32)


def _corners(x: Floats, y: Floats) -> Any:
    """Corners of the convex hull, counterclockwise from the first point; two if it is a line."""
    lower, upper = np.empty(0, np.int64), np.empty(0, np.int64)
    for start, stop in steps(0, x.size):
        more = np.arange(start, stop)
        lower = _chain(x, y, np.concatenate([lower, _chain(x, y, more)]))
        upper = _chain(x, y, np.concatenate([_chain(x, y, more[::-1]), upper]))
    return np.concatenate([lower, upper[1:-1]])


def _chain(x: Floats, y: Floats, points: Any) -> Any:
    kept = np.empty_like(points)
    return kept[: delaunay.hull_chain(x, y, points, kept)]
