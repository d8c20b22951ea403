"""Planar nodes of an octree that is built level by level, without recursion or sorting."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .cells import BITS, FINER, GRID, MOMENTS
from .nodes import MIN_POINTS, PART_POINTS, SIDE_SHARE

if TYPE_CHECKING:
    from . import Options

MAX_LEVEL = 13
"""Last level: its cells are 2^8 steps wide."""

OCCUPANCIES = 400, 6400
"""Maximum number of points in the s_level cell of the median point, without a given s_level: for
normal nodes, and for the wide nodes of the last search. Planes in a cell of some hundred points
have normals that are precise to a degree or so; rough ones need many more."""

SHARES = 2500, 150
"""If this part of all points is more, it is used instead, since nodes cost time, too: a few
thousand nodes describe a cloud, and a few hundred wide ones."""

BELOW = 3, 2
"""Maximum number of levels of nodes below s_level, without a given s_ms: if the nodes of s_level
hold no more points than OCCUPANCIES, and if they hold more. On a plane, a cell three levels below
has 1/64 of the points, one two levels below 1/16."""

PARTS = 64, 16
"""Without a given s_ms it is this part of the points in nodes of s_level, in the same two cases: as
many as a plane has in the deepest nodes, see BELOW."""

NARROW = 1 / 6
"""Planar cells are narrow if their thickness, as a ratio of variances, is at least NARROW times
max_thickness: they are about 40 times as wide as their noise. Nodes then remain planar where noise
is more than twice as large as at the median point."""

SEEN, KEPT = 0.15, 0.5
"""Instead of narrow cells those of the level above are taken, if the planar ones among them contain
SEEN of the points, which scans with much clutter have, and KEPT of the points in planar cells of
the narrow level, so that most surfaces remain."""

AS_THICK, GROWN = 1.4, 36.0
"""Wider cells may be this many times as thick, as a ratio of variances, as those that are due, and
have this many times their variance: the noise of depth cameras grows with the distance. The ratio
stays about the same on wavy sheets; it grows where cells contain details. Six times the standard
deviation is two levels on such a sheet."""

FEWEST, MOST_NODES, PRECISE = 12, 25_000, np.radians(1.5)
"""Nodes may have fewer points than OCCUPANCIES where wider cells are thick because surfaces bend in
them. The median point then shares its cell with FEWEST others at least, and with this part of all
points, and the standard error of the normal of such a cell is at most PRECISE: where there is
little noise, a few points give that."""

FALL = 0.7
"""Surfaces bend in cells where the thickness of their parts, as a ratio of variances, is less than
this share of theirs. It is a quarter where surfaces are smooth, and four times theirs where they
are flat but for noise."""

LAYER_GRID = 6
"""Thick nodes down to this level may be divided into layers: they are looked up in a table with one
entry per cell of this level, of 1 MB."""

LAYERED, PARALLEL_LAYERS = 25.0, np.radians(8.0)
"""A layer has a variance this many times smaller than that of its node; maximum angle between two
layers. They are about ten standard deviations apart then, so that no point is in the wrong one, and
each may be off by the 4 degrees within which normals agree."""

ROOM, OFF = 1.043, 0.0137
"""Side of the root cube, and offset of its centre from that of the bounding box, in units of the
longest side of the box: a few percent, and such that no simple share of the box is at a border."""

EXACT = 2.0 / (1 << (BITS - 1))
"""Up to this standard deviation, two steps, a node is exact: rounding alone makes 0.3 steps."""

PARALLEL, DEPTHS, MAJORITY = 0.9999, 10, 0.9
"""Stairs: minimum cosine between their normals, their minimum number, their minimum share of the
exact nodes. Exact models have a few depths per direction, and other directions, too."""

WEIGHT_OF_AREA, WEIGHT_OF_COUNT = 0.75, 0.25
"""Weights of the side and of the points of a node: w_a and w_d in the paper."""

MIN_S_MS = 6
"""Lower bound of s_ms if it is not given: fewer points are often flat by chance."""


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

    def empty(self, shape: Any, kind: Any = np.float64) -> Any:
        """Allocate an array on the device."""

    def full(self, shape: Any, value: Any, kind: Any = np.float64) -> Any:
        """Allocate an array of one value on the device."""

    def moments(self, n_cells: int, level: int) -> Any:
        """Sum up the points of open cells in their parts at a level: int64[n_cells, MOMENTS]."""

    def sift(self, level: int, state: Any, ranks: Any, planes: Any, corners: Any) -> Any:
        """Sum up the outliers of nodes, int64[nodes, MOMENTS]; list the points of open cells."""

    def sides(self, grid: int, levels: Any, codes: Any, planes: Any, corners: Any) -> Any:
        """Describe the points on either side of nodes, see `cells.add_sides`.

        Returns
        -------
        float64[2 * nodes, 25]
            See `nodes.describe_sums`; in main memory.
        """

    def forget(self) -> None:
        """Free the points of open cells."""

    def summarize(self, grid: "_Grid") -> "list[Summary]":
        """Summarize the cells of each level of a grid."""

    def walk(self, grid: "_Grid", s_level: int, deepest: int, s_ms: float) -> tuple[Any, ...]:
        """Find the coarsest planar cell around each of the finest cells: see `nodes.walk`.

        Returns
        -------
        at : int64[nodes]
            The planar cells, and those that may have layers, in any order.
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
    ratio: float
    """Median ratio of the two lesser variances of the planar cells; 0 for none."""

    @property
    def thickness(self) -> float:
        """Give the ratio without bias: a plane takes three degrees of freedom."""
        return self.ratio * self.occupancy / max(self.occupancy - MIN_POINTS, 1.0)

    @property
    def noise(self) -> float:
        """Variance across the planar cells, in squares of half sides of the root.

        The variance along a side of a cell is a twelfth of the square of that side.
        """
        return self.thickness * 4.0**-self.level / 3.0


