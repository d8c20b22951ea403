"""Chunks of a cloud that nobody sees whole: cells of the octree, found by counts of parts of it.

A chunk is the coarsest cell with few enough points, as a tile of `external_partitioning` is, so
that its tree and those of all others are joined to that of one build. Points are counted in cells
some levels below the whole cube; cells that hold too many all the same are counted again, more
finely, in another step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import Any

import numpy as np

from spatialq.runtime.arrays import Bools, Floats, Ints

from .places import KEY_LEVELS, keys, morton
from .split import Leaves, cells_below, cells_of
from .tree import BITS, Cube, Root
from .validation import reject

DEEPEST = 12
"""Levels of one step at most."""
SHALLOWEST = 6
"""Levels of a further step at least, if there are as many."""
CODE = 3 * DEEPEST
"""Bits of a code in a key; those above it are the number of the cell above."""
FINER = 16
"""Cells that are counted for each chunk, if points are spread evenly."""
SPARSEST = 1 / 4096
"""The share of the square around a cloud that is covered at least, as far as cells are chosen."""
BAND = 3
"""Levels of the nodes above chunks that are joined at once."""
EPSILON = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Step:
    """Cells that are counted: those `depth` levels below some cells of one level.

    Parameters
    ----------
    level : int
        Of the cells above.
    depth : int
    full : int64[m]
        Keys of the cells that are counted again in the next step, ascending; none before it is
        known.
    """

    level: int
    depth: int
    full: Ints


@dataclass(frozen=True)
class Counts:
    """Points of cells.

    Parameters
    ----------
    key : int64[n]
        Of the cells that have points, ascending: the Morton code below the cell above, and in the
        bits above `CODE` the number of that one among the full cells of the step before.
    points : int64[n]
    """

    key: Ints
    points: Ints

    @classmethod
    def none(cls) -> "Counts":
        """Give those of no points."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    def plus(self, others: "Sequence[Counts]") -> "Counts":
        """Add the counts of other points."""
        key = np.concatenate([self.key, *(each.key for each in others)])
        points = np.concatenate([self.points, *(each.points for each in others)])
        order = np.argsort(key, kind="stable")  # merges ascending runs
        key, points = key[order], points[order]
        begins = _begins(key)
        return Counts(key[begins], np.add.reduceat(points, begins) if key.size else points)


@dataclass(frozen=True)
class Divided:
    """What a step has found: cells with few enough points, and those that are counted again.

    Parameters
    ----------
    level, points : int64[n]
    cell : int64[n, 3]
    full : int64[m]
        Keys, ascending.
    full_cell : int64[m, 3]
    full_points : int64[m]
    """

    level: Ints
    cell: Ints
    points: Ints
    full: Ints
    full_cell: Ints
    full_points: Ints


def first_depth(points: int, area: float, size: float, most: int) -> int:
    """Choose the levels of the first step, so that most clouds need no other.

    Parameters
    ----------
    points : int
    area : float
        Of the ground that the points are above.
    size : float
        Side of the cube around the points.
    most : int
        Points of a chunk at most.
    """
    share = min(1.0, area / size**2) if size > 0 else 1.0
    return _depth(points / max(share, SPARSEST), most, 1, DEEPEST)


def next_depth(full_points: int, level: int, most: int) -> int:
    """Choose the levels of a further step, by the points of the fullest cell at a level."""
    deepest = min(DEEPEST, BITS - level)
    return _depth(full_points, most, min(SHALLOWEST, deepest), deepest)


def _depth(points: float, most: int, least: int, deepest: int) -> int:
    cells = FINER * points / most
    return max(least, min(deepest, ceil(log2(max(cells, 1.0)) / 2)))


def count(x: Floats, y: Floats, z: Floats, cube: Cube, steps: Sequence[Step]) -> Counts:
    """Count points in the cells of the last step.

    Parameters
    ----------
    x, y, z : float64[n]
        In the cube.
    cube : Cube
    steps : sequence of Step
        All so far; points that are not in full cells of those before the last do not count.
    """
    number = np.zeros(len(x), np.int64)
    for step in steps[:-1]:
        key = _keys(x, y, z, cube, step, number)
        number = np.minimum(np.searchsorted(step.full, key), len(step.full) - 1)
        inside = step.full[number] == key
        x, y, z, number = x[inside], y[inside], z[inside], number[inside]
    key, points = np.unique(_keys(x, y, z, cube, steps[-1], number), return_counts=True)
    return Counts(key, points.astype(np.int64))


def _keys(x: Any, y: Any, z: Any, cube: Cube, step: Step, number: Ints) -> Ints:
    """Give the keys of the cells that points are in."""
    key = np.empty(len(x), np.int64)
    keys(x, y, z, cube.x0, cube.y0, cube.z0, cube.size, step.level, key, 0, len(x))
    return number << CODE | key >> 3 * (KEY_LEVELS - step.depth)


