"""Which of several models lie where the others do, and where the others ought to."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .facets import QUARTER, Facets, Triangles, turning
from .search import (
    TOLERANCE,
    Match,
    best_height,
    heights,
    match,
    matches,
    planes_along,
    refined,
    shifts_across,
    shifts_along,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spatialq.data.meshes import Meshes

LARGEST = 600
"""Faces of a model along each axis that are searched for a shift; counted are all."""
FITTING = 2
"""Planes along x and along y that two models share where they lie where they should: by chance
they share none, so that no more are needed where nothing was moved."""
SURE = 20
"""Fewer planes along x or along y may be chance where a model was moved along the other axis: they
must be more than after shifts that mean nothing."""
DECOYS = (0.0313, 0.0677, 0.1171)
"""Metres, along one axis: shifts by which no element is moved on purpose."""
LEAST_RATE = 0.05
"""Planes that models share by chance after such a shift, even where none were seen."""
FOUND, SAID = 4, 80
"""Planes along x and along y, and the product of the two, that they share after the best of many
shifts if that is where they should be."""
FOLLOWED = 3
"""How many of the shifts seen from above are followed, for each other model."""
REFERENCES = 6
"""Groups of as many models as any other that are tried as the one to which others are moved."""
MIN_FLOORS, MIN_FLOORS_WITHOUT_WALLS, MIN_SHARE = 5, 12, 0.25
"""Floors that must meet after a shift along z alone: more, unless this share of the elements has
walls in planes of the others."""
TIMES = 3
"""A model that shares so many times as many planes along one axis after a shift along that axis
alone is not where it should be."""
CHANCE = 0.01
"""Planes that meet say nothing if this is how likely it is that as many do by chance; along z after
the best of all shifts."""
SAME = 5e-3
"""Metres between shifts seen from above that are one, found by different models."""
RIVAL = 0.7
"""Of what speaks for the best move: if another one has as much, neither is said."""
RIVAL_ALONG = 0.8
"""The same of shifts along one axis: five storeys that are alike share four fifths if they are
shifted by one."""
STILL = 0.6
"""A shift along z is none if this share of the floors meet without one."""
PARALLEL = 2e-5
"""Radians between directions of walls that are one: half a millimetre in 25 m."""
HIGHER = 1.5
"""How much higher a model is that cannot be taken for a storey like a lower one."""
STOREYS = 5.0
"""Metres: what is as high has several storeys."""
BESIDE = 0.5
"""Of the height of the lower of two models: where less is beside the other, one is a storey above
the other, which may well be its copy."""


@dataclass(frozen=True)
class Model:
    """What is compared of a model."""

    name: str
    facets: Facets
    largest: Facets
    elements: int
    direction: float
    low: "NDArray[np.float64]"
    high: "NDArray[np.float64]"


@dataclass(frozen=True)
class Move:
    """What brings models to where others are: a turn about z and then a shift, metres."""

    angle: float
    quarters: int
    shift: "NDArray[np.float64]"
    along_walls: "NDArray[np.float64]"
    """The shift in the directions of the walls."""


def models_of(named: "Mapping[str, Meshes]") -> list[Model]:
    """Take the faces of models, along the walls of most where theirs are parallel to those."""
    triangles = [Triangles.of(meshes) for meshes in named.values()]
    directions = [each.direction() for each in triangles]
    known = [
        (float(each.area.sum()), direction)
        for each, direction in zip(triangles, directions, strict=True)
        if direction is not None
    ]
    frame = _most_common(known)
    models, first = [], 0
    for (name, meshes), each, direction in zip(named.items(), triangles, directions, strict=True):
        is_same = direction is None or abs(_between(direction, frame)) <= PARALLEL
        own = frame if is_same or direction is None else direction
        facets = each.facets(own, first)
        first += len(meshes)
        low, high = meshes.vertices.min(axis=0), meshes.vertices.max(axis=0)
        largest = facets.largest(LARGEST)
        models.append(Model(name, facets, largest, len(meshes), own, low, high))
    return models


def _most_common(weighted: list[tuple[float, float]]) -> float:
    """Choose the direction with most weight near it, the first of several."""
    near = [
        sum(w for w, d in weighted if abs(_between(d, direction)) <= PARALLEL)
        for _, direction in weighted
    ]
    return weighted[int(np.argmax(near))][1] if near else 0.0


def _between(one: float, other: float) -> float:
    """Measure the angle from one direction of walls to another: at most an eighth of a turn."""
    return (one - other + QUARTER / 2) % QUARTER - QUARTER / 2


def unmoved(a: Model, b: Model) -> Match:
    """Count what two models have in common where they are."""
    if a.direction != b.direction:
        return Match(np.zeros(3), (0, 0, 0), (0, 0))
    return match(a.facets, b.facets, np.zeros(3), copies=True)


def groups_of(
    models: list[Model], matches: Mapping[tuple[int, int], Match]
) -> tuple[list[list[int]], dict[int, Move]]:
    """Group the models that lie where they should to each other.

    Returns
    -------
    list of list of int
        The models of each group, the largest group first.
    dict
        What brings the groups to where the first is, by number, as far as that is known.
    """
    pairs = [(i, j) for (i, j), each in matches.items() if _fit(models[i], models[j], each)]
    groups, moves = _referred(models, _joined(len(models), pairs))
    # those that would be moved alike lie where they should to each other: if they are more
    # than the first group, that is the one to be moved
    for number, move in moves.items():
        alike = [k for other, each in moves.items() if _is_same(each, move) for k in groups[other]]
        if len(alike) > len(groups[0]) and len(alike) > len(groups[number]):
            groups = _joined(len(models), [*pairs, *pairwise(alike)])
            moves = _moves(models, groups)
            break
    lifted = _lifted(models, groups[0])
    groups[0] = [k for k in groups[0] if k not in lifted]
    moves |= dict(enumerate(lifted.values(), len(groups)))
    return [*groups, *([k] for k in lifted)], moves


def _fit(a: Model, b: Model, there: Match) -> bool:
    """Whether two models have more planes in common along x and along y than chance explains.

    Nor may they have far more along one of the two after a shift along it.
    """
    if min(there.planes[:2]) < FITTING:
        return False
    is_more = min(there.planes[:2]) >= SURE or all(
        _share(a.facets, b.facets, k, there.planes[k]) for k in (0, 1)
    )
    return is_more and not any(_gain(a.largest, b.largest, k, FOUND)[0] for k in (0, 1))


def _share(a: Facets, b: Facets, k: int, planes: int) -> bool:
    """Whether two models share more planes along one axis than after shifts that mean nothing."""
    by_chance = 0
    for metres in DECOYS:
        for sign in (-1, 1):
            shift = np.zeros(3)
            shift[k] = sign * metres
            by_chance += planes_along(a, b, k, shift, copies=True)
    return planes >= max(FITTING, _least(max(by_chance / (2 * len(DECOYS)), LEAST_RATE)))


def _least(rate: float, tries: float = 1.0) -> int:
    """Say how many events a Poisson process of a rate hardly ever has in any of several tries."""
    return next(
        k
        for k in count(math.ceil(rate) + 1)
        if math.exp(k * math.log(rate) - rate - math.lgamma(k + 1)) * tries < CHANCE
    )


def _joined(n: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Join what pairs connect, the largest group first."""
    group = list(range(n))
    for i, j in pairs:
        group = [group[i] if known == group[j] else known for known in group]
    members = [[k for k in range(n) if group[k] == g] for g in dict.fromkeys(group)]
    return sorted(members, key=lambda each: (-len(each), each[0]))


