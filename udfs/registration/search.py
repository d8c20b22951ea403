"""Candidates of a placement: turns by directions of walls, shifts by correlation of surfaces."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.runtime.threads import workers

from .surfels import Surfels

BINS = 360
"""Of the directions of walls, which have no side: half a degree each."""
SMOOTH = 2.0
"""Bins: standard deviation by which directions are smoothed."""
LEAST_TURN = 0.5
"""Turns that explain less than this share of the best are no candidates."""
TURNS = 6
"""Turns at most, without their opposites."""
APART = 8
"""Bins between turns."""
CELL = 0.25
"""Metres: of the grids that are correlated."""
MAX_CELLS = 12_000_000
"""Of a grid: larger buildings have larger cells."""
PEAKS = 24
"""Shifts of each turn that are looked at."""
LEAST_PEAK = 0.5
"""Shifts that explain less than this share of the best are no candidates."""
WINDOW = 1.0, 2.0
"""Metres and degrees: how far a scan that is said to be placed may be off."""
UPRIGHT = 0.9
"""Cosine: a normal that is this near to the vertical is that of a floor or ceiling."""


@dataclass(frozen=True)
class Pose:
    """A rigid movement: a point p goes to ``turn @ p + shift``."""

    turn: Any
    shift: Any


def about_z(angle: float) -> Any:
    """Make the matrix of a turn about the vertical, counter-clockwise, in radians."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([(c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)])


def poses(scan: Surfels, model: Surfels) -> list[tuple[float, Pose]]:
    """List possible placements of a scan whose z-axis is the vertical, the best first.

    Returns
    -------
    list of score, Pose
        Of all turns about the vertical and all shifts those at which most surface lies on
        surface of its direction.
    """
    grid = _Grid.of(scan, model)
    turns = turns_of(scan, model)
    with workers(min(2, max(1, len(turns)))) as pool:
        found = pool.map(grid.shifts, turns)
    best = [pose for each in found for pose in each]
    best.sort(key=lambda each: -each[0])
    return [each for each in best if each[0] >= LEAST_PEAK * best[0][0]]


def poses_near(scan: Surfels, model: Surfels, *, storeys: bool = False) -> list[tuple[float, Pose]]:
    """List placements that move a scan little, see `WINDOW`, the best first; as `poses`.

    With `storeys` those, too, that move it straight up or down by the model's height at most.
    """
    middle = scan.places.mean(axis=0)
    score = _scores_of_turns(scan, model)
    most = int(WINDOW[1] / 180 * BINS)
    turn = np.eye(3)
    if score is not None:
        near = np.arange(-most, most + 1)
        turn = about_z(_between(score, int(near[np.argmax(score[near])])))
    axis, corner = main_axis(model), model.places.min(axis=0) - WINDOW[0]
    size = np.ptp(model.places, axis=0) + 2 * WINDOW[0]
    cell = max(CELL, float((size.prod() / MAX_CELLS) ** (1 / 3)))
    shape = (size / cell).astype(np.int64) + 2
    filled = np.zeros((3, *shape), np.bool_)
    at = np.round((model.places - corner) / cell).astype(np.int64)
    filled[classes_of(model.normals, axis), at[:, 0], at[:, 1], at[:, 2]] = True
    classes = classes_of(scan.normals @ turn.T, axis)
    weights = weights_of(classes)
    places = (scan.places - middle) @ turn.T + middle
    steps = np.arange(-math.ceil(WINDOW[0] / cell), math.ceil(WINDOW[0] / cell) + 1)
    tried = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 3)
    if storeys:
        up = np.arange(steps[-1] + 1, shape[2])
        upright = np.concatenate([-up, up])[:, None] * np.array([0, 0, 1])
        tried = np.concatenate([tried, upright])
    found = []
    for cells in tried:
        shift = cells * cell
        at = np.round((places + shift - corner) / cell).astype(np.int64)
        inside = ((at >= 0) & (at < shape)).all(axis=1)
        x, y, z = at[inside].T
        value = float(weights[inside][filled[classes[inside], x, y, z]].sum())
        found.append((value, Pose(turn, middle + shift - turn @ middle)))
    found.sort(key=lambda each: -each[0])
    return found[:PEAKS]


