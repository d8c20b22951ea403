"""Which of several placements is the right one, if any can be told to be."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .refine import FINE, FOUR, RADII, SIX, Faces, refine
from .search import Pose, classes_of, main_axis, poses, poses_near, weights_of
from .surfels import Surfels

TOLERANCE = 0.05
"""Metres: a surfel of the scan that is nearer to a face of its direction is explained by it."""
COARSE, SAMPLE = 3000, 20_000
"""Surfels of the scan with which candidates are compared first, and at last."""
KEPT = 12
"""Candidates that are compared at last."""
LIKELY = 0.75
"""Share of the best score above which a candidate's surroundings are searched: layers along three
axes cost the right one more than a wrong one that happens to lie exactly."""
BESIDE = (0.06, 0.12)
"""Metres: how far beside a candidate a better one is looked for. Layers of an element, such as
flooring and slab, hold a placement that is off by their thickness."""
GAIN = 0.01
"""Of the score: a step beside a candidate that gains less is the last one."""
TIGHT = (0.03, 0.02, 0.02, 0.015, 0.015, 0.015)
"""Metres: radii of the last steps. Points of a cell are averaged, so that their noise is less."""
AROUND = (0.01, 0.02, 0.03)
"""Metres: how far from a placement it is looked for where most surfaces agree exactly."""
SAME = 0.1, 1.0
"""Metres and degrees: candidates that differ less are one."""
LEAST_SURFELS = 100
"""Of the scan: with fewer nothing is found."""
LEAST_EXPLAINED = 0.5
"""Share of the floors, of the walls along an axis and of those across it, each, that a candidate
must explain."""
LEAST_SHARE = 0.02
"""Of the surfels: floors or walls that are fewer are not asked for."""
BLOCK = 1.0
"""Metres: surfels in a cube of this edge are explained together or not, so they count as one."""
SURE = 4.0
"""Standard deviations by which a candidate must explain more than another one."""
TIMES = 3.0
"""How many times as much it must explain alone as the other one does."""
MARGIN = 0.03
"""Share of the surface by which it must explain more at least."""
SIGMA = 0.02, 0.2
"""Metres and degrees: a candidate that is less certain is no placement."""


@dataclass(frozen=True)
class Candidate:
    """A placement, and what speaks for it.

    Parameters
    ----------
    pose : Pose
    explained : float
        Share of the scan's surfels on the model.
    score : float
        The same, with floors, walls along an axis and walls across it of similar weight, and less
        of surfels that are farther from their faces.
    least : float
        The least of the shares of these three.
    rmse : float
        Metres: of the distances of those on the model.
    sigma : float64[6]
        Standard deviations of the shift, in metres, and of the turn about x, y and z, in degrees.
    is_on : bool[n]
        Which surfels are explained.
    status : str
    worse : float
        Share of the surface that only the best candidate explains, less that which only this one
        does.
    """

    pose: Pose
    explained: float
    score: float
    least: float
    rmse: float
    sigma: Any
    is_on: Any
    status: str = "not found"
    worse: float = 0.0


def candidates(
    scan: Surfels, model: Surfels, faces: Faces, *, tilt: bool, placed: bool
) -> list[Candidate]:
    """List the placements of a scan whose z-axis is nearly the vertical, the best first.

    Parameters
    ----------
    scan, model : Surfels
    faces : Faces
        Of the model.
    tilt : bool
        Whether six movements are free at last, not four.
    placed : bool
        Whether the scan is near its place.
    """
    if len(scan) < LEAST_SURFELS or not len(model):
        return []
    sample, small = some(scan, SAMPLE), some(scan, COARSE)
    axis = main_axis(model)
    rough = []
    for _, pose in poses_near(small, model) if placed else poses(scan, model):
        moved = refine(faces, small, pose, RADII)
        rough.append((score(faces, small, moved, axis), moved))
    middle = small.places.mean(axis=0)
    rough.sort(key=lambda each: -each[0])
    likely = [pose for score, pose in rough if score >= LIKELY * rough[0][0]]
    for pose in _distinct(likely, middle, KEPT, SAME):
        rough += _climbed(faces, small, pose, axis, BESIDE, FINE)
    rough.sort(key=lambda each: -each[0])
    fine: list[Candidate] = []
    for pose in _distinct([pose for _, pose in rough], middle, KEPT, SAME):
        moved = refine(faces, sample, pose, FINE, SIX if tilt else FOUR)
        fine.append(judge(faces, sample, moved, axis, SIX if tilt else FOUR))
    fine.sort(key=lambda each: -each.score)
    kept = _distinct([each.pose for each in fine], middle, KEPT, SAME)
    fine = [each for each in fine if any(each.pose is pose for pose in kept)]
    free = SIX if tilt else FOUR
    return [
        each if each.status == "not found" else _settled(faces, small, sample, each, axis, free)
        for each in _with_status(sample, fine)
    ]


def _with_status(sample: Surfels, found: list[Candidate]) -> list[Candidate]:
    """Say of each candidate what it is; see README.md."""
    if not found:
        return []
    best, cubes = found[0], cubes_of(sample)
    rivals = [each for each in found[1:] if not is_better(best, each, cubes)]
    is_certain = best.sigma[:3].max() <= SIGMA[0] and best.sigma[3:].max() <= SIGMA[1]
    if best.least < LEAST_EXPLAINED:
        status = "not found"
    elif rivals or not is_certain:
        status = "ambiguous"
    else:
        status = "found"
    listed = [best, *(rivals if status == "ambiguous" else [])]
    rows = []
    for each in found:
        off = float(best.is_on.mean() - each.is_on.mean())
        own = status if any(each is other for other in listed) else "not found"
        rows.append(replace(each, status=own, worse=off))
    return rows


def _settled(
    faces: Faces, small: Surfels, sample: Surfels, found: Candidate, axis: float, free: Any
) -> Candidate:
    """Move a placement to where most surfaces agree exactly.

    Elements that were built some centimetres off are near enough to their faces to pull at a
    placement. Within `TIGHT` of the others they do not count, whichever way they are off.
    """
    tried = _climbed(faces, small, found.pose, axis, AROUND, TIGHT, free, TIGHT[-1])
    _, best = max(tried, key=lambda each: each[0])
    judged = judge(faces, sample, refine(faces, sample, best, TIGHT[-2:], free), axis, free)
    return replace(judged, status=found.status, worse=found.worse)


def _climbed(
    faces: Faces,
    scan: Surfels,
    pose: Pose,
    axis: float,
    steps: tuple[float, ...],
    radii: tuple[float, ...],
    free: Any = FOUR,
    radius: float = TOLERANCE,
) -> list[tuple[float, Pose]]:
    """Adjust a placement and those beside it, and those beside the best of these while it gains.

    Layers may hold a placement along two axes at once, and a step along one of them leaves the
    other.

    Returns
    -------
    list of score, Pose
        All that were adjusted.
    """
    found: list[tuple[float, Pose]] = []
    while True:
        poses = [refine(faces, scan, each, radii, free) for each in beside(pose, steps)]
        tried = [(score(faces, scan, each, axis, radius), each) for each in poses]
        found += tried
        best, pose = max(tried, key=lambda each: each[0])
        # the first of them is the placement itself
        if best < tried[0][0] + GAIN:
            return found


def is_clear(one: Candidate, other: Candidate, scan: Surfels) -> bool:
    """Whether one placement is better than another one, perhaps with another vertical."""
    return is_better(one, other, cubes_of(some(scan, SAMPLE)))


def some(scan: Surfels, count: int) -> Surfels:
    """Take so many surfels at random, the same ones each time."""
    return scan.take(np.sort(np.random.default_rng(0).permutation(len(scan))[:count]))


def cubes_of(sample: Surfels) -> Any:
    """Give the number of the cube in which each surfel is: int64[n]."""
    return np.unique(np.floor(sample.places / BLOCK), axis=0, return_inverse=True)[1].ravel()


def is_better(one: Candidate, other: Candidate, cubes: Any) -> bool:
    """Whether one candidate explains more of the scan than another one by more than chance.

    The difference is summed up in cubes, which are the independent observations.
    """
    difference = np.bincount(cubes, one.is_on.astype(float) - other.is_on)
    more, less = difference[difference > 0].sum(), -difference[difference < 0].sum()
    chance = np.sqrt((difference**2).sum())
    return bool(
        more - less >= max(SURE * chance, MARGIN * len(cubes)) and more >= TIMES * less and more > 0
    )


def beside(pose: Pose, steps: tuple[float, ...]) -> list[Pose]:
    """List a placement, and those that are shifted a little, either way along each axis."""
    shifts = [sign * step * axis for step in steps for axis in np.eye(3) for sign in (1, -1)]
    return [pose, *(Pose(pose.turn, pose.shift + shift) for shift in shifts)]


def _distinct(listed: list[Pose], middle: Any, count: int, same: tuple[float, float]) -> list[Pose]:
    """Take the first placements that differ by more than so many metres or degrees."""
    kept: list[Pose] = []
    for pose in listed:
        if len(kept) == count:
            break
        if not any(_is_same(pose, other, middle, same) for other in kept):
            kept.append(pose)
    return kept


def _is_same(one: Pose, other: Pose, middle: Any, same: tuple[float, float]) -> bool:
    off = one.turn @ middle + one.shift - other.turn @ middle - other.shift
    cosine = (np.trace(one.turn @ other.turn.T) - 1) / 2
    angle = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
    return bool(np.linalg.norm(off) <= same[0] and angle <= same[1])


def score(faces: Faces, scan: Surfels, pose: Pose, axis: float, radius: float = TOLERANCE) -> float:
    """Sum up what a pose explains, each kind of surface by its weight."""
    distance = faces.measure(scan, pose, radius, np.empty((len(scan), 6)))
    classes = classes_of(scan.normals @ pose.turn.T, axis)
    return _weighted(distance, weights_of(classes), radius)


def _weighted(distance: Any, weights: Any, radius: float) -> float:
    """Sum up what is explained; a surfel counts the less, the farther it is from the face."""
    is_on = ~np.isnan(distance)
    return float((weights[is_on] * (1 - (distance[is_on] / radius) ** 2) ** 2).sum())


def judge(
    faces: Faces, scan: Surfels, pose: Pose, axis: float, free: Any, radius: float = TOLERANCE
) -> Candidate:
    """Measure what speaks for a pose: surfels within the radius of a face are explained."""
    jacobian = np.empty((len(scan), 6))
    distance = faces.measure(scan, pose, radius, jacobian)
    is_on = ~np.isnan(distance)
    classes = classes_of(scan.normals @ pose.turn.T, axis)
    counts = np.bincount(classes, minlength=3)
    on = np.bincount(classes, is_on, 3)
    asked = counts >= LEAST_SHARE * counts.sum()
    weights = weights_of(classes)
    return Candidate(
        pose,
        float(is_on.mean()),
        _weighted(distance, weights, radius),
        float((on[asked] / counts[asked]).min()),
        float(np.sqrt(np.mean(distance[is_on] ** 2))) if is_on.any() else np.nan,
        deviations(scan, distance, jacobian, free),
        is_on,
    )


def deviations(scan: Surfels, distance: Any, jacobian: Any, free: Any) -> Any:
    """Estimate the standard deviations of a placement from what is left after the adjustment.

    Distances of surfels that are near to each other are not independent: elements were not built
    exactly where they were planned. So each cube of `BLOCK` counts once (the cluster-robust
    covariance of Liang and Zeger, Biometrika 73, 1986).

    Returns
    -------
    float64[6]
        Metres along x, y, z, degrees about them; infinite where nothing tells.
    """
    found = np.zeros(6)
    is_on = ~np.isnan(distance)
    some = jacobian[is_on][:, free]
    cubes = np.unique(np.floor(scan.places[is_on] / BLOCK), axis=0, return_inverse=True)[1].ravel()
    pull = np.zeros((int(cubes.max(initial=-1)) + 1, len(free)))
    np.add.at(pull, cubes, some * distance[is_on][:, None])
    matrix = some.T @ some
    if not len(pull) or np.linalg.cond(matrix) > 1e9:
        found[free] = np.inf
        return found
    inverse = np.linalg.inv(matrix)
    covariance = inverse @ (pull.T @ pull) @ inverse
    found[free] = np.sqrt(np.maximum(np.diag(covariance), 0))
    found[3:] = np.degrees(found[3:])
    return found
