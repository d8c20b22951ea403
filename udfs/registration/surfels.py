"""Surfels: places on a surface with a normal, of a cloud of points and of meshes.

Those of a cloud are its cells in which the points lie on a plane, one each: so they are spread
evenly, whatever the density of the scan, and their noise is less than that of a point.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.points import read_only
from spatialq.geometry.solids import sides
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import in_threads, steps

if TYPE_CHECKING:
    from spatialq.data.meshes import Meshes

EDGE = 0.2
"""Metres: edge of the cells of a cloud. In smaller ones 10 mm of noise hide a normal."""
MIN_POINTS = 8
"""Points that a cell must have."""
MAX_THICKNESS = 0.08
"""The smallest variance of a planar cell is less than this share of the second one."""
MIN_ISOTROPY = 0.1
"""The second variance of a planar cell is more than this share of the largest."""
SPACING = 0.1
"""Metres between surfels of a model."""
MAX_SURFELS = 3_000_000
"""Of a model: a larger one has wider spacing."""
AXIS_BITS = 21
AHEAD, ASIDE = 0.3, 0.5
"""Metres that a surfel is above another one at least, and its height as a share of the distance, to
be before that."""
SEEN_TO = 5.0
"""Metres from a surfel within which others say on which side of it the scanner was."""
LEAST_BEFORE, MOST_BEHIND = 5, 0.02
"""Surfels before another one, at least, and those behind it as a share of these, at most, where its
side is known."""
GOLDEN = (0.7548776662466927, 0.5698402909980532)
"""Steps of the R2 sequence, whose points cover a square evenly."""


@dataclass(frozen=True)
class Surfels:
    """Places on a surface.

    Parameters
    ----------
    places, normals : float64[n, 3]
        Metres, and unit vectors.
    area : float64[n]
        Square metres of surface that each stands for.
    is_sided : bool[n], optional
        Which normals point to the side from which the surface can be seen; others either way. By
        default none is known to.
    """

    places: Any
    normals: Any
    area: Any
    is_sided: Any = None

    def __post_init__(self) -> None:
        if self.is_sided is None:
            object.__setattr__(self, "is_sided", np.zeros(len(self.places), np.bool_))

    def __len__(self) -> int:
        return len(self.places)

    def take(self, rows: Any) -> "Surfels":
        """Take some."""
        return Surfels(self.places[rows], self.normals[rows], self.area[rows], self.is_sided[rows])

    def moved(self, by: Any) -> "Surfels":
        """Move all."""
        return Surfels(self.places + by, self.normals, self.area, self.is_sided)


def of_cloud(
    x: Any, y: Any, z: Any, metres: float, edge: float, *, box: Any = None, share: int = 1
) -> Surfels:
    """Find the cells of a cloud whose points lie on a plane.

    Parameters
    ----------
    x, y, z : float64[n]
        Finite.
    metres : float
        In a unit of x, y and z.
    edge : float
        Metres: of a cell.
    box : float64[2, 3], optional
        In the unit of x, y and z: points outside are left out.
    share : int
        One of so many cells is looked at, whichever points there are.
    """
    if not x.size:
        return Surfels(np.empty((0, 3)), np.empty((0, 3)), np.empty(0))
    low = np.array([values.min() for values in (x, y, z)]) if box is None else box[0]
    high = np.full(3, np.inf) if box is None else box[1]
    x, y, z = (read_only(values) for values in (x, y, z))
    keys, moments, used = _table(1 << 12)
    for first, stop in steps(0, x.size):
        at = first
        while at < stop:
            at = _add(x, y, z, at, stop, low, high, metres / edge, share, keys, moments, used)
            if at < stop:
                grown = _table(2 * keys.size)
                _move(keys, moments, *grown)
                keys, moments, used = grown
    rows = np.flatnonzero(keys >= 0)
    rows = rows[moments[rows, 0] >= MIN_POINTS]
    rows = rows[np.argsort(keys[rows])]
    count, sums = moments[rows, 0], moments[rows, 1:]
    mean = sums[:, :3] / count[:, None]
    second = sums[:, 3:] / count[:, None]
    covariance = np.empty((len(rows), 3, 3))
    for k, (i, j) in enumerate([(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]):
        covariance[:, i, j] = covariance[:, j, i] = second[:, k] - mean[:, i] * mean[:, j]
    variance, vectors = np.linalg.eigh(covariance)
    is_planar = (variance[:, 0] < MAX_THICKNESS * variance[:, 1]) & (
        variance[:, 1] > MIN_ISOTROPY * variance[:, 2]
    )
    mask = (1 << AXIS_BITS) - 1
    cells = np.stack([keys[rows] >> shift & mask for shift in (2 * AXIS_BITS, AXIS_BITS, 0)], 1)
    places = low * metres + (cells + 0.5 + mean) * edge
    area = np.full(np.count_nonzero(is_planar), edge * edge)
    return Surfels(places[is_planar], np.ascontiguousarray(vectors[is_planar, :, 0]), area)


def _table(size: int) -> tuple[Any, Any, Any]:
    return np.full(size, -1, np.int64), np.zeros((size, 10)), np.zeros(1, np.int64)


def facing(scan: Surfels, others: Surfels) -> Surfels:
    """Turn normals to the side where the scanner was, if other surfels of the scan are only there.

    A scanner sees what is around it: the floor before a wall, and what is opposite. So nothing
    behind a surface was scanned from before it, but what is seen through a door or a window.
    """
    normals, is_sided = scan.normals.copy(), np.zeros(len(scan), np.bool_)
    in_threads(
        lambda span: _face(scan.places, others.places, *span, normals, is_sided),
        len(scan), most=1 << 10,
    )  # fmt: skip
    return Surfels(scan.places, normals, scan.area, is_sided)


@njit(cache=True, nogil=True)
def _face(places, others, first, stop, normals, is_sided):  # type: ignore[no-untyped-def]
    """Find the sides of the surfels first to stop."""
    for i in range(first, stop):
        before = behind = 0
        for j in range(others.shape[0]):
            height = square = 0.0
            for k in range(3):
                d = others[j, k] - places[i, k]
                height += d * normals[i, k]
                square += d * d
            if square > SEEN_TO**2 or abs(height) < AHEAD or height**2 < ASIDE**2 * square:
                continue
            if height > 0.0:
                before += 1
            else:
                behind += 1
        if behind > before:
            before, behind = behind, before
            for k in range(3):
                normals[i, k] = -normals[i, k]
        is_sided[i] = before >= LEAST_BEFORE and behind <= MOST_BEHIND * before


@njit(cache=True, nogil=True)
def _slot(key, keys):  # type: ignore[no-untyped-def]
    """Find the place of a key in a table with free places, of a size that is a power of two."""
    mixed = key * 0x9E3779B97F4A7C1
    slot = (mixed ^ (mixed >> 29)) & (keys.size - 1)
    while keys[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & (keys.size - 1)
    return slot


@njit(cache=True, nogil=True)
def _add(  # type: ignore[no-untyped-def]
    x, y, z, first, stop, low, high, scale, share, keys, moments, used
):
    """Sum up points in their cells; return the first that is left because the table is full."""
    mask = (1 << 21) - 1
    for i in range(first, stop):
        if not (
            (x[i] >= low[0]) & (x[i] <= high[0]) & (y[i] >= low[1]) & (y[i] <= high[1])
            & (z[i] >= low[2]) & (z[i] <= high[2])
        ):  # fmt: skip
            continue
        u, v, w = (x[i] - low[0]) * scale, (y[i] - low[1]) * scale, (z[i] - low[2]) * scale
        p, q, r = int(u), int(v), int(w)
        key = ((p & mask) << 42) | ((q & mask) << 21) | (r & mask)
        if share > 1 and (key * 0x9E3779B97F4A7C1 >> 31) % share != 0:
            continue
        slot = _slot(key, keys)
        if keys[slot] < 0:
            if 2 * used[0] > keys.size:
                return i
            keys[slot] = key
            used[0] += 1
        u, v, w = u - p - 0.5, v - q - 0.5, w - r - 0.5
        moments[slot, 0] += 1.0
        moments[slot, 1] += u
        moments[slot, 2] += v
        moments[slot, 3] += w
        moments[slot, 4] += u * u
        moments[slot, 5] += v * v
        moments[slot, 6] += w * w
        moments[slot, 7] += u * v
        moments[slot, 8] += u * w
        moments[slot, 9] += v * w
    return stop


@njit(cache=True, nogil=True)
def _move(keys, moments, to_keys, to_moments, used):  # type: ignore[no-untyped-def]
    """Enter the cells of a table in a larger one."""
    for i in range(keys.size):
        if keys[i] >= 0:
            slot = _slot(keys[i], to_keys)
            to_keys[slot] = keys[i]
            used[0] += 1
            for k in range(10):
                to_moments[slot, k] = moments[i, k]


def of_meshes(meshes: "Meshes", most: int = MAX_SURFELS) -> Surfels:
    """Spread surfels evenly over the faces of meshes, so many at most.

    Those of closed meshes can be seen from outside only.
    """
    corners = meshes.vertices[meshes.global_faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    double = np.linalg.norm(across, axis=1)
    is_face = double > 0
    side = sides(meshes)[meshes.face_mesh]
    across[side < 0] *= -1
    corners, across, area = corners[is_face], across[is_face], double[is_face] / 2
    is_closed = side[is_face] != 0
    cell = max(SPACING**2, float(area.sum()) / most)
    # small faces of a finely divided surface share their surfels by their running sum
    ends = np.floor(np.cumsum(area) / cell).astype(np.int64)
    counts = np.diff(ends, prepend=0)
    face = np.repeat(np.arange(len(area)), counts)
    number = np.arange(len(face)) - np.repeat(ends - counts, counts)
    s, t = ((0.5 + step * (number + 1)) % 1.0 for step in GOLDEN)
    outside = s + t > 1
    s, t = np.where(outside, 1 - s, s)[:, None], np.where(outside, 1 - t, t)[:, None]
    a, b, c = (corners[face, k] for k in range(3))
    normals = across[face] / (2 * area[face])[:, None]
    places = a + s * (b - a) + t * (c - a)
    return Surfels(places, normals, np.full(len(face), cell), is_closed[face])