def _referred(
    models: list[Model], groups: list[list[int]]
) -> tuple[list[list[int]], dict[int, Move]]:
    """Put the group first to which most models can be moved, of the largest ones."""
    best: tuple[int, list[list[int]], dict[int, Move]] = (-1, groups, {})
    for k, group in enumerate(groups[:REFERENCES]):
        if len(group) < len(groups[0]):
            break
        ordered = [group, *groups[:k], *groups[k + 1 :]]
        moves = _moves(models, ordered)
        moved = sum(len(ordered[number]) for number in moves)
        if moved > best[0]:
            best = moved, ordered, moves
    return best[1:]


def _is_same(one: Move, other: Move) -> bool:
    return one.quarters == other.quarters and bool(
        np.abs(one.along_walls - other.along_walls).max() <= 2 * TOLERANCE
    )


def _moves(models: list[Model], groups: list[list[int]]) -> dict[int, Move]:
    """Find what brings each group to where the first is."""
    first, *others = ([models[k] for k in group] for group in groups)
    found = {
        number: _move(group, first) or _slide(group, first)
        for number, group in enumerate(others, 1)
    }
    return {number: move for number, move in found.items() if move is not None}


def _move(lost: list[Model], others: list[Model]) -> Move | None:
    """Find what brings models to where others are; None where too little says so."""
    a = Facets.joined([each.largest for each in lost])
    turned = [a.turned(quarters) for quarters in range(4)]
    higher = [each for each in others if _height(lost) * HIGHER <= _height([each])]
    found = []
    for other in others:
        if other not in higher and _are_above(lost, [other]):
            continue
        found += [
            (each.score, quarters, each) for quarters, each in _followed(turned, other.largest)
        ]
    if not found:
        return None
    most, quarters, best = max(found, key=lambda each: each[0])
    for score, turn, each in found:
        is_same = turn == quarters and np.abs((each.shift - best.shift)[:2]).max() <= SAME
        if not is_same and score > RIVAL * most:
            return None
    beside = higher or [each for each in others if not _are_above(lost, [each])] or others
    b = Facets.joined([each.largest for each in beside])
    near = [
        each.shift[2]
        for _, turn, each in found
        if turn == quarters and np.abs((each.shift - best.shift)[:2]).max() <= 2 * TOLERANCE
    ]
    shift = np.array([*best.shift[:2], _dz(turned[quarters], b, best.shift[:2], near)])
    angle = _between(others[0].direction, lost[0].direction) + quarters * QUARTER
    if not angle and np.abs(shift).max() <= TOLERANCE:
        return None
    return Move(
        math.remainder(angle, 2 * math.pi),
        quarters,
        turning(others[0].direction) @ shift,
        shift,
    )


