"""The octree that the kernels build, and the cube around its points."""

from dataclasses import dataclass
from typing import Any

import numpy as np

BITS = 53
"""Bits of a coordinate within the cube: the precision of a float64 in [0, 1)."""


@dataclass(frozen=True)
class Cube:
    """The root cell: a cube whose minimum corner is that of the points' bounding box.

    The place of a point along an axis is the integer
    ``min(floor((x - x0) / size * 2**53), 2**53 - 1)`` (0 if size is 0), computed in float64. Its
    cell at a level is given by the `level` highest bits of its places. Everything else about the
    tree is integer arithmetic.
    """

    x0: float
    y0: float
    z0: float
    size: float

    @classmethod
    def around(cls, lows: Any, highs: Any) -> "Cube":
        """Make the cube around a bounding box: its side is the longest side of the box."""
        x0, y0, z0 = (float(each) for each in lows)
        size = max(float(high - low) for low, high in zip(lows, highs, strict=True))
        return cls(x0, y0, z0, size)


@dataclass(frozen=True)
class Root:
    """The cell of the first node of a tree: the whole cube, or a tile of it."""

    level: int = 0
    cell: tuple[int, int, int] = (0, 0, 0)

    @property
    def name(self) -> str:
        """The name of the cell in the form of `Tree.names`."""
        x, y, z = self.cell
        bits = ((x >> k & 1, y >> k & 1, z >> k & 1) for k in reversed(range(self.level)))
        return "r" + "".join(str(4 * a + 2 * b + c) for a, b, c in bits)


@dataclass(frozen=True)
class Points:
    """Points in the form that the kernels expect.

    Parameters
    ----------
    x, y, z : float64[n]
    colour : uint16[n, 4]
        Red, green, blue, intensity.
    point_id : int64[n]
        Ascending, so that the first of several points is the one with the lowest position.
    """

    x: Any
    y: Any
    z: Any
    colour: Any
    point_id: Any


@dataclass(frozen=True)
class Nodes:
    """Nodes breadth first, in the memory of one device; the arrays are those of `Tree`.

    Parameters
    ----------
    level_first : list of int
        The first node of each level from the root's on, and behind the last one.
    """

    level: Any
    cell: Any
    parent: Any
    first_child: Any
    children: Any
    first: Any
    points: Any
    level_first: list[int]

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays by their names, in the order in which kernels take them."""
        return {name: values for name, values in vars(self).items() if name != "level_first"}


@dataclass(frozen=True)
class Tree:
    """Nodes in breadth-first order, those of a level in Morton order (child 4 x + 2 y + z).

    A cell with more than `max_points` points that do not all have one place is an inner node. Its
    children are the cells of the next level that contain a point. Other nodes are leaves.

    Parameters
    ----------
    level : int32[nodes]
    cell : uint64[nodes, 3]
        Place of the node in the grid of its level.
    parent : int32[nodes]
        -1 for the first node.
    first_child : int32[nodes]
        -1 for a leaf; the children of a node are consecutive.
    children : uint8[nodes]
        Bit c is set if there is a child number c; 0 for a leaf.
    first, points : int64[nodes]
        The points under the node are ``order[first : first + points]``.
    order : uint32[n]
        Positions of the points, leaf after leaf in Morton order, ascending within a leaf.
    voxel_first : int64[nodes + 1]
        The voxels of node k are ``voxel_first[k] : voxel_first[k + 1]``; a leaf has none.
    code : uint32[voxels]
        Cell of the node's grid as a Morton code, with x as the highest bit of each three;
        ascending.
    colour : uint16[voxels, 4]
    mass : uint32[voxels]
        Points in the voxel; uint64 for a node above tiles, which may have more points.
    representative : uint32[voxels]
        Position of a point in the voxel: for 'random' the drawn one, otherwise the lowest.
    sums : uint64[voxels of the first node, 4]
        For 'average' the sums of the colours of the points, which the node above a tile needs;
        otherwise empty. For packed points only three channels.
    """

    level: Any
    cell: Any
    parent: Any
    first_child: Any
    children: Any
    first: Any
    points: Any
    order: Any
    voxel_first: Any
    code: Any
    colour: Any
    mass: Any
    representative: Any
    sums: Any

    @property
    def root(self) -> Root:
        """The cell of the first node."""
        x, y, z = self.cell[0].tolist()
        return Root(int(self.level[0]), (x, y, z))

    def names(self) -> list[str]:
        """Name the nodes as Potree does: 'r', and the number of the child at each level."""
        found = [self.root.name]
        for parent, (x, y, z) in zip(
            self.parent[1:].tolist(), (self.cell[1:] & 1).tolist(), strict=True
        ):
            found.append(f"{found[parent]}{4 * x + 2 * y + z}")
        return found


def leaf(root: Root, n: int, order: Any) -> Tree:
    """Make the tree that is a single leaf with n points."""
    return Tree(
        level=np.array([root.level], np.int32),
        cell=np.array([root.cell], np.uint64),
        parent=np.array([-1], np.int32),
        first_child=np.array([-1], np.int32),
        children=np.zeros(1, np.uint8),
        first=np.zeros(1, np.int64),
        points=np.array([n]),
        order=order,
        voxel_first=np.zeros(2, np.int64),
        code=np.empty(0, np.uint32),
        colour=np.empty((0, 4), np.uint16),
        mass=np.empty(0, np.uint32),
        representative=np.empty(0, np.uint32),
        sums=np.empty((0, 4), np.uint64),
    )
