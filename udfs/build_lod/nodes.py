"""The nodes of the octree, from its leaves."""

from typing import Any

import numpy as np

from .split import Leaves
from .tree import Nodes


def build_nodes(leaves: Leaves, root_level: int) -> Nodes:
    """Build all nodes from the leaves, up to the root."""
    levels: list[tuple[Any, ...]] = []
    cell, first, points = leaves.cell[:0], leaves.first[:0], leaves.points[:0]
    for at in range(int(leaves.level.max()), root_level - 1, -1):
        cell, first, points, children = _parents(cell, first, points)
        here = leaves.level == at
        cell = np.concatenate([cell, leaves.cell[here]])
        first = np.concatenate([first, leaves.first[here]])
        points = np.concatenate([points, leaves.points[here]])
        children = np.concatenate([children, np.zeros(np.count_nonzero(here), np.uint8)])
        ranked = np.argsort(first)  # no two nodes of a level have a point in common
        cell, first, points, children = (each[ranked] for each in (cell, first, points, children))
        levels.append((np.full(len(cell), at, np.int32), cell, first, points, children))
    levels.reverse()
    level_first = np.cumsum([0, *(len(each[0]) for each in levels)]).tolist()
    parent = [np.full(1, -1)]
    for k in range(1, len(levels)):
        above, below = levels[k - 1][2], levels[k][2]
        parent.append(level_first[k - 1] + np.searchsorted(above, below, "right") - 1)
    level, cell, first, points, children = (
        np.concatenate(each) for each in zip(*levels, strict=True)
    )
    parents = np.concatenate(parent).astype(np.int32)
    first_child = np.full(len(level), -1, np.int32)
    child = np.arange(1, len(level), dtype=np.int32)
    first_child[parents[:0:-1]] = child[::-1]  # the last one written is the first child
    return Nodes(
        level, cell.astype(np.uint64), parents, first_child, children, first, points, level_first
    )


def _parents(cell: Any, first: Any, points: Any) -> tuple[Any, Any, Any, Any]:
    """Merge neighbouring cells that have the same parent."""
    if not len(cell):
        return cell, first, points, np.empty(0, np.uint8)
    above = cell >> 1
    begins = np.flatnonzero(np.r_[True, (above[1:] != above[:-1]).any(1)])
    bit = (1 << ((cell & 1) @ [4, 2, 1])).astype(np.uint8)
    return (
        above[begins],
        first[begins],
        np.add.reduceat(points, begins),
        np.bitwise_or.reduceat(bit, begins),
    )
