"""`build_lod` on the CPU: Numba, several threads."""

from typing import Any

import numpy as np

from spatialq.data.points import read_only
from spatialq.runtime import buffers, progress
from spatialq.runtime.arrays import Bytes, Floats, Ints, Uint16s
from spatialq.runtime.threads import FEW_POINTS, in_threads

from . import Options
from .attributes import with_attributes
from .nodes import build_nodes
from .places import keys
from .split import Sorted, split
from .table import columns, no_rows
from .tree import Cube, Points, Root, Tree, leaf
from .validation import validate
from .voxels import Filler


def run(
    x: Floats,
    y: Floats,
    z: Floats,
    point_id: Ints | None,
    red: Uint16s | None,
    green: Uint16s | None,
    blue: Uint16s | None,
    intensity: Uint16s | None,
    classification: Bytes | None,
    options: Options,
    **attributes: Any,
) -> dict[str, Any]:
    """Build the octree of a cloud and give it as a table.

    Parameters
    ----------
    x, y, z : float64[n]
    point_id : int64[n] or None
        Unique; None for 0, 1, 2 ...
    red, green, blue, intensity : uint16[n] or None
        Masked or None where there is no value.
    classification : uint8[n] or None
    options : Options
    **attributes : array[n] or None
        More columns that samples shall have, of numbers; masked or None where there is no value.

    Returns
    -------
    dict of columns
        One row per node, with the columns of the declaration; no row for an empty cloud.

    Raises
    ------
    ValueError
        As from `validation.validate`.
    """
    if not x.size:
        return with_attributes(no_rows(), point_id, attributes)
    progress.stage("points", 0.1)
    cloud = validate(x, y, z, point_id, red, green, blue, intensity, classification)
    progress.stage("octree", 0.8)
    with progress.nested():
        tree = build(cloud.points, cloud.cube, options)
    progress.stage("samples", 1.0)
    nodes = columns(tree, cloud.points, cloud.classification, cloud.cube, options)
    return with_attributes(nodes, point_id, attributes)


def build(points: Points, cube: Cube, options: Options, root: Root | None = None) -> Tree:
    """Build the octree of a cloud.

    Parameters
    ----------
    points : Points
        At least one and fewer than 2**32, all in the root cell.
    cube : Cube
    options : Options
    root : Root, optional
        The cell to begin with; by default the whole cube.

    Returns
    -------
    Tree
        Its arrays are NumPy arrays.
    """
    root = Root() if root is None else root
    if len(points.x) <= options.max_points:
        return leaf(root, len(points.x), np.arange(len(points.x), dtype=np.uint32))
    points = Points(*map(read_only, vars(points).values()))
    progress.stage("places of points", 0.1)
    ordered = sort(points, cube, root)
    progress.stage("leaves", 0.4)
    nodes = build_nodes(split(ordered, options.max_points), root.level)
    progress.stage("voxels", 1.0)
    filler = Filler(ordered, nodes, options)
    levels = filler.fill()
    of_all = {
        name: buffers.concatenate([getattr(level, name) for level in levels])
        for name in ("code", "colour", "mass", "representative")
    }
    return Tree(
        **nodes.arrays,
        order=ordered.order,
        voxel_first=np.cumsum([0, *filler.count]),
        **of_all,
        sums=levels[0].colour_sums(options.strategy),
    )


def sort(points: Points, cube: Cube, root: Root) -> Sorted:
    """Compute the keys of the points; their order stays as it is."""
    n = len(points.x)
    key, order = buffers.empty(n, np.int64), buffers.scratch(n, np.uint32)

    def write(span: tuple[int, int]) -> None:
        xyz = points.x, points.y, points.z
        keys(*xyz, cube.x0, cube.y0, cube.z0, cube.size, root.level, key, *span)
        order[slice(*span)] = np.arange(*span, dtype=np.uint32)

    in_threads(write, n, worth=FEW_POINTS)
    return Sorted(points, cube, root, key, order)
