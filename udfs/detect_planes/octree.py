"""Planar nodes of an octree that is built level by level, without recursion or sorting."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .cells import BITS, FINER, GRID, MOMENTS
from .nodes import MIN_POINTS

if TYPE_CHECKING:
    from . import Options

MAX_LEVEL = 13
"""Last level: its cells are 2^8 steps wide."""

OCCUPANCIES = 400, 6400
"""Maximum number of points in the s_level cell of the median point, without a given s_level: for
normal nodes, and for the wide nodes of the last search."""

SHARES = 2500, 150
"""If this part of all points is more, it is used instead, since nodes cost time, too."""

BELOW = 3, 2
"""Maximum number of levels of nodes below s_level, without a given s_ms: if the nodes of s_level
hold no more points than OCCUPANCIES, and if they hold more."""

PARTS = 64, 16
"""Without a given s_ms it is this part of the points in nodes of s_level, in the same two cases."""

SEEN = 0.3
"""Share of the points that must be in planar cells for their thickness to be measured."""

PLATEAU, NOISY = 0.85, 1 / 6
"""Nodes cannot be narrower because of noise if their variance is at least PLATEAU times that of the
level above, and their thickness at least NOISY times max_thickness."""

ROOM, OFF = 1.043, 0.0137
"""Side of the root cube, and offset of its centre from that of the bounding box, in units of the
longest side of the box."""

EXACT = 2.0 / (1 << (BITS - 1))
"""Up to this standard deviation, two steps, a node is exact."""

PARALLEL, DEPTHS, MAJORITY = 0.9999, 10, 0.9
"""Layers: minimum cosine between their normals, their minimum number, their minimum share of the
exact nodes."""

MIN_S_MS = 6
"""Lower bound of s_ms if it is not given."""


@dataclass(frozen=True)
class Cube:
    """The root of the octree."""

    low: tuple[float, float, float]
    """Minimum corner."""
    side: float

    @property
    def scale(self) -> float:
        """Steps per unit of the coordinates."""
        return float((1 << BITS) / self.side)

    @property
    def half(self) -> float:
        """Half the side: the unit of lengths of nodes and planes."""
        return self.side / 2

    @classmethod
    def around(cls, lows: Any, highs: Any) -> "Cube":
        """Make the cube around a box; its side is 0 if the box is a point.

        Its centre is not that of the box: borders of cells would cut a wall there into halves.
        """
        extent = max(high - low for low, high in zip(lows, highs, strict=True))
        side = extent * ROOM
        centres = (low + (high - low) / 2 for low, high in zip(lows, highs, strict=True))
        x, y, z = (centre - side / 2 + extent * OFF for centre in centres)
        return cls((x, y, z), side)


class Cloud(Protocol):
    """Points in the memory of a device, and the device's loops over points and cells."""

    xp: Any
    size: int

    def moments(self, n_cells: int, level: int) -> Any:
        """Sum up the points of open cells in their parts at a level: int64[n_cells, MOMENTS]."""

    def sift(self, level: int, state: Any, ranks: Any, planes: Any, corners: Any) -> Any:
        """Sum up the outliers of nodes, int64[nodes, MOMENTS]; list the points of open cells."""

    def forget(self) -> None:
        """Free the points of open cells."""

    def summarize(self, grid: "_Grid") -> "list[Summary]":
        """Summarize the cells of each level of a grid."""

    def walk(self, grid: "_Grid", s_level: int, deepest: int, s_ms: float) -> tuple[Any, ...]:
        """Find the coarsest planar cell around each of the finest cells: see `nodes.walk`.

        Returns
        -------
        at : int64[nodes]
            The planar cells, in any order.
        state : int32[finest cells]
            Node that contains the cell, NONE or OPEN.
        inner : int64[open cells]
            Morton codes of the open cells, in any order.
        ranks : int32[finest cells]
            Number of a cell among the open cells.
        """

    def each(self, loop: str, size: int, *arguments: Any) -> None:
        """Run a loop of nodes.py over range(size)."""

    def download(self, array: Any) -> Any:
        """Copy an array to main memory if it is not there."""


@dataclass(frozen=True)
class Summary:
    """The cells of a level; medians are over points. Planar cells have MIN_S_MS points or more."""

    level: int
    occupancy: float
    """Points in the cell of the median point."""
    planar_points: float
    """Points in planar cells."""
    thickness: float
    """Median variance across the planar cells, in squares of half sides of the root; 0 for none."""
    ratio: float
    """Median ratio of the two lesser variances of the planar cells; 0 for none."""


COLUMNS = "level", "code", "count", "mean", "covariance", "values", "vectors", "min_points"

WIDTHS = 1, 1, 1, 3, 6, 3, 9
"""Numbers per column in the rows of `nodes.describe`, which has all but the last column."""