def _followed(turned: list[Facets], b: Facets) -> Iterator[tuple[int, Match]]:
    """Follow the shifts of a model in several turns; give those that much speaks for."""
    seen = (
        (votes, quarters, dx, dy)
        for quarters, each in enumerate(turned)
        for votes, dx, dy in shifts_across(each, b)
    )
    for _, quarters, dx, dy in nlargest(FOLLOWED, seen):
        each = best_height(turned[quarters], b, (dx, dy))
        if min(each.planes[:2]) >= FOUND and each.across >= SAID:
            yield quarters, each


def _dz(a: Facets, b: Facets, across: Any, found: list[float]) -> float:
    """Choose the shift along z: none, unless much more speaks for another one."""
    tried = {0.0, *found, *heights(a, b, tuple(across))}
    found_at = matches(a, b, across, sorted(tried, key=abs))
    still, most = found_at[0], max(found_at, key=lambda each: each.floors)
    says = most.planes[2] >= _least_planes(a, b, 2) and still.floors < STILL * most.floors
    dz = float(most.shift[2]) if says else 0.0
    return float(refined(a, b, (*across, dz), window=2 * TOLERANCE)[2])


def _least_planes(a: Facets, b: Facets, k: int) -> int:
    """Say how many planes must meet after a shift along an axis to mean more than chance.

    Planes that lie anywhere in the extents of two models meet as often as a Poisson process says.
    """
    at = [each.low[k][:, k] for each in (a, b)]
    if not all(map(len, at)):
        return 1
    span = max(float(sum(map(np.ptp, at))), TOLERANCE)
    counts = [len(np.unique(np.round(each / (2 * TOLERANCE)))) for each in at]
    rate = math.prod(counts) * 2 * TOLERANCE / span
    return _least(rate, span / TOLERANCE)


