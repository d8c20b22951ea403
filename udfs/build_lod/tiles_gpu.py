"""Clouds on the GPU whose tree does not fit beside them as a whole: it is built tile by tile."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from spatialq.runtime import cuda, progress

from . import Options, chunks, cpu
from .chunks import Counts, Step
from .samples_gpu import OF_VOXELS, Forest, arrays_of, nodes_on_host, over, take
from .split import Leaves
from .tiles import Part, Rows, Tiler
from .tree import Points, Root, Tree, leaf
from .validation import Cloud

DEPTH = 7
"""Levels down to which cells are tiles."""


class _Trees(Tiler):
    """Gives nodes above tiles as they are, not as rows."""

    def _rows(self, part: Part) -> dict[str, Any]:
        return {"part": part}


def divide(device: cuda.Device, cloud: Cloud, budget: int) -> tuple[Leaves, Any] | None:
    """Divide a cloud into the coarsest cells of the cube that have few enough points.

    Parameters
    ----------
    device : Device
    cloud : Cloud
        On the device; `point_id` is None where ids are positions.
    budget : int
        Points of a tile.

    Returns
    -------
    tiles : Leaves
    position : uint32[n]
        On the device: of the points of each tile, ascending, tile after tile.
    None
        If a cell `DEPTH` levels below the cube has too many.
    """
    n, empty = len(cloud.points.x), device.xp.empty
    code, counts = empty(n, np.uint32), device.filled(0, 4 << 3 * DEPTH).view(np.uint32)
    corner = map(np.float64, vars(cloud.cube).values())
    over(device, "lod_cells", n, *arrays_of(cloud)[:3], *corner, DEPTH, n, code, counts)
    points = device.download(counts).astype(np.int64)
    key = np.flatnonzero(points)
    step = Step(0, DEPTH, np.empty(0, np.int64))
    divided = chunks.divide(Counts(key, points[key]), step, np.zeros((1, 3), np.int64), budget)
    if divided.full.size:
        return None
    tiles = chunks.in_order([divided])
    first_cell = np.searchsorted(np.cumsum(points), tiles.first, "right")
    tile = np.searchsorted(first_cell, np.arange(len(points)), "right") - 1
    keys = empty(n, np.uint64)
    (there,) = device.upload([np.maximum(tile, 0).astype(np.uint32)])
    over(device, "lod_tile_keys", n, code, there, n, keys)
    keys = device.xp.sort(keys)
    over(device, "lod_positions", n, keys, n, code)
    return tiles, code


def grow(
    device: cuda.Device, cloud: Cloud, options: Options, budget: int,
    build: Callable[..., Tree],
) -> Forest | None:  # fmt: skip
    """Build the tree of a cloud, tile by tile if it has more points than the budget.

    Parameters
    ----------
    device : Device
    cloud : Cloud
        On the device; `point_id` is None where ids are positions.
    options : Options
    budget : int
        Points that `build` accepts at once, more than a leaf may have.
    build : callable
        As `gpu.build`, with the points of each leaf ascending.

    Returns
    -------
    Forest or None
        None if the cloud has to be divided, and cannot be.
    """
    n = len(cloud.points.x)
    forest = Forest(device, n)
    if n <= budget:
        forest.add(nodes_on_host(device, build(cloud.points, cloud.cube, options)), 0)
        return forest
    divided = divide(device, cloud, budget)
    if divided is None:
        return None
    tiles, position = divided

    def tile(k: int) -> Rows:
        first, m, root = int(tiles.first[k]), int(tiles.points[k]), tiles.root(k)
        inside = position[first : first + m]
        yield from ()  # rows are made of all trees together
        progress.report(first, n)
        device.trim()
        if m <= options.max_points:
            forest.add(_with_voxels(device, replace(leaf(root, m, None), order=inside)), first)
            return _points_of(device, cloud, root, inside)
        ids = inside.astype(np.int64) if options.strategy == "random" else None
        points = replace(take(device, cloud, inside).points, point_id=ids)
        with progress.nested():
            tree = nodes_on_host(device, build(points, cloud.cube, options, root))
        del points
        for each in (tree.order, tree.representative):
            over(device, "lod_of_cloud", len(each), inside, len(each), each)
        forest.add(tree, first)
        if tree.children[0] == 0:  # all points have one position
            return _points_of(device, cloud, root, inside)
        return _first_node(device, cloud, tree)

    trees = _Trees(cloud.cube, options, cpu.build, budget)
    for found in trees.of_tiles(tiles, Root(), tile):
        tree, points = found["part"].tree, found["part"].points
        ids = points.point_id[tree.representative].astype(np.uint32)
        forest.add(_with_voxels(device, replace(tree, representative=ids, order=None)), 0)
    return forest


def _with_voxels(device: cuda.Device, tree: Tree) -> Tree:
    """Copy the voxels of a tree to the device."""
    there = device.upload([getattr(tree, name) for name in OF_VOXELS])
    return replace(tree, **dict(zip(OF_VOXELS, there, strict=True)))


def _points_of(device: cuda.Device, cloud: Cloud, root: Root, inside: Any) -> Part:
    """Give a leaf and its points, in main memory."""
    m = len(inside)
    return _part(device, cloud, leaf(root, m, np.arange(m, dtype=np.uint32)), inside)


def _first_node(device: cuda.Device, cloud: Cloud, tree: Tree) -> Part:
    """Give the first node of a tree and the points that represent its voxels, in main memory."""
    n = int(tree.voxel_first[1])
    of_voxels = {name: device.download(getattr(tree, name)[:n]) for name in (*OF_VOXELS, "mass")}
    kept, representative = np.unique(of_voxels["representative"], return_inverse=True)
    of_voxels["representative"] = representative.astype(np.uint32)
    node = replace(
        leaf(tree.root, int(tree.points[0]), np.empty(0, np.uint32)),
        children=tree.children[:1],
        voxel_first=np.array([0, n]),
        sums=device.download(tree.sums),
        **of_voxels,
    )
    return _part(device, cloud, node, device.upload([kept])[0])


def _part(device: cuda.Device, cloud: Cloud, tree: Tree, position: Any) -> Part:
    """Give a node and points at some positions, which are their ids, in main memory."""
    there = arrays_of(take(device, cloud, position))
    x, y, z, colour, classes = (device.download(each) for each in there)
    ids = device.download(position).astype(np.int64)
    return Part(tree, Points(x, y, z, colour, ids), classes)
