"""The additive octree: each point once, in the coarsest node in which it represents a voxel.

COPC and Potree draw a node together with all nodes above it, so that a copy of a point would be
drawn twice. A point that represents a voxel therefore moves up instead of being copied: into the
coarsest inner node of which it represents a voxel, else it stays in its leaf. The voxels of a node
lie in those of its parent, and which point represents a voxel, the first or the drawn one, does not
depend on the level: a point that represents a voxel does so on all levels below.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spatialq.data.octree import Octree
from spatialq.runtime import buffers
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import steps

MAX_LEVEL = 31
"""Deeper, a cell does not fit the 32-bit key of COPC: its points go to the node of that level."""
NONE = 255


class Additive:
    """Collects the nodes of a tree, table by table in any order.

    Parameters
    ----------
    n : int
        Points of the cloud at most; their ids are 0, 1, 2 ...
    """

    def __init__(self, n: int) -> None:
        self._level = buffers.empty(n, np.uint8)
        self._level[:] = NONE
        self._node = buffers.empty(n, np.uint32)
        self._names: list[str] = []
        self._low, self._size = (0.0, 0.0, 0.0), 0.0

    def add(self, nodes: Mapping[str, Any]) -> None:
        """Take nodes.

        Parameters
        ----------
        nodes : mapping
            Columns of `table.columns`, of whose samples only `point_id` is needed.
        """
        if not len(nodes["level"]):
            return
        samples, levels = nodes["samples"], np.minimum(nodes["level"], NONE - 1)
        for first, stop in steps(0, len(levels), 256):
            begin = len(self._names) + first
            ids, offsets = samples.columns["point_id"], samples.offsets
            claim(ids, offsets, levels, first, stop, begin, self._level, self._node)
        for root in np.flatnonzero(nodes["level"] == 0).tolist():
            x, y, z = (float(nodes[name][root]) for name in ("xmin", "ymin", "zmin"))
            self._low, self._size = (x, y, z), float(nodes["size"][root])
        self._names += [nodes["node"].names[code] for code in nodes["node"].codes]

    def has(self, n: int) -> bool:
        """Whether the nodes so far have the points 0 to n - 1."""
        return bool((self._level[:n] != NONE).all())

    def octree(self, grid_size: int, n: int) -> Octree:
        """Give the octree; nothing can be added any more.

        Parameters
        ----------
        grid_size : int
            Voxels along each side of a node.
        n : int
            Points of the cloud.

        Raises
        ------
        ValueError
            If a point is in no node.
        """
        if not self.has(n):
            missing = np.count_nonzero(self._level[:n] == NONE)
            message = f"build_lod: all points must be in a node, {missing} are in none"
            raise ValueError(message)
        kept = [name[: MAX_LEVEL + 1] for name in self._names]
        names = sorted(set(kept), key=lambda name: (len(name), name))
        number = {name: k for k, name in enumerate(names)}
        ranks = np.array([number[name] for name in kept], np.uint32)
        count = np.zeros(len(names), np.int64)
        for span in steps(0, n):
            count_points(self._node, ranks, *span, count)
        # a leaf of which all points moved up is no node
        first = np.concatenate([[0], np.cumsum(count)])
        order = buffers.empty(n, np.uint32 if n < 1 << 32 else np.int64)
        free = first[:-1].copy()
        for span in steps(0, n):
            assign(self._node, ranks, *span, free, order)
        used = _with_ancestors(names, count)
        first = np.append(first[:-1][used], n)
        kept = [names[k] for k in np.flatnonzero(used)]
        return Octree(self._low, self._size, self._size / grid_size, kept, first, order)


def _with_ancestors(names: list[str], count: Any) -> Any:
    """Mark the nodes that have points, and those above them."""
    used = count > 0
    number = {name: k for k, name in enumerate(names)}
    for k in range(len(names) - 1, 0, -1):  # children come after their parents
        if used[k]:
            used[number[names[k][:-1]]] = True
    return used


@njit(cache=True, nogil=True, error_model="numpy")
def claim(
    ids: Any, offsets: Any, levels: Any, start: int, stop: int, begin: int, level: Any, node: Any
) -> None:
    """Give each sample of some nodes to its node, unless a coarser one has it."""
    for k in range(start, stop):
        for i in range(offsets[k], offsets[k + 1]):
            point = ids[i]
            if levels[k] < level[point]:
                level[point] = levels[k]
                node[point] = begin + k - start


@njit(cache=True, nogil=True, error_model="numpy")
def count_points(node: Any, ranks: Any, start: int, stop: int, count: Any) -> None:
    """Count the points of each node."""
    for i in range(start, stop):
        count[ranks[node[i]]] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def assign(node: Any, ranks: Any, start: int, stop: int, free: Any, order: Any) -> None:
    """Put each point into the next free slot of its node."""
    for i in range(start, stop):
        k = ranks[node[i]]
        order[free[k]] = i
        free[k] += 1