@dataclass(frozen=True)
class PlanarNodes:
    """Planar nodes without their outliers, in main memory; lengths are in half sides of the root.

    Coarser nodes come first; those of a level are in Morton order.
    """

    level: Any
    """int32[n]: 0 is the root."""
    code: Any
    """int64[n]: Morton code in the level."""
    count: Any
    """float64[n]: points."""
    mean: Any
    """float64[n, 3]: relative to the centre of the root."""
    covariance: Any
    """float64[n, 6]: xx, xy, xz, yy, yz, zz."""
    values: Any
    """float64[n, 3]: eigenvalues, ascending."""
    vectors: Any
    """float64[n, 3, 3]: eigenvectors as rows, the normal first."""
    min_points: Any
    """float64[n]: minimum number of points (s_ms) when the node was made."""
    centroid: Any
    """float64[3]: of all points."""
    s_level: int
    """The s_level of the options, or the one that was chosen."""

    def __len__(self) -> int:
        return int(self.level.size)

    def join(self, kept: Any, more: "PlanarNodes | None" = None) -> "PlanarNodes":
        """Give the nodes that are kept, followed by more."""
        if more is None and kept.all():
            return self
        columns = {name: getattr(self, name)[kept] for name in COLUMNS}
        if more is not None:
            columns = {
                name: np.concatenate([values, getattr(more, name)])
                for name, values in columns.items()
            }
        return replace(self, **columns)


def planar_nodes(cloud: Cloud, options: "Options", wide: int, n_points: int) -> PlanarNodes:
    """Find the planar nodes of a cloud, on its device.

    Parameters
    ----------
    cloud : Cloud
    options : Options
        Uses s_level, s_ms, s_ps, max_thickness and min_isotropy.
    wide : int
        Index into OCCUPANCIES: 1 for wide nodes.
    n_points : int
        Number of points of the whole cloud.

    Returns
    -------
    PlanarNodes

    References
    ----------
    Limberger, Oliveira: Real-time detection of planar regions in unorganized point clouds,
    Pattern Recognition 48 (2015), section 3.1. The paper uses recursion: see README.md.
    """
    limits = _Limits.of(options, n_points)
    open_cells, base = cloud.xp.zeros(1, np.int64), 0
    batches = []
    while open_cells.size and base < MAX_LEVEL:
        grid = _Grid(cloud, open_cells, base, options)
        limits = limits.seen(grid, options, wide)
        if base == 0:
            total = cloud.download(grid.moments[0])
        rows, open_cells = grid.nodes(limits)
        batches.append(rows)
        base = grid.levels[-1]

    rows = cloud.download(cloud.xp.concatenate(batches))
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    level, code, count, mean, covariance, values, vectors = _columns(rows)
    cloud.forget()
    found = PlanarNodes(
        level.ravel().astype(np.int32), code.ravel().astype(np.int64), count.ravel(), mean,
        covariance, values, vectors.reshape(-1, 3, 3), np.full(len(rows), limits.s_ms),
        centroid=total[1:4] / total[0] / (1 << (BITS - 1)),
        s_level=MAX_LEVEL if limits.s_level is None else limits.s_level,
    )  # fmt: skip
    return found.join(~layers(found))


def _columns(rows: Any) -> list[Any]:
    """Split the rows of `nodes.describe` into columns."""
    return [*map(np.ascontiguousarray, np.split(rows, np.cumsum(WIDTHS)[:-1], axis=1))]


