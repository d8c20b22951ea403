"""Rasters in planes: where a plane has points, and which connected surfaces are kept."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .assign import EDGE
from .boundary import Rings
from .cells import BITS, GRID, MAX_GRID
from .pixels import find_blocks, near_cells, sort_by_cell

if TYPE_CHECKING:
    from numpy.typing import NDArray

PIXEL = 3.0
"""Side of a pixel in point spacings: nine points on average, so that few pixels are empty."""

FINE = 16
"""Maximum number of pixels along the side of a node: duplicate points make spacings too small."""

SPARSE = 0.1
"""Share of a plane's nodes that may be sparser than the density for which its pixels are made."""

MAX_PIXELS = 1 << 19
"""Approximate number of pixels of all rasters together."""

PAIRS = 1 << 16
"""Pairs of a cell and a plane near it for which there is space at first."""


@dataclass(frozen=True)
class Near:
    """The planes near each cell: those that cross it and have a node in or beside it."""

    grid: int
    """Level of the cells; they are numbered x before y before z."""
    cell_starts: "NDArray[np.int32]"
    """int32[8^grid + 1]: start of the planes of each cell in `items`."""
    items: "NDArray[np.int32]"
    cells: "NDArray[np.int64]"
    """int64[n]: cells of pairs of a cell and a plane near it."""
    planes: "NDArray[np.int32]"
    """int32[n]: planes of these pairs."""
    plain: "NDArray[np.uint8]"
    """uint8[8^grid]: whether one node of a plane contains the whole cell."""


@dataclass(frozen=True)
class Rasters:
    """One raster per plane; lengths are in steps."""

    frames: "NDArray[np.float64]"
    starts: "NDArray[np.int64]"
    """See `assign.nearest`."""
    shapes: "NDArray[np.int64]"
    """int64[planes, 2]: rows, columns."""

    @property
    def n_pixels(self) -> int:
        """Number of pixels of all rasters."""
        return int((self.shapes[:, 0] * self.shapes[:, 1]).sum())

    def extents(self) -> "NDArray[np.int64]":
        """First pixel, rows and columns of each raster: int64[planes, 3]."""
        return np.column_stack([self.starts[:, 0], self.shapes])

    def place(self, plane: Any, at: Any) -> Any:
        """Convert positions in the rasters of planes, float64[n, 2], to steps: float64[n, 3]."""
        frame = self.frames[plane]
        u, v = (at / frame[:, 8:] + frame[:, 6:8]).T
        return u[:, None] * frame[:, :3] + v[:, None] * frame[:, 3:6]


@dataclass(frozen=True)
class Surfaces:
    """The surfaces to which the pixels of rasters belong."""

    plane: "NDArray[np.int64]"
    """int64[surfaces]: plane of each surface."""
    parts: "NDArray[np.int64]"
    """int64[parts]: surface of each connected part, in the order of the parts' first pixels."""
    labels: Any
    """int32[pixels], on the device of the cloud: see `assign.nearest`; surfaces count from 1."""

    def outlines(self, cloud: Any, rasters: Rasters) -> Rings:
        """Trace the outlines of the surfaces."""
        covered = cloud.download(self.labels != 0).view(np.uint8)
        return Rings.traced(covered, rasters.extents(), self.parts)

    def beneath(self, cloud: Any, rasters: Rasters, nodes: Any, owner: Any) -> Any:
        """Give the surface at the mean of each node, from 1 on, or 0: int32[nodes]."""
        mine = np.flatnonzero(owner >= 0)
        plane, frame = owner[mine], rasters.frames[owner[mine]]
        at = (nodes.mean[mine] + 1) * float(1 << (BITS - 1))
        u = ((frame[:, :3] * at).sum(1) - frame[:, 6]) * frame[:, 8]
        v = ((frame[:, 3:6] * at).sum(1) - frame[:, 7]) * frame[:, 8]
        starts = rasters.starts[plane]
        pixel = starts[:, 0] + v.astype(np.int64) * starts[:, 1] + u.astype(np.int64)
        surface = np.zeros(owner.size, np.int32)
        surface[mine] = cloud.download(self.labels[cloud.xp.asarray(pixel)]) & (EDGE - 1)
        return surface


def lay_surfaces(
    cloud: Any, rasters: Rasters, covered: Any, counts: Any, min_points: Any, *, split: bool,
    edges: bool,
) -> Surfaces:  # fmt: skip
    """Find the surfaces of planes.

    Parameters
    ----------
    cloud
        Has the loops over pixels.
    rasters : Rasters
    covered : uint8[pixels]
        Whether a pixel has points.
    counts : int64[planes]
        Points near each plane.
    min_points : float64[planes]
        Minimum number of points of a part of a plane, estimated from its pixels.
    split : bool
        Whether each part is a separate surface.
    edges : bool
        Whether pixels at edges are marked, of whose points the farthest are then looked for.
    """
    parts, plane, sizes = cloud.connect(rasters, covered)
    totals = np.bincount(plane, sizes, len(counts))
    large = np.flatnonzero(sizes * counts[plane] >= min_points[plane] * totals[plane])
    if split:
        planes, number = plane[large], np.arange(large.size)
    else:
        planes, number = np.unique(plane[large], return_inverse=True)
    numbers = np.zeros(plane.size, np.int32)
    numbers[large] = number + 1
    return Surfaces(planes, number, cloud.paint(rasters, parts, numbers, edges=edges))


