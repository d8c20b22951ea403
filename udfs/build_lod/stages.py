"""`build_lod` in parts: chunks of the octree, and the nodes above them from those of chunks.

Points are counted in cells, core by core, until each chunk, a cell, has few enough points. The task
of a chunk reads its points, and gives its first node beside the rows of its nodes. From such first
nodes the tasks of nodes above, some levels at once, make theirs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spatialq.functions.node_stages import Node, NodePart, NodeResult, NodeWork, OfNode
from spatialq.functions.stages import Columns, OfAll, TaskResult
from spatialq.runtime import budget

from . import CHANNELS, Options, chunks, cpu
from .attributes import of_points, with_attributes
from .chunks import Counts, Divided, Step
from .colours import colours
from .cost import bytes_host
from .external_partitioning import rows_in_memory
from .split import Leaves
from .table import by_level
from .tiles import Part, Rows, Tiler, all_of
from .tree import Cube, Root
from .validation import cube_around, validate

FUNCTION = "build_lod"
ROOTS = "roots"
"""The stage of first nodes."""
AT_ONCE = 1 << 20
"""Counts that are added at once."""


def build_lod(work: NodeWork[Options]) -> None:
    """Build the tree of all points."""
    cloud, options = work.cloud, work.options
    if not cloud.size:
        return
    cube = cube_around(np.array(cloud.low), np.array(cloud.high))
    brightest, divided = _divided(work, cube)
    found = chunks.in_order(divided)
    bands = [band for band in chunks.bands(found) if band]
    rounds = [_builds(found, cube, options), *(_joins(band, cube, options) for band in bands)]
    total = len(found.level) + sum(map(len, bands))
    work.nodes(ROOTS, rounds, total, brightest=brightest)


def _divided(work: NodeWork[Options], cube: Cube) -> tuple[int, list[Divided]]:
    """Find the chunks, step by step; give the greatest red, green or blue of points, too."""
    most, level, near = work.node_points, 0, None
    depth = chunks.first_depth(work.cloud.size, work.area, cube.size, most)
    steps: list[OfAll] = []
    found: list[Divided] = []
    while True:
        step = level, depth, tuple(steps)
        counts = work.each(f"counts-{len(steps)}", count, cube, *step, near=near)
        steps.append(work.once(f"chunks-{len(steps)}", divide, counts, *step, most))
        last = Divided(**work.read(steps[-1]).arrays)
        found.append(last)
        if last.full.size == 0:
            return steps[0].facts["brightest"], found
        level += depth
        depth = chunks.next_depth(int(last.full_points.max()), level, most)
        near = [chunks.box_of(cube, level, cell) for cell in last.full_cell]


def _builds(found: Leaves, cube: Cube, options: Options) -> Iterator[Node]:
    """Give the chunks."""
    for k in range(len(found.level)):
        root, points = found.root(k), int(found.points[k])
        box = chunks.box_of(cube, root.level, root.cell)
        yield Node(root.name, build, (root, points, cube, options), box)


def _joins(band: list[tuple[Root, list[Root]]], cube: Cube, options: Options) -> Iterator[Node]:
    """Give the nodes above some chunks and nodes."""
    for root, below in band:
        first_nodes = tuple(OfNode(ROOTS, each.name) for each in below)
        yield Node(root.name, join, (root, cube, options, first_nodes))


def count(
    part: NodePart, cube: Cube, level: int, depth: int, before: Sequence[TaskResult]
) -> TaskResult:
    """Count the points of a core in the cells of a step; in the first, find their brightest, too.

    It is the greatest red, green or blue.
    """
    steps, found, brightest = _steps(level, depth, before), Counts.none(), 0
    for points in part.batches():
        xyz = points["x"], points["y"], points["z"]
        found = found.plus([chunks.count(*xyz, cube, steps)])
        if not before:
            brightest = max(brightest, int(_colours(points)[:, :3].max(initial=0)))
    return TaskResult(vars(found), {"brightest": brightest})


def divide(
    counts: Iterator[TaskResult], level: int, depth: int, before: Sequence[TaskResult], most: int
) -> TaskResult:
    """Make chunks of the counts of all cores.

    Returns
    -------
    TaskResult
        With the facts `chunks`, and `full`: how many cells are counted again; and what `_steps`
        takes.

    Raises
    ------
    ValueError
        If too many points are in one place.
    """
    found, some, brightest = Counts.none(), [], 0
    for each in counts:
        brightest = max(brightest, each.facts["brightest"])
        some.append(Counts(**each.arrays))
        if sum(few.key.size for few in some) > max(AT_ONCE, found.key.size):
            found, some = found.plus(some), []
    found = found.plus(some)
    above = before[-1].arrays["full_cell"] if before else np.zeros((1, 3), np.int64)
    divided = chunks.divide(found, _steps(level, depth, before)[-1], above, most)
    facts = {"chunks": len(divided.level), "full": len(divided.full), "brightest": brightest}
    return TaskResult(vars(divided), {**facts, "level": level, "depth": depth})


def _steps(level: int, depth: int, before: Sequence[TaskResult]) -> list[Step]:
    """Give the steps so far; of the last one it is not known which cells are full."""
    known = [Step(each.facts["level"], each.facts["depth"], each.arrays["full"]) for each in before]
    return [*known, Step(level, depth, np.empty(0, np.int64))]


def build(part: NodePart, root: Root, n: int, cube: Cube, options: Options) -> NodeResult:
    """Build the nodes of a chunk of n points.

    Raises
    ------
    Exception
        `NodePart.changed`, if there are others than were counted.
    """
    columns = part.points_where(
        lambda points: chunks.is_inside(points["x"], points["y"], points["z"], cube, root)
    )
    if columns["x"].size != n:
        raise part.changed()
    attributes = {name: columns.pop(name) for name in options.more_columns}
    ids, cloud = columns["point_id"], replace(validate(**columns), cube=cube)
    room = budget.current() // bytes_host(options)
    with part.planned(FUNCTION, n, options) as execution:
        rows = rows_in_memory(cloud, options, execution, room, root)
        return _result(root, rows, ids, attributes)


def join(root: Root, cube: Cube, options: Options, below: Sequence[TaskResult]) -> NodeResult:
    """Build nodes above chunks from the first nodes of what is below."""
    parts = [Part.of_arrays(each.arrays) for each in below]
    roots = [part.tree.root for part in parts]
    level, cell = (np.array([getattr(each, name) for each in roots]) for name in ("level", "cell"))
    points = np.array([int(part.tree.points[0]) for part in parts])

    def first_node(k: int) -> Rows:
        yield from ()
        return parts[k]

    leaves = Leaves(level, cell, np.cumsum(points) - points, points)
    rows = Tiler(cube, options, cpu.build, options.max_points).of_tiles(leaves, root, first_node)

    def joined(key: str) -> Any:
        return np.concatenate([each.arrays[key] for each in below])

    attributes = {
        name: np.ma.MaskedArray(joined(f"value {name}"), joined(f"lost {name}"))
        for name in options.more_columns
    }
    return _result(root, rows, joined("points point_id"), attributes)


def _result(root: Root, rows: Rows, ids: Any, attributes: Mapping[str, Any]) -> NodeResult:
    """Take all rows; give them and the first node, with the attributes of points of these ids."""
    tables, first = all_of(rows)
    nodes = with_attributes(by_level(tables), ids, attributes)
    if root.level == 0:
        return NodeResult(nodes, None)
    above = first.arrays()
    for name, values in of_points(first.points.point_id, ids, attributes).items():
        above[f"value {name}"] = np.ma.filled(values, 0)
        above[f"lost {name}"] = np.ma.getmaskarray(values)
    return NodeResult(nodes, above)


def _colours(points: Columns) -> Any:
    """Give red, green, blue and intensity of points side by side."""
    red, green, blue, intensity = (points[name] for name in CHANNELS)
    return colours(red, green, blue, intensity, len(points["x"]))