class _Grid:
    """The parts of open cells at all levels of a grid, in one array: coarse ones first.

    Attributes
    ----------
    moments : float64[cells, MOMENTS]
        About the centres of cells, in steps.
    values : float64[cells, 3]
        See `nodes.spectra`.
    planar : uint8[cells]
        See `nodes.judge`.
    """

    def __init__(self, cloud: Cloud, open_cells: Any, base: int, options: "Options") -> None:
        xp = cloud.xp
        self.cloud, self.open_cells, self.base = cloud, open_cells, base
        depth = FINER if base else GRID
        self.levels = range(base + 1 if base else 0, base + depth + 1)
        sizes = [int(open_cells.size) << 3 * (level - base) for level in self.levels]
        self.n_first, self.n_last, self.size = sizes[0], sizes[-1], sum(sizes)
        self.moments = xp.empty((self.size, MOMENTS))
        last, start = self.levels[-1], self.size - self.n_last
        table = cloud.moments(self.n_last, last)
        cloud.each("centre_moments", self.n_last, table, 1 << (BITS - last), self.moments[start:])
        for level, size in zip(self.levels[-2::-1], sizes[-2::-1], strict=True):
            side = 1 << (BITS - level - 1)
            cloud.each("halve", size, self.moments, start, start - size, side)
            start -= size
        self.values, self.planar = xp.empty((self.size, 3)), xp.empty(self.size, np.uint8)
        cloud.each("spectra", self.size, self.moments, self.values)
        cloud.each(
            "judge", self.size, self.values, options.max_thickness, options.min_isotropy,
            self.planar,
        )  # fmt: skip

    def nodes(self, limits: "_Limits") -> tuple[Any, Any]:
        """Describe the nodes without their outliers; give the open cells of the last level, too."""
        xp, cloud = self.cloud.xp, self.cloud
        s_level = MAX_LEVEL + 1 if limits.s_level is None else limits.s_level
        at, state, inner, ranks = cloud.walk(self, s_level, limits.deepest, limits.s_ms)
        where = at, self.n_first, self.levels[0], self.base, self.open_cells, self.moments
        n = int(at.size)
        planes, corners = xp.empty((n, 5)), xp.empty((n, 4), np.int64)
        cloud.each("place", n, *where, planes, corners)
        outliers = cloud.sift(self.levels[-1], state, ranks, planes, corners)
        rows = xp.empty((n, sum(WIDTHS)))
        cloud.each("describe", n, *where, outliers, rows)
        return rows, inner


def layers(nodes: PlanarNodes) -> Any:
    """Tell which nodes are layers: exact, nearly all parallel, and at many depths.

    Depth cameras have few distinct depths, so that every plane becomes a stair of flat steps.

    Returns
    -------
    bool[nodes]
    """
    exact = nodes.values[:, 0] <= EXACT**2
    counts, normals = nodes.count[exact], nodes.vectors[exact, 0]
    if counts.size == 0:
        return exact
    axis = normals[counts.argmax()]
    parallel = np.abs(normals @ axis) > PARALLEL
    depths = np.sort(nodes.mean[exact][parallel] @ axis)
    several = np.count_nonzero(np.diff(depths) > 4 * EXACT) >= DEPTHS
    return exact & (several and counts[parallel].sum() > MAJORITY * counts.sum())


def weighted_median(values: Any, weights: Any) -> float:
    """Give the smallest value up to which half of the weights lie; 0 for no values."""
    order = np.argsort(values, kind="stable")
    upto = weights[order].cumsum()
    return float(values[order[np.searchsorted(upto, upto[-1] / 2)]]) if upto.size else 0.0


@dataclass(frozen=True)
class _Limits:
    """The conditions for nodes; s_level is None until a level with thin enough cells was found."""

    s_level: int | None
    s_ms: float
    deepest: int
    by_occupancy: bool
    """Whether s_ms follows from the number of points in nodes of s_level."""
    thickness: float = 0.0
    """Variance across the planar cells of the previous level; 0 if there were too few."""
    is_noisy: bool = False
    """Whether the variance is noise, so that narrower cells would be too thick."""

    @classmethod
    def of(cls, options: "Options", size: int) -> "_Limits":
        s_ms = options.s_ms if options.s_ps is None else options.s_ps * size
        s_ms_min = float(max(MIN_S_MS if s_ms is None else s_ms, MIN_POINTS))
        return cls(options.s_level, s_ms_min, MAX_LEVEL, by_occupancy=s_ms is None)

    def seen(self, grid: _Grid, options: "Options", wide: int) -> "_Limits":
        """Choose the limits that are not known yet from the levels of a grid."""
        if self.s_level is not None and not (self.by_occupancy and self.s_level in grid.levels):
            return self
        chosen, limit = self, max(OCCUPANCIES[wide], grid.cloud.size / SHARES[wide])
        for each in grid.cloud.summarize(grid):
            if self.s_level is None:
                chosen = chosen.measured(each, grid.cloud.size, options)
                due = each.occupancy <= limit or chosen.is_noisy
            else:
                due = each.level == self.s_level
            if due:
                if not self.by_occupancy:
                    return replace(chosen, s_level=each.level)
                rich = each.occupancy > OCCUPANCIES[wide]
                s_ms = max(float(MIN_S_MS), each.occupancy / PARTS[rich])
                return replace(
                    chosen,
                    s_level=each.level,
                    s_ms=s_ms,
                    deepest=each.level + BELOW[rich],
                    by_occupancy=False,
                )
        return chosen

    def measured(self, cells: Summary, size: int, options: "Options") -> "_Limits":
        """Take note of the thickness of the planar cells of a level."""
        enough = cells.planar_points > SEEN * size
        as_before = cells.thickness >= PLATEAU * self.thickness > 0
        is_noisy = enough and as_before and cells.ratio >= NOISY * options.max_thickness
        return replace(self, thickness=cells.thickness if enough else 0.0, is_noisy=is_noisy)