def near_planes(nodes: Any, owner: Any, planes: Any) -> Near:
    """Find the planes near each cell.

    Parameters
    ----------
    nodes : PlanarNodes
        In main memory.
    owner : int32[nodes]
        Plane of each node, if >= 0.
    planes : float64[planes, 5]
        Normal, offset, maximum distance, in steps.
    """
    grid = min(max(nodes.s_level, GRID), MAX_GRID)
    mine = np.flatnonzero(owner >= 0)
    order = mine[_by_plane(owner[mine], len(planes))]
    n_cells = 1 << 3 * grid
    first, plain = np.empty((order.size, 3), np.int64), np.zeros(n_cells, np.uint8)
    level = nodes.level[order].astype(np.int64)
    find_blocks(level, nodes.code[order], grid, first, plain)
    wide = 1 << np.maximum(grid - level, 0)
    n, size = PAIRS, 0
    while n > size:  # the second time they fit
        size = n
        cells, of_plane = np.empty(size, np.int64), np.empty(size, np.int32)
        stamp = np.full(n_cells, -1, np.int32)
        n = near_cells(owner[order], first, wide, planes, grid, stamp, cells, of_plane)
    cells, of_plane = cells[:n], of_plane[:n]
    cell_starts, items = np.zeros(n_cells + 1, np.int32), np.empty(cells.size, np.int32)
    sort_by_cell(cells, of_plane, cell_starts, items)
    return Near(grid, cell_starts, items, cells, of_plane, plain)


def lay_rasters(nodes: Any, owner: Any, planes: Any, near: Near) -> Rasters:
    """Make the rasters of planes, see `near_planes`."""
    grid, of_plane = near.grid, near.planes
    cell = 1 << (BITS - grid)
    axes = _axes(planes[:, :3])
    sides = _pixel_sides(nodes, owner, planes.shape[0])
    along = [near.cells >> turn * grid & (1 << grid) - 1 for turn in (2, 1, 0)]
    centres = (np.column_stack(along) + 0.5) * cell
    lows_uv, highs_uv = np.empty((planes.shape[0], 2)), np.empty((planes.shape[0], 2))
    for axis in range(2):
        e = axes[of_plane, axis]
        at = (e * centres).sum(1)
        reach = np.abs(e).sum(1) * cell / 2
        for k, (bound, ends) in enumerate(((lows_uv, at - reach), (highs_uv, at + reach))):
            bound[:, axis] = np.inf if k == 0 else -np.inf
            (np.minimum, np.maximum)[k].at(bound[:, axis], of_plane, ends)
    total = ((highs_uv - lows_uv) / sides[:, None] + 3).prod(1).sum()
    sides = sides * max(1.0, np.sqrt(total / MAX_PIXELS))
    # a margin of half a pixel all around, and one more pixel without points
    shapes = np.ceil((highs_uv - lows_uv) / sides[:, None]).astype(np.int64) + 3
    frames = np.column_stack([axes[:, 0], axes[:, 1], lows_uv - 1.5 * sides[:, None], 1 / sides])
    columns, rows = shapes.T
    firsts = np.concatenate([[0], np.cumsum(rows * columns)])[:-1]
    starts = np.column_stack([firsts, columns, np.maximum(rows, columns)])
    return Rasters(
        np.ascontiguousarray(frames), np.ascontiguousarray(starts), np.column_stack([rows, columns])
    )


def _axes(normals: Any) -> Any:
    """Two axes in each plane, the first one horizontal if possible: float64[planes, 2, 3]."""
    level = np.column_stack([-normals[:, 1], normals[:, 0], np.zeros(len(normals))])
    flat = np.hypot(normals[:, 0], normals[:, 1]) < 1e-3
    level[flat] = np.column_stack([normals[:, 2], np.zeros(len(normals)), -normals[:, 0]])[flat]
    level /= np.linalg.norm(level, axis=1, keepdims=True)
    return np.stack([level, np.cross(normals, level)], axis=1)


def _pixel_sides(nodes: Any, owner: Any, n_planes: int) -> Any:
    """Sides of the pixels of each plane, from the density of its sparser nodes."""
    mine = np.flatnonzero(owner >= 0)
    # the variance along a side of a square is a twelfth of its area
    areas = 12 * np.sqrt(nodes.values[mine, 1] * nodes.values[mine, 2])
    spacing = np.sqrt(areas / nodes.count[mine]) * float(1 << (BITS - 1))
    finest = (1 << (BITS - nodes.level[mine])) / FINE
    side = np.maximum(PIXEL * spacing, finest)
    order = np.argsort(side)
    order = order[_by_plane(owner[mine[order]], n_planes)]
    sizes = np.bincount(owner[mine], minlength=n_planes)
    rank = np.ceil((1 - SPARSE) * (sizes - 1)).astype(np.int64)
    return side[order[np.cumsum(sizes) - sizes + rank]]


def _by_plane(owner: Any, n_planes: int) -> Any:
    """Order nodes by their planes; those of a plane stay in order."""
    return np.argsort(owner.astype(np.min_scalar_type(n_planes)), kind="stable")  # radix sort
