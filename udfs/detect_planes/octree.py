"""Planar nodes of an octree that is built level by level, without recursion and without a sort."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from . import nodes
from .cells import BITS, FINER, GRID, MOMENTS, NONE, OPEN

if TYPE_CHECKING:
    from . import Options

DEEPEST = 13
"""Last level: its cells are 2^8 steps wide."""

CROWDS = 400, 1600, 6400
"""Points that the nodes of s_level hold at most, seen from the median point, where it is not
given: of the whole cloud, then of what no plane explained. What is rough needs wide nodes, what
is close together narrow ones."""

SHARES = 2500, 600, 150
"""... or this part of the points, where that is more: nodes cost time, too."""

BELOW = 3, 2
"""Levels below s_level that nodes may be at, where s_ms is not given: where the nodes of s_level
hold no more than CROWDS says, and where they hold more."""

PARTS = 64, 16
"""s_ms, where it is not given, is this part of what the nodes of s_level hold; likewise."""

WIDER = 2
"""Levels above s_level whose planar cells tell which nodes are layers."""

EXACT = 2.0 / (1 << (BITS - 1))
"""Noise of nodes that have none: two steps."""

TURNED, DEPTHS, LAYERED = np.radians(5.0), 3, 0.2
"""Angle between a step and its plane, or depths of steps of one plane; share of steps."""

LEAST = 6
"""Points that a node has at least, where s_ms is not given."""


@dataclass(frozen=True)
class Cube:
    """The root of the octree."""

    low: tuple[float, float, float]
    """Least corner."""
    side: float

    @property
    def scale(self) -> float:
        """Steps in a unit of the coordinates."""
        return float((1 << BITS) / self.side)

    @property
    def half(self) -> float:
        """Half the side: the unit of all that is told of nodes and planes."""
        return self.side / 2

    @property
    def middle(self) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """What nodes and planes are seen from."""
        return np.array(self.low) + self.half

    @classmethod
    def around(cls, lows: Any, highs: Any) -> "Cube":
        """Give the cube around the middle of a box; its side is 0 if the box is a point."""
        side = max(high - low for low, high in zip(lows, highs, strict=True))
        x, y, z = (low + (high - low) / 2 - side / 2 for low, high in zip(lows, highs, strict=True))
        return cls((x, y, z), side)


class Cloud(Protocol):
    """Points in the memory of a device, and its loops over them and over cells."""

    xp: Any
    size: int

    def moments(self, n_cells: int, level: int) -> Any:
        """Sum up the points of open cells in their parts at a level: int64[n_cells, MOMENTS]."""

    def sift(self, level: int, state: Any, ranks: Any, planes: Any, corners: Any) -> Any:
        """Sum up the outliers of nodes, int64[nodes, MOMENTS]; keep the points of open cells."""

    def each(self, loop: str, size: int, *arguments: Any) -> None:
        """Run a loop of nodes.py over range(size)."""

    def download(self, array: Any) -> Any:
        """Copy to main memory what is not there."""


COLUMNS = "level", "code", "count", "mean", "covariance", "values", "vectors", "least"

WIDTHS = 1, 1, 1, 3, 6, 3, 9
"""Numbers of each but the last, in the rows of `nodes.describe`."""


@dataclass(frozen=True)
class Nodes:
    """Planar nodes without their outliers, in main memory; lengths are half sides of the root.

    Coarser ones first, those of a level in Morton order.
    """

    level: Any
    """int32[n]: 0 is the root."""
    code: Any
    """int64[n]: Morton number in the level."""
    count: Any
    """float64[n]: points."""
    mean: Any
    """float64[n, 3]: seen from the middle of the root."""
    covariance: Any
    """float64[n, 6]: xx, xy, xz, yy, yz, zz."""
    values: Any
    """float64[n, 3]: eigenvalues, ascending."""
    vectors: Any
    """float64[n, 3, 3]: eigenvectors as rows, the normal first."""
    least: Any
    """float64[n]: points that each had to have."""
    centroid: Any
    """float64[3]: of all points."""
    s_level: int
    """As given, or as chosen."""

    def __len__(self) -> int:
        return int(self.level.size)

    def join(self, kept: Any, more: "Nodes | None" = None) -> "Nodes":
        """Give those that are kept, and more."""
        columns = {name: getattr(self, name)[kept] for name in COLUMNS}
        if more is not None:
            columns = {
                name: np.concatenate([values, getattr(more, name)])
                for name, values in columns.items()
            }
        return replace(self, **columns)


def planar_nodes(cloud: Cloud, options: "Options", turn: int) -> Nodes:
    """Find the planar nodes of a cloud, on the device where it is.

    Parameters
    ----------
    cloud : Cloud
    options : Options
        Its s_level, s_ms, s_ps, max_thickness and min_isotropy.
    turn : int
        Of CROWDS.

    Returns
    -------
    Nodes

    References
    ----------
    Limberger, Oliveira: Real-time detection of planar regions in unorganized point clouds,
    Pattern Recognition 48 (2015), section 3.1; there by recursion: see README.md.
    """
    xp = cloud.xp
    limits = _Limits.of(options, cloud.size)
    open_cells, base, batches, wide = xp.zeros(1, np.int64), 0, [], _Batch(cloud)
    while True:
        depth = FINER if base else GRID
        levels = _levels(cloud, open_cells.size, base, depth)
        limits = limits.seen(levels, cloud, turn)
        if base == 0:
            total = levels[0][1][0]
            centroid = total[1:4] / total[0] / (1 << (BITS - 1))
        state, batch = xp.full(open_cells.size, OPEN, np.int32), _Batch(cloud)
        for level, moments in levels:
            if limits.s_level is not None and 0 <= limits.s_level - level - 1 < WIDER:
                flat = xp.empty(moments.shape[0], np.int32)
                above = xp.full(-(-flat.size // 8), OPEN, np.int32)
                _judge(cloud, options, moments, above, float(limits.s_ms), flat, tested=True)
                wide.take(level, moments, flat, open_cells, base)
            above, state = state, xp.empty(moments.shape[0], np.int32)
            tested = limits.has(level)
            _judge(cloud, options, moments, above, float(limits.s_ms), state, tested=tested)
            if tested:
                batch.take(level, moments, state, open_cells, base)
        base += depth
        if base >= limits.deepest:
            state[state == OPEN] = NONE
        parts = xp.flatnonzero(state == OPEN)
        ranks, codes = xp.empty(state.size, np.int32), xp.empty(parts.size, np.int64)
        cloud.each("rank", parts.size, parts, open_cells, depth, ranks, codes)
        batches.append(batch.finish(base, state, ranks))
        open_cells = codes
        if parts.size == 0:
            break
    s_level = DEEPEST if limits.s_level is None else limits.s_level

    def here(rows: Any) -> Nodes:
        columns = np.split(cloud.download(rows), np.cumsum(WIDTHS)[:-1], axis=1)
        level, code, count, mean, covariance, values, vectors = map(np.ascontiguousarray, columns)
        return Nodes(
            level[:, 0].astype(np.int32), code[:, 0].astype(np.int64), count[:, 0], mean,
            covariance, values, vectors.reshape(-1, 3, 3), np.full(len(rows), limits.s_ms),
            cloud.download(centroid), s_level,
        )  # fmt: skip

    found = here(xp.concatenate(batches))
    return found.join(~layers(found, here(wide.describe()))) if wide.size else found


def _judge(
    cloud: Cloud, options: "Options", moments: Any, above: Any, s_ms: float, state: Any, *,
    tested: bool,
) -> None:  # fmt: skip
    cloud.each(
        "judge", state.size, moments, above, tested, s_ms, options.max_thickness,
        options.min_isotropy, state,
    )  # fmt: skip


def layers(nodes: Nodes, wide: Nodes) -> Any:
    """Tell which nodes are layers: exact ones, where these are but steps of planes.

    Depth cameras give a few depths only: a plane is a stair there. That it is one is told by
    planar cells wide enough to see it: its steps are turned otherwise, or at several depths.
    Where most exact nodes are no such steps, as in a drawn model, none is.

    Parameters
    ----------
    nodes, wide : Nodes
        Planar nodes, and planar cells of levels above s_level that may hold them.

    Returns
    -------
    bool[nodes]
    """
    exact = nodes.values[:, 0] <= EXACT**2
    steps = np.zeros(len(nodes), np.bool_)
    for level in np.unique(wide.level):
        planes = wide.join(wide.level == level)
        code = nodes.code >> 3 * np.maximum(nodes.level - level, 0)
        cell = np.minimum(np.searchsorted(planes.code, code), len(planes) - 1)
        inside = np.flatnonzero(exact & (planes.code[cell] == code) & (nodes.level > level))
        cell, normals = cell[inside], planes.vectors[cell[inside], 0]
        cosines = np.abs((nodes.vectors[inside, 0] * normals).sum(1))
        depths = (nodes.mean[inside] * normals).sum(1)
        order = np.lexsort((depths, cell))
        apart = (np.diff(depths[order]) > 4 * EXACT) & (np.diff(cell[order]) == 0)
        several = np.bincount(cell[order][1:][apart], minlength=len(planes)) >= DEPTHS - 1
        steps[inside] |= (cosines < np.cos(TURNED)) | several[cell]
    known = nodes.count[exact].sum()
    return exact & (nodes.count[steps].sum() > LAYERED * known)


def weighted_median(values: Any, weights: Any) -> float:
    """Give the least value up to which half of the weights lie; 0 if there is none."""
    order = np.argsort(values, kind="stable")
    upto = weights[order].cumsum()
    return float(values[order[np.searchsorted(upto, upto[-1] / 2)]]) if upto.size else 0.0


def _levels(cloud: Cloud, n_open: int, base: int, depth: int) -> list[tuple[int, Any]]:
    """Give the moments of the parts of open cells by level, coarse to fine; the root's, too."""
    xp = cloud.xp
    table = cloud.moments(n_open << 3 * depth, base + depth)
    moments = xp.empty(table.shape)
    cloud.each("centre_moments", table.shape[0], table, 1 << (BITS - base - depth), moments)
    levels = [(base + depth, moments)]
    for level in range(base + depth - 1, base if base else -1, -1):
        fine, moments = moments, xp.empty((moments.shape[0] // 8, MOMENTS))
        cloud.each("halve", moments.shape[0], fine, 1 << (BITS - level - 1), moments)
        levels.append((level, moments))
    return levels[::-1]


def _crowd(cloud: Cloud, moments: Any, size: int) -> float:
    """Give how many points share a cell with the median point: dense spots do not matter."""
    counts = cloud.xp.sort(moments[:, 0])
    at = cloud.xp.searchsorted(counts.cumsum(), size / 2)
    return float(counts[at])


@dataclass(frozen=True)
class _Limits:
    """What makes a node; s_level is None as long as no level was thin enough."""

    s_level: int | None
    s_ms: float
    deepest: int
    by_crowd: bool
    """Whether s_ms is to follow from what the nodes of s_level hold."""

    @classmethod
    def of(cls, options: "Options", size: int) -> "_Limits":
        s_ms = options.s_ms if options.s_ps is None else options.s_ps * size
        by_crowd = s_ms is None
        s_level = options.s_level
        return cls(s_level, max(s_ms or LEAST, nodes.FEWEST), DEEPEST, by_crowd)

    def seen(self, levels: list[tuple[int, Any]], cloud: Cloud, turn: int) -> "_Limits":
        """Choose what is still open by the levels of a grid."""
        chosen = self
        for level, moments in levels:
            due = chosen.s_level is None or (level == chosen.s_level and chosen.by_crowd)
            if not due:
                continue
            most = max(CROWDS[turn], cloud.size / SHARES[turn])
            # so many share the cells at least
            if chosen.s_level is None and cloud.size / (2 * len(moments)) > most:
                continue
            crowd = _crowd(cloud, moments, cloud.size)
            if chosen.s_level is None and crowd > most:
                continue
            s_ms, deepest = self.s_ms, DEEPEST
            if self.by_crowd:
                rich = crowd > CROWDS[turn]
                s_ms = max(LEAST, crowd / PARTS[rich])
                deepest = level + BELOW[rich]
            chosen = _Limits(level, s_ms, deepest, by_crowd=False)
        return chosen

    def has(self, level: int) -> bool:
        """Whether a level may have nodes."""
        return self.s_level is not None and self.s_level <= level <= self.deepest


class _Batch:
    """The nodes that a grid of cells brings."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.xp = cloud, cloud.xp
        self.size = 0
        self.parts = [self._room(0)]

    def _room(self, n: int) -> tuple[Any, Any, Any]:
        """Levels, Morton codes and moments."""
        xp = self.xp
        return xp.empty(n, np.int32), xp.empty(n, np.int64), xp.empty((n, MOMENTS))

    def take(self, level: int, moments: Any, state: Any, open_cells: Any, base: int) -> None:
        """Take the planar cells of a level, and number them in their states."""
        flat = self.xp.flatnonzero(state == nodes.FLAT)
        part = self._room(flat.size)
        self.cloud.each(
            "take", flat.size, flat, open_cells, level - base, level, self.size, moments, state,
            *part,
        )  # fmt: skip
        self.size += int(flat.size)
        self.parts.append(part)

    def finish(self, level: int, state: Any, ranks: Any) -> Any:
        """Take out the outliers; see `describe`."""
        levels, codes, moments, corners, middles = self._join()
        planes = self.xp.empty((self.size, 5))
        self.cloud.each("first_planes", self.size, levels, moments, middles, planes)
        outliers = self.cloud.sift(level, state, ranks, planes, corners)
        self.cloud.each("without", self.size, levels, outliers, moments)
        return self._rows(levels, codes, moments, middles)

    def describe(self) -> Any:
        """Give the rows of `nodes.describe`, outliers and all."""
        levels, codes, moments, _, middles = self._join()
        return self._rows(levels, codes, moments, middles)

    def _join(self) -> tuple[Any, ...]:
        """Levels, codes, moments, corners and middles."""
        levels, codes, moments = map(self.xp.concatenate, zip(*self.parts, strict=True))
        corners, middles = self.xp.empty((self.size, 4), np.int64), self.xp.empty((self.size, 3))
        self.cloud.each("place", self.size, levels, codes, corners, middles)
        return levels, codes, moments, corners, middles

    def _rows(self, levels: Any, codes: Any, moments: Any, middles: Any) -> Any:
        rows = self.xp.empty((self.size, sum(WIDTHS)))
        self.cloud.each("describe", self.size, levels, codes, moments, middles, rows)
        return rows