def divide(counts: Counts, step: Step, above: Ints, most: int) -> Divided:
    """Find the coarsest cells below some others that have few enough points.

    Parameters
    ----------
    counts : Counts
        Of all points.
    step : Step
        By which they were counted.
    above : int64[k, 3]
        The cells above, by their numbers: all have more than `most` points, but a single one that
        is the whole cube.
    most : int
        Points of a chunk.

    Raises
    ------
    ValueError
        If more points than that are in one place.
    """
    if step.level == 0 and counts.points.sum() <= most:
        root, nothing = np.zeros((1, 3), np.int64), np.empty(0, np.int64)
        whole = counts.points.sum(keepdims=True)
        return Divided(np.zeros(1, np.int64), root, whole, nothing, root[:0], nothing)
    key, points = counts.key, counts.points
    found: list[tuple[Any, Any, Any]] = []
    full = full_points = np.empty(0, np.int64)
    for deep in range(1, step.depth + 1):
        coarse = key >> 3 * (step.depth - deep)
        begins = _begins(coarse)
        sums = np.add.reduceat(points, begins) if key.size else points
        few = sums <= most
        number, code = coarse[begins] >> CODE - 3 * (step.depth - deep), coarse[begins]
        code = code & (1 << 3 * deep) - 1
        cell = cells_below(above[number], np.full(len(code), deep), code)
        found.append((np.full(np.count_nonzero(few), step.level + deep), cell[few], sums[few]))
        full, full_cell, full_points = coarse[begins][~few], cell[~few], sums[~few]
        left = np.repeat(~few, np.diff(begins, append=len(key)))
        key, points = key[left], points[left]
    if full.size and step.level + step.depth == BITS:
        reject(
            f"{full_points.max()} points lie in one place: chunk_points must be as many, is {most}"
        )
    level, cell, points = (np.concatenate(each) for each in zip(*found, strict=True))
    return Divided(level, cell, points, full, full_cell, full_points)


def _begins(key: Ints) -> Ints:
    """Give the positions at which equal keys begin."""
    return np.flatnonzero(np.concatenate([np.ones(min(len(key), 1), np.bool_), np.diff(key) != 0]))


def in_order(parts: Sequence[Divided]) -> Leaves:
    """List the chunks of all steps in depth-first Morton order."""
    level, cell, points = (
        np.concatenate([getattr(each, name) for each in parts])
        for name in ("level", "cell", "points")
    )
    place = cell << (BITS - level)[:, None]
    digits = (place >> 32, place >> 11 & (1 << KEY_LEVELS) - 1, place & (1 << 11) - 1)
    order = np.lexsort([morton(*each.T.copy()) for each in digits[::-1]])
    level, cell, points = level[order], cell[order], points[order]
    return Leaves(level, cell, np.cumsum(points) - points, points)


def is_inside(x: Any, y: Any, z: Any, cube: Cube, root: Root) -> Bools:
    """Tell which points of a cube are in a cell of it."""
    n = len(x)
    at, cell = np.arange(n), np.empty((n, 3), np.int64)
    levels = np.full(n, root.level)
    cells_of(x, y, z, cube.x0, cube.y0, cube.z0, cube.size, at.astype(np.uint32), at, levels, cell)
    inside: Bools = (cell == np.array(root.cell)).all(axis=1)
    return inside


def box_of(cube: Cube, level: int, cell: Any) -> tuple[float, float, float, float]:
    """Give a box, xmin, ymin, xmax, ymax, with all points of a cell, whatever is rounded."""
    side = cube.size * 2.0**-level
    low = [cube.x0 + float(cell[0]) * side, cube.y0 + float(cell[1]) * side]
    far = max(map(abs, low)) + side + abs(cube.x0) + abs(cube.y0)
    off = 8 * EPSILON * (far + cube.size)
    return low[0] - off, low[1] - off, low[0] + side + off, low[1] + side + off


def bands(chunks: Leaves, band: int = BAND) -> Iterator[list[tuple[Root, list[Root]]]]:
    """List the nodes above chunks whose levels below are joined at once, deepest first.

    Yields
    ------
    list of (Root, list of Root)
        Nodes of one level, each with what it is joined from: nodes that are `band` levels below it,
        or chunks that are less far below.
    """
    from .nodes import build_nodes

    nodes = build_nodes(chunks, 0)
    is_inner = nodes.children != 0
    roots = Leaves(nodes.level, nodes.cell, nodes.first, nodes.points).root
    for level in range(int(chunks.level.max()) // band * band, -1, -band):
        tops = np.flatnonzero(is_inner & (nodes.level == level))
        is_near = (nodes.level > level) & (nodes.level < level + band) & ~is_inner
        below = np.flatnonzero(is_near | (nodes.level == level + band))
        below = below[np.argsort(nodes.first[below])]
        first = np.searchsorted(nodes.first[below], nodes.first[tops])
        stop = np.searchsorted(nodes.first[below], nodes.first[tops] + nodes.points[tops])
        yield [
            (roots(top), [roots(k) for k in below[begin:end].tolist()])
            for top, begin, end in zip(tops.tolist(), first, stop, strict=True)
        ]
