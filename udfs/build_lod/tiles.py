"""Clouds larger than memory: tiles of the octree, each built alone, joined at the top.

Schütz et al. 2023 leave this to future work. A tile is a cell of the octree, so what the kernel
builds of its points, in the cube of the whole cloud, is what the whole tree has under that cell.
The nodes above are filled from the first nodes of the tiles, whose voxels stand for all points in
them: the tree is that of one build, to the bit.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .cpu import sort
from .door import Cloud
from .nodes import Nodes, grow
from .split import Leaves, Sorted, split
from .table import columns, concatenate
from .tree import Cube, Points, Root, Tree
from .voxels import Filler, Voxels, draw_points

if TYPE_CHECKING:
    from . import Options

OF_NODES = ("level", "cell", "parent", "first_child", "children", "first", "points")
"""What a tree has of each node."""
Build = Callable[[Points, Cube, "Options", Root], Tree]


@dataclass(frozen=True)
class Part:
    """A tree of some of the points, or only its first node and the points it needs.

    Parameters
    ----------
    tree : Tree
    points : Points
    classification : uint8[n]
    """

    tree: Tree
    points: Points
    classification: Any

    @property
    def is_leaf(self) -> bool:
        """Whether the first node is one."""
        return bool(self.tree.children[0] == 0)

    def first_node(self) -> "Part":
        """Drop the nodes below the first, and all points but those that stand for its voxels."""
        if self.is_leaf:
            return self
        tree, n = self.tree, int(self.tree.voxel_first[1])
        kept, representative = np.unique(tree.representative[:n], return_inverse=True)
        node = replace(
            tree,
            **{name: getattr(tree, name)[:1] for name in OF_NODES},
            order=tree.order[:0],
            voxel_first=tree.voxel_first[:2],
            code=tree.code[:n].copy(),
            colour=tree.colour[:n].copy(),
            mass=tree.mass[:n].copy(),
            representative=representative.astype(np.uint32),
        )
        return Part(node, take(self.points, kept), self.classification[kept])


Rows = Generator[dict[str, Any], None, Part]
"""Gives the rows of nodes, as `table.columns` has them, and at last the first of the nodes."""


def run(cloud: Cloud, options: "Options", build: Build, budget: int) -> dict[str, Any]:
    """Build the octree of a cloud tile by tile and give it as a table.

    Parameters
    ----------
    cloud : Cloud
        In the memory of the host.
    options : Options
    build : callable
        A kernel such as `cpu.build`; its tree is in the memory of the host.
    budget : int
        Points that it can take at once.

    Returns
    -------
    dict of columns
        As from `table.columns`, each node before its children.
    """
    tables = list(of_cloud(cloud, options, build, budget))
    return concatenate(tables[::-1])


def of_cloud(cloud: Cloud, options: "Options", build: Build, budget: int) -> Rows:
    """Build the octree of a cloud tile by tile; as `run`, but the rows come one tile at a time."""
    budget = max(budget, options.max_points)
    ordered = sort(cloud.points, cloud.cube, Root())
    tiles, order = split(ordered, budget), ordered.order
    del ordered  # its keys are of no more use

    def tile(k: int) -> Rows:
        inside = order[tiles.first[k] : tiles.first[k] + tiles.points[k]]
        points = take(cloud.points, inside)
        root = Root(int(tiles.level[k]), tuple(tiles.cell[k].tolist()))
        is_leaf = not options.max_points < len(inside) <= budget  # a split leaves no other cells
        tree = leaf(root, len(inside)) if is_leaf else build(points, cloud.cube, options, root)
        part = Part(tree, points, cloud.classification[inside])
        yield columns(tree, points, part.classification, cloud.cube, options)
        return part.first_node()

    return (yield from join_tiles(tiles, Root(), tile, cloud.cube, options))


def join_tiles(
    tiles: Leaves, root: Root, tile: Callable[[int], Rows], cube: Cube, options: "Options"
) -> Rows:
    """Give the rows of all tiles and of the nodes above them, children first.

    Depth first, so that no more than a node's children are in memory for each level.

    Parameters
    ----------
    tiles : Leaves
        All that is under the root.
    root : Root
    tile : callable
        Gives the rows of a tile.
    cube : Cube
    options : Options
    """
    nodes = grow(tiles, root.level)

    def under(node: int) -> Rows:
        n = int(nodes.children[node]).bit_count()
        if n == 0:
            return (yield from tile(int(np.searchsorted(tiles.first, nodes.first[node]))))
        first = int(nodes.first_child[node])
        below = []
        for child in range(first, first + n):
            part = yield from under(child)
            below.append(part)
        level, cell = int(nodes.level[node]), tuple(nodes.cell[node].tolist())
        part = join(Root(level, cell), below, cube, options)
        yield columns(part.tree, part.points, part.classification, cube, options)
        return part.first_node()

    return (yield from under(0))


def join(root: Root, children: Sequence[Part], cube: Cube, options: "Options") -> Part:
    """Make a node from its children.

    Parameters
    ----------
    root : Root
        The node.
    children : sequence of Part
        All of them, in Morton order; of each only the first node.
    cube : Cube
    options : Options
    """
    parts = [vars(child.points).values() for child in children]
    every = Points(*(np.concatenate(each) for each in zip(*parts, strict=True)))
    by_id = np.argsort(every.point_id, kind="stable")
    points = take(every, by_id)
    classification = np.concatenate([child.classification for child in children])[by_id]
    position = np.empty(len(by_id), np.uint32)
    position[by_id] = np.arange(len(by_id), dtype=np.uint32)
    ordered = Sorted(points, cube, root, sort(points, cube, root).key[position], position)
    ends = np.cumsum([len(child.points.x) for child in children])
    nodes = _family(root, children, ends)
    below = Voxels.empty(
        sum(len(child.tree.code) for child in children), options.strategy, np.uint64
    )
    of_all = [child.tree for child in children]
    np.concatenate([tree.code for tree in of_all], out=below.code)
    np.concatenate([tree.colour for tree in of_all], out=below.colour)
    np.concatenate([tree.mass for tree in of_all], out=below.mass)
    np.concatenate(
        [
            position[end - len(child.points.x) : end][child.tree.representative]
            for end, child in zip(ends, children, strict=True)
        ],
        out=below.representative,
    )
    if options.strategy == "average":
        np.concatenate([tree.sums for tree in of_all], out=below.sums[:, :4])
    elif options.strategy == "random":
        each = np.arange(len(below.key), dtype=np.uint32)
        draw_points(
            each, below.representative, 0, len(each), points.point_id, options.seed, below.key
        )
    here = Filler(ordered, nodes, options).fill_first(below, [len(tree.code) for tree in of_all])
    tree = replace(
        leaf(root, 0),
        children=nodes.children[:1],
        points=np.array([sum(int(tree.points[0]) for tree in of_all)]),
        voxel_first=np.array([0, len(here.code)]),
        code=here.code,
        colour=here.colour,
        mass=here.mass,
        representative=here.representative,
        sums=here.colour_sums(options.strategy),
    )
    return Part(tree, points, classification)


def _family(root: Root, children: Sequence[Part], ends: Any) -> Nodes:
    """List a node and its children, whose points end there in those of all."""
    n = len(children)
    cell = np.array([root.cell, *(child.tree.root.cell for child in children)], np.uint64)
    numbers = (cell[1:] & np.uint64(1)) @ np.array([4, 2, 1], np.uint64)
    return Nodes(
        level=np.array([root.level] + n * [root.level + 1], np.int32),
        cell=cell,
        parent=np.array([-1] + n * [0], np.int32),
        first_child=np.array([1] + n * [-1], np.int32),
        children=np.array(
            [np.bitwise_or.reduce(1 << numbers), *(child.tree.children[0] for child in children)],
            np.uint8,
        ),
        first=np.array([0, 0, *ends[:-1]]),
        points=np.array([ends[-1], *np.diff(ends, prepend=0)]),
        level_first=[0, 1, 1 + n],
    )


def leaf(root: Root, n: int) -> Tree:
    """Make the tree of a single leaf with n points."""
    return Tree(
        level=np.array([root.level], np.int32),
        cell=np.array([root.cell], np.uint64),
        parent=np.array([-1], np.int32),
        first_child=np.array([-1], np.int32),
        children=np.zeros(1, np.uint8),
        first=np.zeros(1, np.int64),
        points=np.array([n]),
        order=np.arange(n, dtype=np.uint32),
        voxel_first=np.zeros(2, np.int64),
        code=np.empty(0, np.uint32),
        colour=np.empty((0, 4), np.uint16),
        mass=np.empty(0, np.uint32),
        representative=np.empty(0, np.uint32),
        sums=np.empty((0, 4), np.uint64),
    )


def take(points: Points, position: Any) -> Points:
    """Copy some of the points."""
    return Points(*(each[position] for each in vars(points).values()))
