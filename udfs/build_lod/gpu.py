"""`build_lod` on the GPU: the tree is built there, the table in main memory."""

from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.runtime import cuda

from . import tiles
from .cost import BYTES_GRID, bytes_device
from .door import enter, refuse
from .split_gpu import MAX_POINTS, Records, bounds, split
from .table import no_rows
from .tree import Cube, Points, Root, Tree
from .voxels_gpu import voxels

if TYPE_CHECKING:
    from . import Options

SHARE = 0.9
"""Of the memory that is free: it may lie in pieces."""


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
    options: "Options",
) -> dict[str, Any]:
    """Build the octree of a cloud and give it as a table, tile by tile if it is large.

    Parameters
    ----------
    x, y, z : float64[n]
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n]
        Unique, where the coordinates are.
    red, green, blue, intensity : uint16[n] or None
        In either memory; masked, or None, where there is no value.
    classification : uint8[n] or None
    options : Options

    Returns
    -------
    dict of columns
        As from `cpu.run`, in main memory; `build` leaves all on the GPU.

    Raises
    ------
    ValueError
        As from `cpu.run`.
    MemoryError
        As from `build`.
    """
    device = cuda.device()
    with device.use():
        cuda.in_one_memory(device, options.FUNCTION, (x, y, z, point_id))
        given = x, y, z, point_id, red, green, blue, intensity, classification
        here = [
            device.download(device.view(each)) if device.is_here(each) else each for each in given
        ]
        if not here[0].size:
            return no_rows()
        return tiles.run(enter(*here), options, build_and_bring, capacity(options))


def capacity(options: "Options") -> int:
    """Estimate how many points the GPU has the memory for."""
    free = int(cuda.device().free_bytes() * SHARE) - BYTES_GRID
    return min(max(free // bytes_device(options), 1), MAX_POINTS)


def build_and_bring(points: Any, cube: Cube, options: "Options", root: Root | None = None) -> Tree:
    """Build the octree of a cloud, and bring it to main memory: what `cpu.build` gives."""
    device = cuda.device()
    with device.use():
        tree = build(points, cube, options, root)
        found = {name: device.download(values) for name, values in vars(tree).items()}
        found["order"] = device.download(ascending(tree))
        return Tree(**found)


def build(
    points: Any,
    cube: Cube,
    options: "Options",
    root: Root | None = None,
    *,
    representatives: bool = True,
) -> Tree:
    """Build the octree of a cloud, and leave it on the GPU.

    Parameters
    ----------
    points : Points or array[n, 4] of 32 bits
        At least one, all in the root cell. Points in main memory or on the GPU; or, on the GPU,
        packed ones of 16 bytes: float32 x, y, z, and bytes red, green, blue and any other. Packed
        points have their positions as ids.
    cube : Cube
        As from `around`.
    options : Options
    root : Root, optional
        The cell to begin with; by default all of the cube.
    representatives : bool
        Whether 'average' and 'weighted' find the lowest point of each voxel; the others do.

    Returns
    -------
    Tree
        Arrays of the GPU. The `order` of the points is open within a leaf, see `ascending`. Of
        packed points the `colour` is uint32[voxels], as theirs, with 255 as its highest byte, and
        `sums` are of three channels.
        `representative` is None where there is none.

    Raises
    ------
    MemoryError
        If the points, or the cells to split them, are too many for the kernel or for the GPU.

    Notes
    -----
    The memory that it takes is stated at `split` and `voxels`.
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
    """Lay the cube around points.

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
            refuse("x, y and z must be finite, got packed points with NaN or infinity")
        return cube


def ascending(tree: Tree) -> Any:
    """Give the order of the points with that of each leaf ascending, as it is on the CPU.

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
    About 50 bytes a point while it runs.
    """
    xp = cuda.device().xp
    leaves = xp.sort(tree.first[tree.children == 0])
    leaf = xp.searchsorted(leaves, xp.arange(len(tree.order)), side="right").astype(np.uint64)
    keys = xp.sort(leaf << np.uint64(32) | tree.order)
    return (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def _bring(device: Any, points: Any, options: "Options") -> tuple[Records, Any]:
    """Bring points to the device, and their ids if they are drawn by these."""
    if not isinstance(points, Points):
        return _packed(device, points), None
    given = [points.x, points.y, points.z, points.colour]
    if options.strategy == "random":
        given.append(points.point_id)
    if device.is_here(points.x):
        there = [device.xp.ascontiguousarray(device.view(each)) for each in given]
    else:
        there = device.upload([np.ascontiguousarray(each) for each in given])
    return Records.columns(*there[:4]), there[4] if len(there) > 4 else None


def _packed(device: Any, points: Any) -> Records:
    return Records.packed(device.xp.ascontiguousarray(device.view(points)))
