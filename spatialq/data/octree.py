"""An octree that has each point of a cloud once, as viewers of COPC and Potree take it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Octree:
    """Nodes breadth first, those of a level by their names; a point belongs to one of them.

    A point of a node stands for those below it: a viewer draws a node together with all above it.

    Parameters
    ----------
    low : (float, float, float)
        Minimum x, y and z of the root cell, a cube.
    size : float
        Its side, in the unit of x.
    spacing : float
        Side of a voxel of the root, of which a node has a point at most; half of it one level down.
    names : list of str
        'r', and the number of the child at each level: 4 x + 2 y + z. The parent of each is there.
    first : int64[nodes + 1]
        The points of node k are ``order[first[k] : first[k + 1]]``. A node of which all points
        represent voxels of nodes above has none.
    order : uint32[n] or int64[n]
        The points in the order of the nodes, ascending within a node.
    """

    low: tuple[float, float, float]
    size: float
    spacing: float
    names: list[str]
    first: Any
    order: Any

    def key(self, node: int) -> tuple[int, int, int, int]:
        """Give the level of a node, and the x, y and z of its cell in the grid of that level."""
        digits = [int(digit) for digit in self.names[node][1:]]
        cell = [0, 0, 0]
        for digit in digits:
            cell = [
                2 * each + (digit >> bit & 1) for each, bit in zip(cell, (2, 1, 0), strict=True)
            ]
        return (len(digits), cell[0], cell[1], cell[2])

    def points(self, node: int) -> int:
        """Count the points of a node."""
        return int(self.first[node + 1] - self.first[node])

    def pages(self, levels: int, most: int = 0) -> tuple[dict[int, list[int]], list[list[int]]]:
        """Divide the nodes into pages of a hierarchy, each with a node and those below it.

        Where more than `most` nodes are below and with a node, its page ends after some levels: the
        last nodes that have children begin pages of their own, too, and stand for them.

        Returns
        -------
        dict
            The nodes of each page by its uppermost node, the root's first.
        list of list
            The children of each node.
        """
        number = {name: k for k, name in enumerate(self.names)}
        children: list[list[int]] = [[] for _ in self.names]
        below = [1] * len(self.names)
        for k in range(len(self.names) - 1, 0, -1):
            parent = number[self.names[k][:-1]]
            children[parent].insert(0, k)
            below[parent] += below[k]
        found: dict[int, list[int]] = {}
        tops = [0]
        for top in tops:
            found[top], level, depth = [top], [top], 0
            while level and (depth < levels or below[top] <= most):
                level = [child for node in level for child in children[node]]
                found[top] += level
                depth += 1
            tops += [node for node in level if children[node]]
        return found, children
