"""Planar nodes of an octree that is built level by level, without recursion or sorting."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .cells import BITS, FINER, GRID, MOMENTS, OPEN
from .nodes import FLAT, MIN_POINTS

if TYPE_CHECKING:
    from collections.abc import Iterator

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

AREA, SHARE = 0.75, 0.25
"""Weights of the side and of the points of a node: w_a and w_d in the paper."""

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

    def each(self, loop: str, size: int, *arguments: Any) -> None:
        """Run a loop of nodes.py over range(size)."""

    def download(self, array: Any) -> Any:
        """Copy an array to main memory if it is not there."""


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

    def weights(self, size: int) -> Any:
        """Give the weight with which each node votes in a cloud of `size` points: float64[n]."""
        return AREA * 2.0**-self.level + SHARE * self.count / size

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
    xp = cloud.xp
    limits = _Limits.of(options, n_points)
    open_cells, base = xp.zeros(1, np.int64), 0
    batches = []
    while open_cells.size and base < MAX_LEVEL:
        grid = _Grid(cloud, open_cells, base)
        limits = limits.seen(grid, options, wide)
        if base == 0:
            total = cloud.download(grid.moments[0])
        flat, state = grid.judge(options, limits)
        parts = xp.flatnonzero(state == OPEN)
        ranks = xp.empty(state.size, np.int32)
        ranks[parts] = xp.arange(parts.size, dtype=np.int32)
        batches.append(grid.nodes(flat, state, ranks))
        open_cells, base = open_cells[parts >> 3 * grid.depth], grid.levels[-1]
        open_cells = open_cells << 3 * grid.depth | parts & ((1 << 3 * grid.depth) - 1)

    rows = cloud.download(xp.concatenate(batches))
    level, code, count, mean, covariance, values, vectors = _columns(rows)
    cloud.forget()
    return PlanarNodes(
        level.ravel().astype(np.int32), code.ravel().astype(np.int64), count.ravel(), mean,
        covariance, values, vectors.reshape(-1, 3, 3), np.full(len(rows), limits.s_ms),
        centroid=total[1:4] / total[0] / (1 << (BITS - 1)),
        s_level=MAX_LEVEL if limits.s_level is None else limits.s_level,
    )  # fmt: skip


def _columns(rows: Any) -> list[Any]:
    """Split the rows of `nodes.describe` into columns."""
    return [*map(np.ascontiguousarray, np.split(rows, np.cumsum(WIDTHS)[:-1], axis=1))]


class _Grid:
    """The parts of open cells at all levels of a grid, in one array: coarse ones first."""

    def __init__(self, cloud: Cloud, open_cells: Any, base: int) -> None:
        xp = cloud.xp
        self.cloud, self.open_cells, self.base = cloud, open_cells, base
        self.depth = FINER if base else GRID
        self.levels = range(base + 1 if base else 0, base + self.depth + 1)
        sizes = [open_cells.size << 3 * (level - base) for level in self.levels]
        self.starts = np.cumsum([0, *sizes])
        self.moments = xp.empty((int(self.starts[-1]), MOMENTS))
        last = self.levels[-1]
        table = cloud.moments(sizes[-1], last)
        fine = self.of(self.moments, last)
        cloud.each("centre_moments", sizes[-1], table, 1 << (BITS - last), fine)
        for level in self.levels[-2::-1]:
            wider = self.of(self.moments, level)
            cloud.each("halve", wider.shape[0], fine, 1 << (BITS - level - 1), wider)
            fine = wider

    def of(self, array: Any, level: int) -> Any:
        """Give the part of an array that belongs to a level."""
        k = level - self.levels[0]
        return array[int(self.starts[k]) : int(self.starts[k + 1])]

    def occupancies(self) -> "Iterator[tuple[int, float]]":
        """Give for each level the number of points in the cell of the median point."""
        last = self.levels[-1]
        counts = self.cloud.download(self.of(self.moments, last)[:, 0].copy())
        for level in self.levels:
            wide = counts.reshape(-1, 1 << 3 * (last - level)).sum(1)
            wide = np.sort(wide[wide > 0])
            upto = wide.cumsum()
            yield level, float(wide[np.searchsorted(upto, upto[-1] / 2)])

    def judge(self, options: "Options", limits: "_Limits") -> tuple[Any, Any]:
        """Find the planar cells; return them and the states of the finest cells."""
        xp, cloud = self.cloud.xp, self.cloud
        is_flat = xp.empty(int(self.starts[-1]), np.bool_)
        state = xp.full(self.open_cells.size, OPEN, np.int32)
        for level in self.levels:
            above, state = state, xp.empty(self.of(is_flat, level).size, np.int32)
            self._judge(
                level, above, options, limits.s_ms, state, is_flat, tested=limits.has(level)
            )
        flat = xp.flatnonzero(is_flat)
        ranks = xp.empty(is_flat.size, np.int32)
        ranks[flat] = xp.arange(flat.size, dtype=np.int32)
        starts, is_last = xp.asarray(self.starts), self.levels[-1] >= limits.deepest
        cloud.each(
            "number", state.size, starts, self.levels[0], self.levels[-1], ranks, is_last, state
        )
        return flat, state

    def planar(self, level: int, options: "Options", s_ms: float) -> tuple[Any, Any]:
        """Give points and variances of the planar cells of a level, also within planar nodes."""
        xp = self.cloud.xp
        is_flat = xp.zeros(int(self.starts[-1]), np.bool_)
        state = xp.empty(self.of(is_flat, level).size, np.int32)
        above = xp.full(-(-state.size // 8), OPEN, np.int32)
        self._judge(level, above, options, s_ms, state, is_flat, tested=True)
        rows = self.cloud.download(self.nodes(xp.flatnonzero(is_flat), None, None))
        _, _, counts, _, _, values, _ = _columns(rows)
        return counts.ravel(), values

    def _judge(
        self, level: int, above: Any, options: "Options", s_ms: float, state: Any,
        is_flat: Any, *, tested: bool,
    ) -> None:  # fmt: skip
        self.cloud.each(
            "judge", state.size, self.of(self.moments, level), above, tested, s_ms,
            options.max_thickness, options.min_isotropy, FLAT - level, state,
            self.of(is_flat, level),
        )  # fmt: skip

    def nodes(self, flat: Any, state: Any, ranks: Any) -> Any:
        """Describe planar cells; without their outliers if `state` is given."""
        xp, n, each = self.cloud.xp, int(flat.size), self.cloud.each
        level, code = xp.empty(n, np.int32), xp.empty(n, np.int64)
        corners, centres = xp.empty((n, 4), np.int64), xp.empty((n, 3))
        starts = xp.asarray(self.starts)
        each(
            "place", n, flat, starts, self.levels[0], self.base, self.open_cells, level, code,
            corners, centres,
        )  # fmt: skip
        moments = self.moments[flat]
        if state is not None:
            planes = xp.empty((n, 5))
            each("first_planes", n, level, moments, centres, planes)
            outliers = self.cloud.sift(self.levels[-1], state, ranks, planes, corners)
            each("without", n, level, outliers, moments)
        rows = xp.empty((n, sum(WIDTHS)))
        each("describe", n, level, code, moments, centres, rows)
        return rows


def faces_down(normals: Any) -> Any:
    """Tell which normals must be reversed, so that their largest component is positive: bool[n]."""
    normals = normals[:, :3]
    largest = np.abs(normals).argmax(1)[:, None]
    return np.take_along_axis(normals, largest, 1)[:, 0] < 0


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
        for level, occupancy in grid.occupancies():
            if self.s_level is None:
                chosen = chosen.measured(grid, level, options)
                due = occupancy <= limit or chosen.is_noisy
            else:
                due = level == self.s_level
            if due:
                if not self.by_occupancy:
                    return replace(chosen, s_level=level)
                rich = occupancy > OCCUPANCIES[wide]
                s_ms = max(float(MIN_S_MS), occupancy / PARTS[rich])
                return replace(
                    chosen,
                    s_level=level,
                    s_ms=s_ms,
                    deepest=level + BELOW[rich],
                    by_occupancy=False,
                )
        return chosen

    def measured(self, grid: _Grid, level: int, options: "Options") -> "_Limits":
        """Measure the thickness of the planar cells of a level."""
        counts, values = grid.planar(level, options, float(MIN_S_MS))
        thickness = weighted_median(values[:, 0], counts)
        share = weighted_median(values[:, 0] / np.maximum(values[:, 1], EXACT**2), counts)
        enough = counts.sum() > SEEN * grid.cloud.size
        as_before = thickness >= PLATEAU * self.thickness > 0
        is_noisy = bool(enough and as_before and share >= NOISY * options.max_thickness)
        return replace(self, thickness=thickness if enough else 0.0, is_noisy=is_noisy)

    def has(self, level: int) -> bool:
        """Whether a level may have nodes."""
        return self.s_level is not None and self.s_level <= level <= self.deepest
