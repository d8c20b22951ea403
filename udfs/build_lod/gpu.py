"""`build_lod` on the GPU: the tree is built and samples are collected there."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spatialq.data.points import in_one_memory
from spatialq.data.strays import ends_of
from spatialq.runtime import cuda, progress

from . import Options, tiles
from .attributes import with_attributes
from .cost import BYTES_GRID, BYTES_SAMPLE, TILE, bytes_device, bytes_kept
from .samples_gpu import AT_ONCE, colours, columns
from .split_gpu import MAX_POINTS, Records, bounds, split
from .table import no_rows
from .tiles_gpu import grow
from .tree import Cube, Points, Root, Tree
from .validation import Cloud, cube_around, reject, validate
from .voxels_gpu import voxels

SHARE_OF_FREE = 0.9
"""Part of the free memory that is used: free memory may be fragmented."""


def run(
    x: Any,
    y: Any,
    z: Any,
    point_id: Any,
    red: Any,
    green: Any,
    blue: Any,
    intensity: Any,
    classification: Any,
    options: Options,
    **attributes: Any,
) -> dict[str, Any]:
    """Build the octree of a cloud and give it as a table, tile by tile if it is large.

    Parameters
    ----------
    x, y, z : float64[n]
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n] or None
        Unique; in the same memory as the coordinates; None for 0, 1, 2 ...
    red, green, blue, intensity : uint16[n] or None
        In main memory or on the GPU; masked or None where there is no value.
    classification : uint8[n] or None
    options : Options
    **attributes : array[n] or None
        As for `cpu.run`, in main memory or on the GPU.

    Returns
    -------
    dict of columns
        As from `cpu.run`, in main memory. `build` leaves its result on the GPU.

    Raises
    ------
    ValueError
        As from `cpu.run`.
    MemoryError
        As from `build`.
    """
    device = cuda.device()
    with device.use():
        in_one_memory(device, options.function, (x, y, z, point_id))
        given = x, y, z, point_id, red, green, blue, intensity, classification
        progress.stage("points", 0.1)
        nodes = _of_gpu(device, given, options)
        if nodes is None:
            given = tuple(_brought(device, each) for each in given)
            if not given[0].size:
                return with_attributes(no_rows(), None, attributes)
            nodes = _from_host(device, validate(*given), options)
        more = {name: _brought(device, each) for name, each in attributes.items()}
        return with_attributes(nodes, _brought(device, point_id), more)


def _brought(device: cuda.Device, array: Any) -> Any:
    """Give an array in main memory; None stays None."""
    return device.download(device.view(array)) if device.is_here(array) else array


def _of_gpu(device: cuda.Device, given: Sequence[Any], options: Options) -> dict[str, Any] | None:
    """Give the table of points that are on the device, without ids, with all their attributes.

    None of others, and of those that are too many or not good: `validation.validate` takes points
    to order in main memory, or says what is wrong.
    """
    xyz, point_id, attributes = given[:3], given[3], given[4:]
    n = xyz[0].shape[0]
    if point_id is not None or not options.max_points < n <= MAX_POINTS:
        return None
    if not all(device.is_here(each) for each in (*xyz, *attributes) if each is not None):
        return None
    x, y, z, *channels, classes = [
        None if each is None else device.xp.ascontiguousarray(device.view(each))
        for each in (*xyz, *attributes)
    ]
    budget = capacity(options)
    if n > budget:
        budget = capacity(options, n * bytes_kept(options) + AT_ONCE * BYTES_SAMPLE)
    if budget < min(n, max(TILE, options.max_points)):
        return None
    low, high = ends_of((x, y, z))
    if not np.isfinite([low, high]).all():
        return None
    if classes is None:
        classes = device.filled(0, n)
    points = Points(x, y, z, colours(device, channels, n), None)
    return _grown(device, Cloud(points, classes, cube_around(low, high)), options, budget)


def _from_host(device: cuda.Device, cloud: Cloud, options: Options) -> dict[str, Any]:
    """Give the table of points in main memory, tile by tile if they are many."""
    n, budget = len(cloud.points.x), capacity(options)
    if not options.max_points < n <= budget:
        progress.stage("octree", 1.0)
        return tiles.run(cloud, options, build_and_bring, budget)
    *arrays, classes = device.upload([*vars(cloud.points).values(), cloud.classification])
    nodes = _grown(device, Cloud(Points(*arrays), classes, cloud.cube), options, budget)
    assert nodes is not None  # it is not divided
    return nodes


def _grown(
    device: cuda.Device, cloud: Cloud, options: Options, budget: int
) -> dict[str, Any] | None:
    """Build the octree of points on the device, and collect its samples there."""

    def in_order(*given: Any) -> Tree:
        tree = build(*given)
        return replace(tree, order=ascending(tree))

    progress.stage("octree", 0.4)
    forest = grow(device, cloud, options, budget, in_order)
    if forest is None:
        return None
    progress.stage("samples", 1.0)
    return columns(device, forest, cloud, options)


def capacity(options: Options, kept: int = 0) -> int:
    """Estimate how many points fit into the free memory of the GPU, beside some bytes."""
    free = int(cuda.device().free_bytes() * SHARE_OF_FREE) - BYTES_GRID - kept
    return min(max(free // bytes_device(options), 1), MAX_POINTS)


def build_and_bring(points: Any, cube: Cube, options: Options, root: Root | None = None) -> Tree:
    """Build the octree of a cloud and copy it to main memory; the same tree as from `cpu.build`."""
    device = cuda.device()
    with device.use():
        tree = build(points, cube, options, root)
        found = {name: device.download(values) for name, values in vars(tree).items()}
        found["order"] = device.download(ascending(tree))
        return Tree(**found)


def build(
    points: Any,
    cube: Cube,
    options: Options,
    root: Root | None = None,
    *,
    representatives: bool = True,
) -> Tree:
    """Build the octree of a cloud and leave it on the GPU.

    Parameters
    ----------
    points : Points or array[n, 4] of 32 bits
        At least one point, all in the root cell: `Points` in main memory or on the GPU, or, on the
        GPU, packed points of 16 bytes: float32 x, y, z, then the bytes red, green, blue and one
        that is ignored. The ids of packed points are their positions.
    cube : Cube
        As from `around`.
    options : Options
    root : Root, optional
        The cell to begin with; by default the whole cube.
    representatives : bool
        Whether 'average' and 'weighted' find the first point of each voxel; 'first' and 'random'
        always do.

    Returns
    -------
    Tree
        Arrays of the GPU. The `order` of the points within a leaf is not defined, see `ascending`.
        With packed points `colour` is uint32[voxels] in their format, with 255 as the highest byte,
        and `sums` has three channels. `representative` is None if it was not asked for.

    Raises
    ------
    MemoryError
        If the points, or the cells into which they are split, do not fit into the GPU's memory or
        exceed the limits of the kernel.

    Notes
    -----
    `split` and `voxels` state how much memory they need.
    """
    device = cuda.device()
    with device.use():
        cloud, point_id = _bring(device, points, options)
        found = split(device, cloud, cube, options, root)
        filled = voxels(
            device, cloud, found, cube, options, point_id, representatives=representatives
        )
        return Tree(
            **found.nodes.arrays,
            order=found.order,
            **vars(filled) | {"voxel_first": device.upload_small(filled.voxel_first)},
        )


def around(points: Any) -> Cube:
    """Make the cube around packed points.

    Parameters
    ----------
    points : array[n, 4] of 32 bits
        Packed points on the GPU, see `build`; at least one.

    Raises
    ------
    ValueError
        If a coordinate is not finite.
    """
    device = cuda.device()
    with device.use():
        cube = bounds(device, _packed(device, points))
        if cube is None:
            reject("x, y and z must be finite, got packed points with NaN or infinity")
        return cube


def ascending(tree: Tree) -> Any:
    """Sort the order of the points within each leaf, as the CPU gives it.

    Parameters
    ----------
    tree : Tree
        On the GPU.

    Returns
    -------
    uint32[n]
        On the GPU.

    Notes
    -----
    Takes about 50 bytes per point while it runs.
    """
    xp = cuda.device().xp
    leaves = xp.sort(tree.first[tree.children == 0])
    leaf = xp.searchsorted(leaves, xp.arange(len(tree.order)), side="right").astype(np.uint64)
    keys = xp.sort(leaf << np.uint64(32) | tree.order)
    return (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def _bring(device: cuda.Device, points: Any, options: Options) -> tuple[Records, Any]:
    """Copy points to the device, with their ids if 'random' needs them."""
    if not isinstance(points, Points):
        return _packed(device, points), None
    given = [points.x, points.y, points.z, points.colour]
    if options.strategy == "random" and points.point_id is not None:
        given.append(points.point_id)
    if device.is_here(points.x):
        there = [device.xp.ascontiguousarray(device.view(each)) for each in given]
    else:
        there = device.upload([np.ascontiguousarray(each) for each in given])
    return Records.columns(*there[:4]), there[4] if len(there) > 4 else None


def _packed(device: cuda.Device, points: Any) -> Records:
    return Records.packed(device.xp.ascontiguousarray(device.view(points)))
