"""Which of several placements is the right one, if any can be told to be."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .refine import FINE, FOUR, RADII, SIX, Faces, refine
from .search import Pose, axes_of, classes_of, main_axis, poses, poses_near, weights_of
from .surfels import Surfels, facing

TOLERANCE = 0.05
"""Metres: a surfel of the scan that is nearer to a face of its direction is explained by it."""
COARSE, SAMPLE = 3000, 20_000
"""Surfels of the scan with which candidates are compared first, and at last."""
KEPT = 12
"""Candidates that are compared at last."""
LIKELY = 0.75
"""Share of the best score above which a candidate's surroundings are searched: layers along three
axes cost the right one more than a wrong one that happens to lie exactly."""
STEP = 0.8
"""Of the radius within which surfels are explained: shifts beside a placement that are compared."""
BESIDE = 13
"""Steps: how far beside a candidate, 0.5 m, a better one is looked for. Layers, such as flooring
and slab, floor and ceiling below it, or the faces of a wall, hold a placement that is off by their
distance."""
PLACES = 2
"""Shifts along each axis, either way, that are adjusted."""
GAIN = 0.01
"""Of the score: a step beside a candidate that gains less is the last one."""
TIGHT = (0.03, 0.02, 0.02, 0.015, 0.015, 0.015)
"""Metres: radii of the last steps. Points of a cell are averaged, so that their noise is less."""
AROUND = 6
"""Steps: how far from a placement, 70 mm, it is looked for where most surfaces agree exactly."""
SAME = 0.1, 1.0
"""Metres and degrees: candidates that differ less are one before they are settled."""
SAME_EXACTLY = 0.015, 0.2
"""The same, of those that are settled."""
AGREE = 0.95
"""Share of what a placement explains that must be on the right side of its faces, or the sides are
not used: of a building that was scanned from outside, too, and cut out, they are those of nothing.
"""
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
NEAR = 0.6, 1.0
"""Metres and degrees: candidates that differ less show the same elements in other layers."""
SURE_NEAR = 3.0
"""The same, of candidates that are near: there are few of them, so chance is less."""
TIMES = 3.0
"""How many times as much it must explain alone as the other one does."""
APART = 0.5
"""Metres: surfels of one direction that follow each other less far apart are of one layer, such as
the faces of a wall. It was built at its place or not, so it counts as one."""
WHOLE = 8.0
"""Surfels by which one candidate must explain more of a layer than another one for it to count
fully; it counts the less, the fewer they are."""
LAYERS = 3.0
"""Layers that must speak for a candidate: one or two elements may have been built just as the model
has them in another place."""
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
    sample = some(scan, SAMPLE)
    faced = facing(sample, some(sample, COARSE))
    listed = _listed(scan, faced, model, faces, tilt=tilt, placed=placed)
    if listed:
        axis, best = main_axis(model), listed[0]
        whichever = judge(faces, sample, best.pose, axis, FOUR)
        if best.explained < AGREE * whichever.explained:
            listed = _listed(scan, sample, model, faces, tilt=tilt, placed=placed)
        elif best.status == "not found":  # the sides may have led to the wrong place
            others = _listed(scan, sample, model, faces, tilt=tilt, placed=placed)
            if others and others[0].explained > best.explained:
                listed = others
    return listed


def _listed(
    scan: Surfels, sample: Surfels, model: Surfels, faces: Faces, *, tilt: bool, placed: bool
) -> list[Candidate]:
    """List the placements by a sample of the scan; see `candidates`."""
    small, axis = some(sample, COARSE), main_axis(model)
    rough = []
    for _, pose in poses_near(small, model) if placed else poses(scan, model):
        moved = refine(faces, small, pose, RADII)
        rough.append((score(faces, small, moved, axis), moved))
    middle = small.places.mean(axis=0)
    rough.sort(key=lambda each: -each[0])
    likely = [pose for score, pose in rough if score >= LIKELY * rough[0][0]]
    for pose in _distinct(likely, middle, KEPT, SAME):
        rough += _climbed(faces, small, pose, axis, FINE, FOUR, TOLERANCE, BESIDE)
    rough.sort(key=lambda each: -each[0])
    fine: list[Candidate] = []
    free = SIX if tilt else FOUR
    for pose in _distinct([pose for _, pose in rough], middle, KEPT, SAME):
        moved = refine(faces, sample, pose, FINE, free)
        fine.append(judge(faces, sample, moved, axis, free))
    fine.sort(key=lambda each: -each.score)
    fine = _different(fine, middle, SAME)
    if not fine or fine[0].least < LEAST_EXPLAINED:
        return _with_status(fine, 0)
    cubes = cubes_of(sample)
    rivals = [each for each in fine if each is fine[0] or not is_better(fine[0], each, cubes)]
    rest = [each for each in fine if not any(each is other for other in rivals)]
    settled = _settled(faces, small, sample, rivals, axis, free)
    return _with_status([*settled, *rest], len(settled))


def _with_status(listed: list[Candidate], possible: int) -> list[Candidate]:
    """Say of each candidate what it is, where the first ones are not told apart; see README.md."""
    if not listed:
        return []
    best, rows = listed[0], []
    is_certain = best.sigma[:3].max() <= SIGMA[0] and best.sigma[3:].max() <= SIGMA[1]
    status = "found" if possible == 1 and is_certain else "ambiguous"
    for row, each in enumerate(listed):
        worse = best.explained - each.explained
        rows.append(replace(each, status=status if row < possible else "not found", worse=worse))
    return rows


def _settled(
    faces: Faces, small: Surfels, sample: Surfels, found: list[Candidate], axis: float, free: Any
) -> list[Candidate]:
    """Move placements to where most surfaces agree exactly; list those that cannot be told apart.

    Elements that were built some centimetres off are near enough to their faces to pull at a
    placement. Within `TIGHT` of the others they do not count, whichever way they are off.
    """
    radius, middle = TIGHT[-1], small.places.mean(axis=0)
    exact = []
    for each in found:
        tried = _climbed(faces, small, each.pose, axis, TIGHT, free, radius, AROUND)
        tried.sort(key=lambda each: -each[0])
        for pose in _distinct([pose for _, pose in tried], middle, KEPT, SAME_EXACTLY):
            moved = refine(faces, sample, pose, TIGHT[-2:], free)
            exact.append(judge(faces, sample, moved, axis, free, radius))
    exact.sort(key=lambda each: -each.score)
    exact = _different(exact, middle, SAME_EXACTLY)
    best, cubes = exact[0], cubes_of(sample)
    layers = layers_of(sample, best.pose, axis)
    rivals = []
    for each in exact[1:]:
        difference = best.is_on.astype(float) - each.is_on
        if _is_same(best.pose, each.pose, middle, NEAR):
            is_told = _is_more(difference, cubes, SURE_NEAR, 0.0)
        else:
            is_told = layers.speak_for(difference)
        if not is_told:
            rivals.append(each)
    return [judge(faces, sample, each.pose, axis, free) for each in (best, *rivals)]


def _climbed(
    faces: Faces,
    scan: Surfels,
    pose: Pose,
    axis: float,
    radii: tuple[float, ...],
    free: Any,
    radius: float,
    reach: int,
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
    listed = [pose]
    gained = np.inf
    while listed and gained >= GAIN:
        before = max((each for each, _ in found), default=-np.inf)
        moved = [refine(faces, scan, each, radii, free) for each in listed]
        found += [(score(faces, scan, each, axis, radius), each) for each in moved]
        best, pose = max(found, key=lambda each: each[0])
        gained = best - before
        listed = beside(faces, scan, pose, axis, radius, reach) if gained >= GAIN else []
    return found


def beside(
    faces: Faces, scan: Surfels, pose: Pose, axis: float, radius: float, reach: int
) -> list[Pose]:
    """List placements beside one, along the main axes, where more is explained than around."""
    steps = np.arange(-reach, reach + 1)
    found = []
    for direction in axes_of(axis):
        shifted = [Pose(pose.turn, pose.shift + step * STEP * radius * direction) for step in steps]
        scores = np.array([score(faces, scan, each, axis, radius) for each in shifted])
        inner = scores[1:-1]
        is_peak = (inner >= scores[:-2]) & (inner >= scores[2:]) & (steps[1:-1] != 0)
        peaks = 1 + np.flatnonzero(is_peak)
        found += [shifted[k] for k in peaks[np.argsort(-scores[peaks], kind="stable")][:PLACES]]
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


@dataclass(frozen=True)
class Layers:
    """Where surfels lie across the surface that they are of.

    Parameters
    ----------
    classes : int64[n]
    depth : float64[n]
        Metres along the axis of the class.
    """

    classes: Any
    depth: Any

    def speak_for(self, difference: Any) -> bool:
        """Whether enough layers say that of two candidates the first one is right.

        Parameters
        ----------
        difference : float64[n]
            1 for surfels that only the first one explains, -1 for those that only the other does.
        """
        rows = np.flatnonzero(difference)
        if not len(rows):
            return False
        rows = rows[np.lexsort((self.depth[rows], self.classes[rows]))]
        is_next = (np.diff(self.depth[rows]) > APART) | (np.diff(self.classes[rows]) != 0)
        layer = np.concatenate([[0], np.cumsum(is_next)])
        votes = np.clip(np.bincount(layer, difference[rows]) / WHOLE, -1.0, 1.0)
        more, less = votes[votes > 0].sum(), -votes[votes < 0].sum()
        return bool(more - less >= LAYERS and more >= TIMES * less)


def layers_of(sample: Surfels, pose: Pose, axis: float) -> Layers:
    """Sort the surfels of a placed scan by class, and by their place across it."""
    classes = classes_of(sample.normals @ pose.turn.T, axis)
    depth = (sample.places @ pose.turn.T) @ axes_of(axis).T
    return Layers(classes, depth[np.arange(len(classes)), classes])


def is_better(one: Candidate, other: Candidate, cubes: Any) -> bool:
    """Whether one candidate explains more of the scan than another one by more than chance."""
    return _is_more(one.is_on.astype(float) - other.is_on, cubes, SURE, MARGIN)


def _is_more(difference: Any, cubes: Any, sure: float, margin: float) -> bool:
    """Whether surfels that one candidate explains outweigh those that only another one does.

    The difference, 1 or -1 for each, is summed up in cubes, which are the independent observations.
    """
    sums = np.bincount(cubes, difference)
    more, less = sums[sums > 0].sum(), -sums[sums < 0].sum()
    least = max(sure * np.sqrt((sums**2).sum()), margin * len(cubes))
    return bool(more - less >= least and more >= TIMES * less and more > 0)


def _different(listed: list[Candidate], middle: Any, same: tuple[float, float]) -> list[Candidate]:
    """Take the first candidates that differ by more than so many metres or degrees."""
    kept = _distinct([each.pose for each in listed], middle, KEPT, same)
    return [each for each in listed if any(each.pose is pose for pose in kept)]


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
