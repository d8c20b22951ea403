"""The octree that both kernels build, and the cube around its points."""

from dataclasses import dataclass
from typing import Any

BITS = 53
"""Of a coordinate within the cube: as many as a float64 in [0, 1) has."""


@dataclass(frozen=True)
class Cube:
    """The root: a cube whose lowest corner is that of the points' bounding box.

    A point's place in it is the integer ``min(floor((x - x0) / size * 2**53), 2**53 - 1)`` for
    each axis (0 where size is 0), from float64 arithmetic; its cell at a level is the place's
    `level` highest bits. Everything else about the tree is arithmetic of integers.
    """

    x0: float
    y0: float
    z0: float
    size: float

    @classmethod
    def around(cls, least: Any, greatest: Any) -> "Cube":
        """Lay the cube around a bounding box: its side is the longest of the box."""
        x0, y0, z0 = (float(each) for each in least)
        size = max(float(high - low) for low, high in zip(least, greatest, strict=True))
        return cls(x0, y0, z0, size)


@dataclass(frozen=True)
class Root:
    """The cell that a tree begins with: all of the cube, or a tile of it."""

    level: int = 0
    cell: tuple[int, int, int] = (0, 0, 0)

    @property
    def name(self) -> str:
        """As `Tree.names` has it."""
        x, y, z = self.cell
        bits = ((x >> k & 1, y >> k & 1, z >> k & 1) for k in reversed(range(self.level)))
        return "r" + "".join(str(4 * a + 2 * b + c) for a, b, c in bits)


@dataclass(frozen=True)
class Points:
    """Points as the kernels take them.

    Parameters
    ----------
    x, y, z : float64[n]
    colour : uint16[n, 4]
        Red, green, blue, intensity.
    point_id : int64[n]
        Ascending: the first of several points is the one of the lowest position.
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
    """Nodes breadth first, those of a level in Morton order: by child numbers 4 x + 2 y + z.

    A cell with more than `max_points` points, not all of one place, is an inner node; its cells
    that hold a point are its children; children that are no inner nodes are leaves.

    Parameters
    ----------
    level : int32[nodes]
    cell : uint64[nodes, 3]
        Place of the node in the grid of its level.
    parent : int32[nodes]
        -1 of the first.
    first_child : int32[nodes]
        -1 of a leaf; the children of a node follow one another.
    children : uint8[nodes]
        Bit c is set where there is child number c; 0 of a leaf.
    first, points : int64[nodes]
        The points under the node are ``order[first : first + points]``.
    order : uint32[n]
        Positions of the points, leaf after leaf in Morton order, ascending in a leaf.
    voxel_first : int64[nodes + 1]
        The voxels of node k are ``voxel_first[k] : voxel_first[k + 1]``; a leaf has none.
    code : uint32[voxels]
        Cell of the node's grid as a Morton code, x the highest bit of each three; ascending.
    colour : uint16[voxels, 4]
    mass : uint32[voxels]
        Points in the voxel; uint64 of a node above tiles, which may have more of them in all.
    representative : uint32[voxels]
        Position of a point in the voxel: of 'random' the drawn one, else the lowest.
    sums : uint64[voxels of the first node, 4]
        Of 'average': what the colours of the points in them add up to, for the node above a tile;
        else of no length. Of packed points the first three columns.
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