def _lifted(models: list[Model], group: list[int]) -> dict[int, Move]:
    """Find the models that lie too high or too low, by their numbers, and what moves them."""
    found: dict[int, Move] = {}
    while len(left := [k for k in group if k not in found]) > 1:
        seen = {k: _lift(models[k], [models[i] for i in left if i != k]) for k in reversed(left)}
        most = max(seen, key=lambda k: seen[k][0])
        gained, metres = seen[most]
        if not gained:
            break
        found[most] = _along(models[most], 2, metres)
    return found


def _lift(a: Model, others: list[Model]) -> tuple[int, float]:
    """Find by how much a model is too high or too low for others, as `_gain` does."""
    beside = [each for each in others if not _are_above([a], [each])]
    if not beside:
        return 0, 0.0
    b = Facets.joined([each.largest for each in beside])
    there = match(a.largest, b, np.zeros(3))
    has_walls = there.elements[0] >= MIN_SHARE * a.elements
    return _gain(a.largest, b, 2, MIN_FLOORS if has_walls else MIN_FLOORS_WITHOUT_WALLS)


def _slide(lost: list[Model], others: list[Model]) -> Move | None:
    """Find what brings models to where others are, if they were shifted along x or y alone.

    Then they share planes along the other of the two more than by chance.
    """
    if lost[0].direction != others[0].direction:
        return None
    a, b = (Facets.joined([each.largest for each in models]) for models in (lost, others))
    for k in (0, 1):
        planes = planes_along(a, b, 1 - k, np.zeros(3), copies=True)
        if planes >= FITTING and _share(a, b, 1 - k, planes):
            gained, metres = _gain(a, b, k, FOUND)
            if gained:
                return _along(lost[0], k, metres)
    return None


def _along(model: Model, axis: int, metres: float) -> Move:
    """Give the move along an axis of the walls of a model."""
    shift = np.zeros(3)
    shift[axis] = metres
    return Move(0.0, 0, turning(model.direction) @ shift, shift)


def _gain(a: Facets, b: Facets, k: int, least: int) -> tuple[int, float]:
    """Find the shift along one axis that brings planes together where hardly any meet.

    Returns
    -------
    int
        How many more: 0 if chance or another shift may explain it.
    float
        Metres.
    """
    shift = np.zeros(3)
    before = planes_along(a, b, k, shift, copies=True)
    least = max(least, TIMES * before)
    if least > min(len(np.unique(np.round(each.low[k][:, k], 4))) for each in (a, b)):
        return 0, 0.0  # there are no more
    least = max(least, _least_planes(a, b, k))
    found = []
    for metres, votes in shifts_along(a, b, k):
        if votes >= least:
            shift[k] = metres
            found.append((planes_along(a, b, k, shift, copies=False), metres))
    most, best = max(found, default=(0, 0.0))
    rivals = (planes for planes, metres in found if abs(metres - best) > SAME)
    if most < least or max(rivals, default=0) > RIVAL_ALONG * most:
        return 0, 0.0
    shift[k] = best
    return most - before, float(refined(a, b, shift, window=2 * TOLERANCE)[k])


def _height(models: list[Model]) -> float:
    return float(max(each.high[2] for each in models) - min(each.low[2] for each in models))


def _are_above(models: list[Model], others: list[Model]) -> bool:
    """Whether models are storeys above or below others."""
    if _height(models) >= STOREYS:
        return False
    low, high = min(each.low[2] for each in models), max(each.high[2] for each in models)
    low2, high2 = min(each.low[2] for each in others), max(each.high[2] for each in others)
    return bool(min(high, high2) - max(low, low2) < BESIDE * min(high - low, high2 - low2))