COLUMNS = "level", "code", "parts", "count", "mean", "covariance", "values", "vectors", "min_points"

WIDTHS = 1, 1, 1, 1, 3, 6, 3, 9
"""Numbers per column in the rows of `nodes.describe_moments`, which has all but the last column."""


@dataclass(frozen=True)
class PlanarNodes:
    """Planar nodes without their outliers, in main memory; lengths are in half sides of the root.

    Coarser nodes come first; those of a level are in Morton order.
    """

    level: Any
    """int32[n]: 0 is the root."""
    code: Any
    """int64[n]: Morton code in the level."""
    parts: Any
    """float64[n]: see `nodes.judge`; LAYERS for cells that may have two layers."""
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
    noise: float | None
    """Variance of the noise of the cloud, see `_Limits`."""

    def __len__(self) -> int:
        return int(self.level.size)

    def weights(self, size: int) -> Any:
        """Give the weight with which each node votes in a cloud of `size` points: float64[n]."""
        return WEIGHT_OF_AREA * 2.0**-self.level + WEIGHT_OF_COUNT * self.count / size

    def join(self, kept: Any, more: "PlanarNodes | None" = None) -> "PlanarNodes":
        """Give the nodes that are kept, followed by more."""
        if more is None and kept.all():
            return self
        at = np.flatnonzero(kept)  # rows are taken faster by their numbers
        columns = {name: getattr(self, name).take(at, axis=0) for name in COLUMNS}
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
        grid = _Grid(cloud, open_cells, base, options, limits.fewest(base))
        limits = limits.seen(grid, options, wide)
        if base == 0:
            total = cloud.download(grid.moments[0])
        rows, open_cells = grid.nodes(limits)
        batches.append(rows)
        base = grid.levels[-1]

    rows = cloud.download(cloud.xp.concatenate(batches))
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    cloud.forget()
    return PlanarNodes(
        **_columns(rows, np.full(len(rows), limits.s_ms)),
        centroid=total[1:4] / total[0] / (1 << (BITS - 1)),
        s_level=MAX_LEVEL if limits.s_level is None else limits.s_level,
        noise=limits.noise,
    )