def turns_of(scan: Surfels, model: Surfels) -> list[float]:
    """List the turns, in radians, at which walls of both have the same directions."""
    score = _scores_of_turns(scan, model)
    if score is None:
        return []
    turns: list[float] = []
    left = score.copy()
    while len(turns) < 2 * TURNS:
        k = int(np.argmax(left))
        if left[k] <= LEAST_TURN * score.max() or left[k] <= 0:
            break
        angle = _between(score, k)
        turns += [angle, angle + math.pi]
        left[np.arange(k - APART, k + APART + 1) % BINS] = 0
    return turns


def _scores_of_turns(scan: Surfels, model: Surfels) -> Any:
    """Correlate the directions of walls: float64[BINS], or None where one has no walls."""
    one, other = _directions(scan), _directions(model)
    if not (one.any() and other.any()):
        return None
    smooth = np.exp(-0.5 * ((np.arange(BINS) + BINS // 2) % BINS - BINS // 2) ** 2 / SMOOTH**2)
    spectrum = np.conj(np.fft.rfft(one)) * np.fft.rfft(other) * np.fft.rfft(smooth / smooth.sum())
    score = np.fft.irfft(spectrum, BINS)
    return score - score.min()


def _between(score: Any, k: int) -> float:
    """Find the angle of a peak, in radians, by a parabola through its neighbours."""
    before, here, after = score[k - 1], score[k], score[(k + 1) % BINS]
    curve = before - 2 * here + after
    part = 0.5 * (before - after) / curve if curve < 0 else 0.0
    return float((k + min(max(part, -0.5), 0.5)) * math.pi / BINS)


def _directions(surfels: Surfels) -> Any:
    """Area of walls by direction of their normals, without a side."""
    x, y, z = surfels.normals.T
    is_wall = np.abs(z) < 0.2
    position = (np.arctan2(y[is_wall], x[is_wall]) / math.pi % 1.0) * BINS - 0.5
    lower = np.floor(position)
    part, area = position - lower, surfels.area[is_wall]
    at = lower.astype(np.int64) % BINS
    return np.bincount(at, area * (1 - part), BINS) + np.bincount(
        (at + 1) % BINS, area * part, BINS
    )


def axes_of(axis: float) -> Any:
    """Give the normals of floors and of walls of both directions: float64[3, 3]; see classes_of."""
    c, s = math.cos(axis), math.sin(axis)
    return np.array([(0.0, 0.0, 1.0), (c, s, 0.0), (-s, c, 0.0)])


def classes_of(normals: Any, axis: float) -> Any:
    """Sort normals: 0 floors and ceilings, 1 walls along the axis, 2 walls across it."""
    x, y, z = normals.T
    double = 2 * (np.arctan2(y, x) - axis)
    return np.where(np.abs(z) > UPRIGHT, 0, np.where(np.cos(double) > 0, 1, 2))


def weights_of(classes: Any) -> Any:
    """Weigh surfels so that floors, of which any shift explains much, do not outweigh walls."""
    counts = np.bincount(classes, minlength=3)
    each = np.where(counts > 0, 1 / np.sqrt(np.maximum(counts, 1)), 0.0)[classes]
    return each / max(each.sum(), 1e-300)


def main_axis(model: Surfels) -> float:
    """Find the direction of most walls, in radians, of those at right angles together."""
    directions = _directions(model)
    quarter = directions[: BINS // 2] + directions[BINS // 2 :]
    smooth = quarter + np.roll(quarter, 1) + np.roll(quarter, -1)
    return (int(np.argmax(smooth)) + 0.5) * math.pi / BINS


@dataclass(frozen=True)
class _Grid:
    """Grids of scan and model for the correlation, large enough for any shift."""

    scan: Surfels
    axis: float
    cell: float
    shape: tuple[int, ...]
    corner: Any
    size: Any
    """Of the model."""
    middle: Any
    """Of the scan."""
    spectra: Any

    @classmethod
    def of(cls, scan: Surfels, model: Surfels) -> "_Grid":
        corner = model.places.min(axis=0)
        middle = np.median(scan.places, axis=0)
        size = np.ptp(model.places, axis=0)
        # strays farther away than the model is long cannot be on it together with the others
        off = scan.places - middle
        is_near = (np.hypot(off[:, 0], off[:, 1]) <= np.hypot(*size[:2])) & (
            np.abs(off[:, 2]) <= size[2] + 1
        )
        scan = scan.take(is_near)
        off = scan.places - middle
        reach = 2 * float(np.hypot(off[:, 0], off[:, 1]).max())
        extent = size + np.array([reach, reach, float(np.ptp(off[:, 2]))])
        cell = max(CELL, float((extent.prod() / MAX_CELLS) ** (1 / 3)))
        shape = tuple(_smooth_size(math.ceil(each / cell) + 4) for each in extent)
        axis = main_axis(model)
        full = []
        classes = classes_of(model.normals, axis)
        for k in range(3):
            chosen = model.take(classes == k)
            filled = _splat((chosen.places - corner) / cell, shape)
            filled *= np.float32(float(model.area[0]) / cell**2)
            full.append(np.fft.rfftn(np.minimum(filled, np.float32(1))))
        return cls(scan, axis, cell, shape, corner, size, middle, full)

    def shifts(self, angle: float) -> list[tuple[float, Pose]]:
        """List the shifts after a turn at which most surface lies on surface."""
        turn = about_z(angle)
        places = (self.scan.places - self.middle) @ turn.T
        low = places.min(axis=0)
        classes = classes_of(self.scan.normals @ turn.T, self.axis)
        weights = weights_of(classes)
        total: Any = 0
        for k in range(3):
            here = classes == k
            if not here.any():
                continue
            filled = _splat((places[here] - low) / self.cell, self.shape)
            filled *= np.float32(weights[here][0])
            total = total + np.conj(np.fft.rfftn(filled)) * self.spectra[k]
        score = np.fft.irfftn(total, self.shape, axes=(0, 1, 2))
        found = []
        best = float(score.max())
        for _ in range(PEAKS):
            at = np.unravel_index(int(np.argmax(score)), self.shape)
            value = float(score[at])
            if value < LEAST_PEAK * best or value <= 0:
                break
            cells = np.array(
                [
                    k - n if k * self.cell > longest + 2 * self.cell else k
                    for k, n, longest in zip(at, self.shape, self.size, strict=True)
                ]
            )
            shift = self.corner + cells * self.cell - low - turn @ self.middle
            found.append((value, Pose(turn, shift)))
            window = np.ix_(
                *(np.arange(k - 2, k + 3) % n for k, n in zip(at, self.shape, strict=True))
            )
            score[window] = 0
        return found


def _splat(places: Any, shape: tuple[int, ...]) -> Any:
    """Divide places among the eight cells around each, by their nearness."""
    size = shape[0] * shape[1] * shape[2]
    lower = np.floor(places).astype(np.int64)
    part = places - lower
    filled = np.zeros(size, np.float32)
    for corner in np.ndindex(2, 2, 2):
        at = [(lower[:, k] + corner[k]) % shape[k] for k in range(3)]
        weight = np.prod([part[:, k] if corner[k] else 1 - part[:, k] for k in range(3)], axis=0)
        flat = (at[0] * shape[1] + at[1]) * shape[2] + at[2]
        filled += np.bincount(flat, weight, size).astype(np.float32)
    return filled.reshape(shape)


def _smooth_size(n: int) -> int:
    """Find the least number from n on that has no prime factors but 2, 3 and 5."""
    while True:
        rest = n
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return n
        n += 1
