"""Clouds larger than memory: tiles of the octree are built separately and joined at the top.

Schütz et al. 2023 leave this to future work. A tile is a cell of the octree, so the tree that is
built from its points in the cube of the whole cloud is the subtree of that cell. The nodes above
are filled from the first nodes of the tiles, whose voxels represent all points of the tile. The
result is equal, bit for bit, to that of one build.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spatialq.runtime import progress
from spatialq.runtime.arrays import Bytes

from . import Options, validation
from .cpu import sort
from .nodes import build_nodes
from .split import Leaves, Sorted, split
from .table import by_level, columns
from .tree import BITS, Cube, Nodes, Points, Root, Tree, leaf
from .voxels import Filler, LevelVoxels, draw_points

Build = Callable[[Points, Cube, "Options", Root], Tree]
"""A function such as `cpu.build`; the arrays of its tree are in main memory."""


@dataclass(frozen=True)
class Part:
    """The tree of some of the points, or only its first node.

    Parameters
    ----------
    tree : Tree
    points : Points
    classification : uint8[n]
    """

    tree: Tree
    points: Points
    classification: Bytes

    def first_node(self) -> "Part":
        """Drop the nodes below the first, and all points except those that represent its voxels."""
        tree, n = self.tree, int(self.tree.voxel_first[1])
        if tree.children[0] == 0:
            return self
        kept, representative = np.unique(tree.representative[:n], return_inverse=True)
        node = replace(  # copies, since a view would keep the whole tile in memory
            leaf(tree.root, int(tree.points[0]), np.empty(0, np.uint32)),
            children=tree.children[:1].copy(),
            voxel_first=np.array([0, n]),
            code=tree.code[:n].copy(),
            colour=tree.colour[:n].copy(),
            mass=tree.mass[:n].copy(),
            representative=representative.astype(np.uint32),
            sums=tree.sums,
        )
        return Part(node, take(self.points, kept), self.classification[kept])

    def arrays(self) -> dict[str, Any]:
        """Give the arrays by names that tell where they belong, as `of_arrays` takes them."""
        tree = {f"tree {name}": values for name, values in vars(self.tree).items()}
        points = {f"points {name}": values for name, values in vars(self.points).items()}
        return {**tree, **points, "classification": self.classification}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any]) -> "Part":
        """Make what `arrays` was called of."""

        def of(kind: str) -> dict[str, Any]:
            prefix = f"{kind} "
            names = [name for name in arrays if name.startswith(prefix)]
            return {name.removeprefix(prefix): arrays[name] for name in names}

        return cls(Tree(**of("tree")), Points(**of("points")), arrays["classification"])


Rows = Generator[dict[str, Any], None, Part]
"""Yields rows of nodes as tables of `table.columns`; returns the first node."""


@dataclass(frozen=True)
class Tiler:
    """Builds the tree of a cloud tile by tile.

    Parameters
    ----------
    cube : Cube
        The cube of the whole cloud.
    options : Options
    build : callable
    budget : int
        Number of points that `build` accepts at once, at least as many as a leaf may have; no tile
        has more than `MAX_POINTS`.
    only_ids : bool
        Whether the samples of rows have their `point_id` alone.
    """

    cube: Cube
    options: Options
    build: Build
    budget: int
    only_ids: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", min(self.budget, validation.MAX_POINTS))

    def of_cloud(self, points: Points, classification: Any, root: Root | None = None) -> Rows:
        """Give the rows of all nodes of a cloud in memory, or of the part of one in a cell."""
        root = Root() if root is None else root
        if len(points.x) <= self.budget:
            return (yield from self.of_tile(root, points, classification))
        ordered = sort(points, self.cube, root)
        tiles, order = split(ordered, self.budget), ordered.order
        del ordered  # frees its keys

        def tile(k: int) -> Rows:
            inside = order[tiles.first[k] : tiles.first[k] + tiles.points[k]]
            return self.of_tile(tiles.root(k), take(points, inside), classification[inside])

        return (yield from self.of_tiles(tiles, root, tile))

    def of_tile(self, root: Root, points: Points, classification: Any) -> Rows:
        """Give the rows of a tile.

        A tile with more points than the budget, or on the last level, is a leaf: all its points
        have one position.
        """
        n = len(points.x)
        if self.options.max_points < n <= self.budget and root.level < BITS:
            with progress.nested():
                tree = self.build(points, self.cube, self.options, root)
        else:
            tree = leaf(root, n, np.arange(n, dtype=np.uint32))
        part = Part(tree, points, classification)
        yield self._rows(part)
        return part.first_node()

    def of_tiles(self, tiles: Leaves, root: Root, tile: Callable[[int], Rows]) -> Rows:
        """Give the rows of all tiles under a node and of the nodes above them.

        The traversal is depth-first: at most the children of one node per level are in memory.

        Parameters
        ----------
        tiles : Leaves
        root : Root
            The node.
        tile : callable
            Gives the rows of the k-th tile.
        """
        nodes = build_nodes(tiles, root.level)

        def under(node: int) -> Rows:
            n = int(nodes.children[node]).bit_count()
            if n == 0:
                return (yield from tile(int(np.searchsorted(tiles.first, nodes.first[node]))))
            first = int(nodes.first_child[node])
            below = []
            for child in range(first, first + n):
                part = yield from under(child)
                below.append(part)
            x, y, z = nodes.cell[node].tolist()
            part = self._join(Root(int(nodes.level[node]), (x, y, z)), below)
            yield self._rows(part)
            return part.first_node()

        return (yield from under(0))

    def _rows(self, part: Part) -> dict[str, Any]:
        given = part.tree, part.points, part.classification, self.cube, self.options
        return columns(*given, only_ids=self.only_ids)

    def _join(self, root: Root, children: Sequence[Part]) -> Part:
        """Build a node from all its children, which are in Morton order."""
        strategy, trees = self.options.strategy, [child.tree for child in children]
        parts = [vars(child.points).values() for child in children]
        points = Points(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        by_id = np.argsort(points.point_id, kind="stable")  # merges runs of ascending ids
        points = take(points, by_id)
        position = np.empty(len(by_id), np.uint32)
        position[by_id] = np.arange(len(by_id), dtype=np.uint32)
        ends = np.cumsum([len(child.points.x) for child in children])

        below = LevelVoxels.empty(sum(len(tree.code) for tree in trees), strategy, np.uint64)
        np.concatenate([tree.code for tree in trees], out=below.code)
        np.concatenate([tree.colour for tree in trees], out=below.colour)
        np.concatenate([tree.mass for tree in trees], out=below.mass)
        positions = np.split(position, ends[:-1])
        chosen = zip(positions, trees, strict=True)
        np.concatenate([of[tree.representative] for of, tree in chosen], out=below.representative)
        if strategy == "average":
            np.concatenate([tree.sums for tree in trees], out=below.sums)
        elif strategy == "random":
            each, seed = np.arange(len(below.key), dtype=np.uint32), self.options.seed
            these = below.representative, 0, len(each)
            draw_points(each, *these, points.point_id, seed, below.key)

        key = sort(points, self.cube, root).key[position]
        nodes = _family(root, children, ends)
        filler = Filler(Sorted(points, self.cube, root, key, position), nodes, self.options)
        here = filler.fill_first(below, [len(tree.code) for tree in trees])
        tree = replace(
            leaf(root, sum(int(tree.points[0]) for tree in trees), np.empty(0, np.uint32)),
            children=nodes.children[:1],
            voxel_first=np.array([0, len(here.code)]),
            code=here.code,
            colour=here.colour,
            mass=here.mass,
            representative=here.representative,
            sums=here.colour_sums(strategy),
        )
        return Part(tree, points, np.concatenate([c.classification for c in children])[by_id])


def run(cloud: validation.Cloud, options: Options, build: Build, budget: int) -> dict[str, Any]:
    """Build the octree of a cloud tile by tile and return it as a table.

    Parameters
    ----------
    cloud : Cloud
        In main memory.
    options : Options
    build : callable
        A function such as `cpu.build`; the arrays of its tree are in main memory.
    budget : int
        Number of points that `build` accepts at once; it must accept as many as a leaf may have.

    Returns
    -------
    dict of columns
        As from `table.columns`.
    """
    tiler = Tiler(cloud.cube, options, build, max(budget, options.max_points))
    return by_level(list(tiler.of_cloud(cloud.points, cloud.classification)))


def all_of(rows: Rows) -> tuple[list[dict[str, Any]], Part]:
    """Take all rows; give them and what the generator returns."""
    tables = []
    while True:
        try:
            tables.append(next(rows))
        except StopIteration as end:
            return tables, end.value


def take(points: Points, position: Any) -> Points:
    """Copy some of the points."""
    return Points(*(each[position] for each in vars(points).values()))


def _family(root: Root, children: Sequence[Part], ends: Any) -> Nodes:
    """List a node and its children; `ends` says where the points of each child end."""
    n = len(children)
    cell = np.array([root.cell, *(child.tree.root.cell for child in children)], np.uint64)
    numbers = (cell[1:] & np.uint64(1)) @ np.array([4, 2, 1], np.uint64)
    masks = [np.bitwise_or.reduce(1 << numbers), *(child.tree.children[0] for child in children)]
    return Nodes(
        level=np.array([root.level] + n * [root.level + 1], np.int32),
        cell=cell,
        parent=np.array([-1] + n * [0], np.int32),
        first_child=np.array([1] + n * [-1], np.int32),
        children=np.array(masks, np.uint8),
        first=np.array([0, 0, *ends[:-1]]),
        points=np.array([ends[-1], *np.diff(ends, prepend=0)]),
        level_first=[0, 1, 1 + n],
    )