def _columns(rows: Any, min_points: Any) -> dict[str, Any]:
    """Make the columns of PlanarNodes of the rows of `nodes.describe_moments`."""
    columns = np.split(rows, np.cumsum(WIDTHS)[:-1], axis=1)
    level, code, parts, count, *others, vectors = map(np.ascontiguousarray, columns)
    values = (
        level.ravel().astype(np.int32), code.ravel().astype(np.int64), parts.ravel(),
        count.ravel(), *others, vectors.reshape(-1, 3, 3), min_points,
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def two_layers(cloud: Cloud, nodes: PlanarNodes, thick: Any, options: "Options") -> PlanarNodes:
    """Divide thick nodes whose points lie in two parallel layers, such as the faces of a thin wall.

    Parameters
    ----------
    cloud : Cloud
        In which the nodes were found.
    thick : bool[nodes]

    Returns
    -------
    PlanarNodes
        One node per layer.
    """
    at = np.flatnonzero(thick & (nodes.level <= LAYER_GRID))
    if at.size == 0:
        return nodes.join(np.zeros(len(nodes), np.bool_))
    level, code, normals = nodes.level[at].astype(np.int64), nodes.code[at], nodes.vectors[at, 0]
    middles = (nodes.mean[at] + 1.0) * float(1 << (BITS - 1)) - 0.5
    limits = float(1 << BITS) / SIDE_SHARE * 0.5**level
    planes = np.column_stack([normals, (normals * middles).sum(1), limits])
    s_ms = np.repeat(nodes.min_points[at], 2)
    rows = cloud.sides(LAYER_GRID, level, code, planes, corners_of(level, code))
    both = np.repeat((rows[:, 3] >= s_ms).reshape(-1, 2).all(1), 2)
    layers = replace(nodes, **_columns(rows[both], s_ms[both]))
    lengths, normals = layers.values, layers.vectors[:, 0]
    thin = lengths[:, 0] * LAYERED <= np.repeat(nodes.values[at, 0], 2)[both]
    thin &= lengths[:, 0] < options.max_thickness * lengths[:, 1]
    thin &= lengths[:, 1] > options.min_isotropy * lengths[:, 2]
    cosines = (normals[::2] * normals[1::2]).sum(1)
    good = thin[::2] & thin[1::2] & (np.abs(cosines) >= np.cos(PARALLEL_LAYERS))
    return layers.join(np.repeat(good, 2))


def corners_of(level: Any, code: Any) -> Any:
    """Give the corners of nodes as `nodes.place` does: int64[nodes, 4]."""
    at = np.zeros((level.size, 4), np.int64)
    for bit in range(MAX_LEVEL):
        for axis in range(3):
            at[:, axis] |= (code >> (3 * bit + 2 - axis) & 1) << bit
    at[:, :3] <<= (BITS - level[:, None]).astype(np.int64)
    at[:, 3] = np.maximum(GRID - level, 0)
    return at


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

    def __init__(
        self, cloud: Cloud, open_cells: Any, base: int, options: "Options", fewest: float
    ) -> None:
        self.cloud, self.open_cells, self.base = cloud, open_cells, base
        depth = FINER if base else GRID
        self.levels = range(base + 1 if base else 0, base + depth + 1)
        sizes = [int(open_cells.size) << 3 * (level - base) for level in self.levels]
        self.n_first, self.n_last, self.size = sizes[0], sizes[-1], sum(sizes)
        self.moments = cloud.empty((self.size, MOMENTS))
        last, start = self.levels[-1], self.size - self.n_last
        table = cloud.moments(self.n_last, last)
        cloud.each("centre_moments", self.n_last, table, 1 << (BITS - last), self.moments[start:])
        for level, size in zip(self.levels[-2::-1], sizes[-2::-1], strict=True):
            side = 1 << (BITS - level - 1)
            cloud.each("halve", size, self.moments, start, start - size, side)
            start -= size
        self.values, self.planar = cloud.empty((self.size, 3)), cloud.empty(self.size, np.uint8)
        cloud.each("spectra", self.size, self.moments, fewest, self.values)
        cloud.each(
            "judge", self.size, self.moments, self.values, self.n_first, options.max_thickness,
            options.min_isotropy, self.planar,
        )  # fmt: skip

    def nodes(self, limits: "_Limits") -> tuple[Any, Any]:
        """Describe the nodes without their outliers; give the open cells of the last level, too."""
        cloud = self.cloud
        s_level = MAX_LEVEL + 1 if limits.s_level is None else limits.s_level
        at, state, inner, ranks = cloud.walk(self, s_level, limits.deepest, limits.s_ms)
        where = at, self.n_first, self.levels[0], self.base, self.open_cells, self.moments
        n = int(at.size)
        planes, corners = cloud.empty((n, 5)), cloud.empty((n, 4), np.int64)
        cloud.each("place", n, *where, planes, corners)
        outliers = cloud.sift(self.levels[-1], state, ranks, planes, corners)
        rows = cloud.empty((n, sum(WIDTHS)))
        cloud.each("describe", n, *where, self.planar, outliers, rows)
        return rows, inner


def stairs(nodes: PlanarNodes) -> Any:
    """Tell which nodes are steps of stairs: exact, nearly all parallel, and at many depths.

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


def faces_down(normals: Any) -> Any:
    """Tell which normals, float64[n, 3], have a largest component that is negative: bool[n]."""
    largest = np.abs(normals).argmax(1)[:, None]
    return np.take_along_axis(normals, largest, 1)[:, 0] < 0


def weighted_median(values: Any, weights: Any) -> float:
    """Give the smallest value up to which half of the weights lie; 0 for no values."""
    order = np.argsort(values, kind="stable")
    upto = weights[order].cumsum()
    return float(values[order[np.searchsorted(upto, upto[-1] / 2)]]) if upto.size else 0.0


def _wider(cells: dict[int, Summary], due: int, size: int, narrow: float) -> int:
    """Choose a level of wider cells if those that are due are narrow for the noise of their points.

    Narrow cells have imprecise normals, or are too thick. Noise is what makes cells relatively
    thicker, the narrower they are; surfaces of many details make them thinner.

    Parameters
    ----------
    cells : dict
        Levels of the first grid.
    narrow : float
        See NARROW.
    """
    finer, level = cells.get(due + 1), due
    if finer is not None and finer.ratio < cells[due].ratio:
        return due
    while level - 1 in cells and cells[level].ratio >= narrow:
        wider = cells[level - 1]
        enough = max(SEEN * size, KEPT * cells[level].planar_points)
        growth = wider.ratio / cells[due].ratio
        if wider.planar_points < enough or growth > AS_THICK:
            break
        if growth * 4.0 ** (due - wider.level) > GROWN:
            break
        level -= 1
    return level


def _bend(cells: Summary, parts: Summary) -> bool:
    """Tell whether surfaces bend in cells, so that their parts are relatively thinner.

    Where hardly any parts are planar, these are the ones that look thin by chance.
    """
    same = parts.planar_points >= KEPT * cells.planar_points
    return same and 0.0 < parts.thickness < FALL * cells.thickness


def _noise(cells: dict[int, Summary], size: int, narrow: float) -> float | None:
    """Give the variance of the noise of a cloud, see `_Limits`."""
    known = [
        each
        for each in cells.values()
        if each.occupancy >= MIN_S_MS and each.planar_points >= SEEN * size
    ]
    if not known:
        return None
    finest = known[-1]
    above = cells.get(finest.level - 1)
    if finest.thickness >= narrow and not (above and _bend(above, finest)):
        return None
    return finest.noise if finest.noise > EXACT**2 else None


def _divisible(cells: Summary, above: Summary | None, size: int) -> bool:
    """Tell whether cells have enough points for nodes, and surfaces bend in those above."""
    enough = cells.occupancy >= max(FEWEST, size / MOST_NODES)
    enough = enough and cells.planar_points >= SEEN * size
    precise = cells.ratio <= PRECISE * PRECISE * cells.occupancy
    return enough and precise and above is not None and _bend(above, cells)


def _finest(cells: dict[int, Summary], due: int | None, size: int) -> int | None:
    """Choose the finest level at which surfaces bend less, or the one that is due."""
    finest = due
    for level, each in cells.items():
        if due is not None and level > due and _divisible(each, cells.get(level - 1), size):
            finest = level
    return finest


def fewest_of_node(options: "Options", size: int) -> float:
    """Give the minimum number of points of each node of a cloud of `size` points, or a lower one.

    Without s_ms and s_ps it follows from the points in the cells, see `_Limits.seen`.
    """
    s_ms = options.s_ms if options.s_ps is None else options.s_ps * size
    return float(max(MIN_S_MS if s_ms is None else s_ms, MIN_POINTS))


@dataclass(frozen=True)
class _Limits:
    """The conditions for nodes; s_level is None until a level with thin enough cells was found."""

    s_level: int | None
    s_ms: float
    deepest: int
    by_occupancy: bool
    """Whether s_ms follows from the number of points in nodes of s_level."""
    above: "Summary | None" = None
    """Cells of the last level of the grid before, where s_level was not found in it."""
    noise: float | None = None
    """Variance of the noise of the cloud in squares of half sides of the root: across the finest
    cells with enough points. None where noise is not told from the waves of a sensor."""

    @classmethod
    def of(cls, options: "Options", size: int) -> "_Limits":
        by_occupancy = options.s_ms is None and options.s_ps is None
        fewest = fewest_of_node(options, size)
        return cls(options.s_level, fewest, MAX_LEVEL, by_occupancy=by_occupancy)

    def fewest(self, base: int) -> float:
        """Give the points of a cell whose variances are needed, in a grid below level `base`.

        Levels are summarized, and parts compared with cells, from some points on. Where nothing
        but nodes is looked for, in a single level of parts, these are the points of a node.
        """
        known = base > 0 and self.s_level is not None
        return self.s_ms if known else min(self.s_ms, float(min(MIN_S_MS, PART_POINTS)))

    def seen(self, grid: _Grid, options: "Options", wide: int) -> "_Limits":
        """Choose the limits that are not known yet from the levels of a grid."""
        if self.s_level is not None and not (self.by_occupancy and self.s_level in grid.levels):
            return self
        level, size = self.s_level, grid.cloud.size
        cells = {each.level: each for each in grid.cloud.summarize(grid)}
        if self.above is not None:
            cells = {self.above.level: self.above, **cells}
        narrow = NARROW * options.max_thickness
        limits = replace(self, noise=_noise(cells, size, narrow))
        if level is None:
            limit, last = max(OCCUPANCIES[wide], size / SHARES[wide]), cells[grid.levels[-1]]
            level = next((each for each in cells if cells[each].occupancy <= limit), None)
            above = cells.get(last.level - 1, last)
            as_thick = last.ratio >= above.ratio > 0.0
            if level is None and as_thick and last.ratio >= narrow:
                level = last.level if last.planar_points >= SEEN * size else None
            finest = _finest(cells, level, size) if wide == 0 else level
            if finest == last.level < MAX_LEVEL and wide == 0:
                parts = replace(last, occupancy=last.occupancy / 4)
                finest = None if _divisible(parts, above, size) else finest
            if finest is None:
                return replace(limits, above=last)
            if finest == level and level in grid.levels:
                finest = _wider({each: cells[each] for each in grid.levels}, level, size, narrow)
            level = max(finest, grid.levels[0])
            limits = replace(limits, s_level=level)
        if not self.by_occupancy:
            return limits
        rich = cells[level].occupancy > OCCUPANCIES[wide]
        s_ms = max(float(MIN_S_MS), cells[level].occupancy / PARTS[rich])
        deepest = level + BELOW[rich]
        return replace(limits, s_ms=s_ms, deepest=deepest, by_occupancy=False)
