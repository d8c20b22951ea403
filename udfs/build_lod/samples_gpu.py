"""The table of a tree whose points are on the GPU: its samples are collected there; samples.cu."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.columns import NUMPY_TYPES
from spatialq.runtime import buffers, cuda, progress

from . import CHANNELS, SAMPLE, Options
from .colours import MID_GREY
from .table import Places, level_order, of_nodes
from .tree import Points, Tree
from .validation import Cloud

SOURCE = Path(__file__).parent / "samples.cu"
THREADS = 256
BLOCKS = 32  # per multiprocessor
AT_ONCE = 1 << 26
"""Samples that are collected before they are copied to main memory: 2.6 GiB."""
OF_NODES = ("level", "cell", "parent", "children", "first", "points", "voxel_first")
"""What the table needs of the nodes of a tree, in main memory."""
OF_VOXELS = ("code", "colour", "representative")
"""What it needs of voxels, on the device."""


class Forest:
    """Trees of parts of a cloud, which together are its tree.

    Parameters
    ----------
    device : Device
    n : int
        Points of the cloud.
    """

    def __init__(self, device: cuda.Device, n: int) -> None:
        self.device = device
        self.order = device.xp.empty(n, np.uint32)
        self.trees: list[Tree] = []

    def add(self, tree: Tree, first: int) -> None:
        """Add a tree.

        Parameters
        ----------
        tree : Tree
            `OF_NODES` in main memory, `OF_VOXELS` on the device. Positions are those in the cloud,
            ascending in each leaf; `order` is on the device, or None of a node above leaves.
        first : int
            Where its points are in the order of all leaves.
        """
        if tree.order is not None:
            self.order[first : first + len(tree.order)] = tree.order
        kept = replace(tree, order=None, mass=None, sums=None, first=tree.first + first)
        self.trees.append(kept)

    def tree(self) -> Tree:
        """Give the tree of all points; `first` says of an inner node where its voxels begin.

        The trees are gone then.
        """
        trees, self.trees = self.trees, []
        ranked, parent = level_order([name for tree in trees for name in tree.names()])
        level, cell, children, points, first = (
            np.concatenate([getattr(tree, name) for tree in trees])[ranked]
            for name in ("level", "cell", "children", "points", "first")
        )
        before = np.cumsum([0, *(len(tree.code) for tree in trees)])
        begin, count = (
            np.concatenate(each)[ranked]
            for each in (
                [tree.voxel_first[:-1] + k for tree, k in zip(trees, before[:-1], strict=True)],
                [np.diff(tree.voxel_first) for tree in trees],
            )
        )
        voxels = {}
        for name in OF_VOXELS:  # one after the other, so that only one is there twice
            voxels[name] = self._joined([getattr(tree, name) for tree in trees])
            trees = [replace(tree, **{name: None}) for tree in trees]
        return Tree(
            level=level,
            cell=cell,
            parent=parent,
            first_child=None,
            children=children,
            first=np.where(children == 0, first, begin),
            points=points,
            order=self.order,
            voxel_first=np.cumsum([0, *count]),
            **voxels,
            mass=None,
            sums=None,
        )

    def _joined(self, arrays: Sequence[Any]) -> Any:
        """Concatenate arrays; CuPy's function would compile a kernel."""
        if len(arrays) == 1:
            return arrays[0]
        shape = sum(map(len, arrays)), *arrays[0].shape[1:]
        result, end = self.device.xp.empty(shape, arrays[0].dtype), 0
        for each in arrays:
            result[end : end + len(each)] = each
            end += len(each)
        return result


def nodes_on_host(device: cuda.Device, tree: Tree) -> Tree:
    """Copy `OF_NODES` of a tree to main memory."""
    return replace(tree, **{name: device.download(getattr(tree, name)) for name in OF_NODES})


def arrays_of(cloud: Cloud) -> tuple[Any, ...]:
    """Give what kernels read of the points of a cloud: x, y, z, colour and class."""
    points = cloud.points
    return points.x, points.y, points.z, points.colour, cloud.classification


def take(device: cuda.Device, cloud: Cloud, position: Any) -> Cloud:
    """Copy the points at some positions (uint32[m] of the device), without their ids."""
    m, empty = len(position), device.xp.empty
    colour = empty((m, len(CHANNELS)), np.uint16)
    x, y, z = (empty(m, np.float64) for _ in "xyz")
    classes = empty(m, np.uint8)
    over(device, "lod_points", m, position, m, *arrays_of(cloud), x, y, z, colour, classes)
    return Cloud(Points(x, y, z, colour, None), classes, cloud.cube)


def colours(device: cuda.Device, channels: Sequence[Any], n: int) -> Any:
    """Combine the colour channels of points as `colours.colours` does: uint16[n, 4] on the device.

    Parameters
    ----------
    device : Device
    channels : four of uint16[n] or None
        Red, green, blue and intensity, on the device.
    n : int
    """
    unused = device.filled(0, 2).view(np.uint16)
    has_colour = all(each is not None for each in channels[:3])
    there = [unused if each is None else each for each in channels]
    result = device.xp.empty((n, len(CHANNELS)), np.uint16)
    flags = int(has_colour), int(channels[3] is not None), MID_GREY
    over(device, "lod_colours", n, *there, *flags, n, result)
    return result


def columns(device: cuda.Device, forest: Forest, cloud: Cloud, options: Options) -> dict[str, Any]:
    """Give the columns of the result, as `table.columns` does, in main memory."""
    tree, ids = forest.tree(), cloud.points.point_id
    places = Places.of(tree, cloud.cube, options)
    n = int(places.offsets[-1])
    of_tree = device.upload(
        [
            places.offsets,
            (tree.children == 0).view(np.uint8),
            tree.first,
            places.low,
            places.spacing,
        ]
    )
    of_points = *arrays_of(cloud), device.filled(0, 8) if ids is None else ids, int(ids is not None)
    kinds = {name: NUMPY_TYPES[kind] for name, kind in SAMPLE.items()}
    samples = {name: buffers.empty(n, kind) for name, kind in kinds.items()}
    found = [device.xp.empty(min(n, AT_ONCE), kind) for kind in kinds.values()]
    for begin in range(0, n, AT_ONCE):
        progress.report(begin, n)
        m = min(AT_ONCE, n - begin)
        over(
            device, "lod_samples", m, *of_tree, len(tree.level), tree.order, tree.representative,
            tree.code, tree.colour, *of_points, int(options.full_precision), begin, m, *found,
        )  # fmt: skip
        for values, there in zip(samples.values(), found, strict=True):
            device.download(there[:m], values[begin : begin + m])
    return of_nodes(tree, places, samples)


def over(device: cuda.Device, kernel: str, n: int, *arguments: Any) -> None:
    """Launch a loop over n points or samples."""
    blocks = max(1, min(-(-n // THREADS), BLOCKS * device.multiprocessors))
    device.launch(SOURCE, kernel, (blocks,), THREADS, *arguments)
