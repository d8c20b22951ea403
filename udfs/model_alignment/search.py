"""The shift that brings most faces of two models into common planes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .facets import Facets

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOLERANCE = 1e-3
"""Metres between faces that are in one plane, and the width of the bins of votes."""
OVERLAP = 0.02
"""Metres that two faces in one plane must have in common along both other axes."""
WINDOW = 0.03
"""Metres around a shift in which it is made exact."""
ACROSS = 12
"""How many shifts along x are tried."""
LEVELS = 12
"""How many shifts along one axis alone are tried."""
BEST = 4
"""How many shifts along y are tried for each along x, and along z for each of the best."""


@dataclass(frozen=True)
class Match:
    """What two models have in common when one is moved.

    Parameters
    ----------
    shift : float64[3]
        Metres.
    planes : tuple of int
        How many planes perpendicular to x, y and z have faces of both that overlap.
    elements : tuple of int
        How many elements of either have such a face that is vertical.
    """

    shift: Any
    planes: tuple[int, int, int]
    elements: tuple[int, int]

    @property
    def across(self) -> int:
        """How much says that it is right seen from above: 0 unless it is so along x and y."""
        return self.planes[0] * self.planes[1]

    @property
    def floors(self) -> int:
        """How much says that the height is right."""
        return self.score * (1 + self.planes[2])

    @property
    def score(self) -> int:
        """How much says that it is right."""
        return self.across * (1 + self.planes[2])


def match(a: Facets, b: Facets, shift: Any, *, copies: bool = False) -> Match:
    """Count what two models have in common when `a` is moved, faces that are the same or not."""
    (found,) = matches(a, b, shift[:2], [shift[2]], copies=copies)
    return found


def matches(
    a: Facets, b: Facets, across: Any, dzs: Sequence[float], *, copies: bool = False
) -> list[Match]:
    """Count what two models have in common when `a` is moved, at each of several heights."""
    planes, elements = [], []
    for k in range(3):
        at, i, j = _in_planes(a, b, k, across, dzs, TOLERANCE, OVERLAP, copies=copies)
        planes.append(_distinct(at, _plane(b, k, j), len(dzs)))
        if k < 2:
            elements.append((at, a.element[k][i], b.element[k][j]))
    at, *both = (np.concatenate(each) for each in zip(*elements, strict=True))
    counts = [_distinct(at, each, len(dzs)) for each in both]
    return [
        Match(np.array([*across, dz], np.float64), (x, y, z), (of_a, of_b))
        for dz, x, y, z, of_a, of_b in zip(dzs, *planes, *counts, strict=True)
    ]


def planes_along(a: Facets, b: Facets, k: int, shift: Any, *, copies: bool) -> int:
    """Count the planes perpendicular to one axis that two models share when `a` is moved."""
    at, _, j = _in_planes(a, b, k, shift[:2], shift[2:], TOLERANCE, OVERLAP, copies=copies)
    return _distinct(at, _plane(b, k, j), 1)[0]


def _plane(b: Facets, k: int, j: "NDArray[np.int64]") -> Any:
    return np.round(b.low[k][j, k] / (2 * TOLERANCE)).astype(np.int64)


def _distinct(at: "NDArray[np.int64]", values: "NDArray[np.int64]", n: int) -> list[int]:
    """Count the values that are different, at each of n heights."""
    if not len(values):
        return [0] * n
    span = int(values.max() - values.min()) + 1
    found: list[int] = np.bincount(
        np.unique(at * span + (values - values.min())) // span, minlength=n
    ).tolist()
    return found


def best_height(a: Facets, b: Facets, across: tuple[float, float]) -> Match:
    """Follow a shift seen from above to the height at which most speaks for it."""
    dz, *others = heights(a, b, across)
    x, y, z = refined(a, b, (*across, dz))
    return max(matches(a, b, (x, y), [z, *others]), key=lambda each: each.score)


def heights(a: Facets, b: Facets, across: tuple[float, float]) -> list[float]:
    """Find the shifts along z, none among them, that bring most floors together, the best first.

    These are floors above each other: what lies on or under a floor, not a copy of it.
    """
    tried = [0.0, *(dz for dz, _ in shifts_along(a, b, 2))]
    at, _, j = _in_planes(a, b, 2, across, tried, TOLERANCE, OVERLAP, copies=False)
    floors = _distinct(at, _plane(b, 2, j), len(tried))
    order = sorted(range(len(tried)), key=lambda k: -floors[k])
    return [tried[k] for k in order[:BEST]]


def shifts_along(a: Facets, b: Facets, k: int) -> Iterator[tuple[float, int]]:
    """Find the shifts along an axis that bring most planes together, and how many."""
    planes = [np.unique(np.round(each.low[k][:, k], 4)) for each in (a, b)]
    yield from _peaks(np.subtract.outer(planes[1], planes[0]).ravel(), LEVELS)


def shifts_across(a: Facets, b: Facets) -> Iterator[tuple[int, float, float]]:
    """Find shifts along x and y that bring corners together, and how many."""
    xs = [np.unique(np.round(each.corners[:, 0], 4)) for each in (a, b)]
    for dx, _ in _peaks(np.subtract.outer(xs[1], xs[0]).ravel(), ACROSS):
        i, j = _within(b.corners[:, 0], a.corners[:, 0] + dx, TOLERANCE)
        for dy, votes in _peaks(b.corners[j, 1] - a.corners[i, 1], BEST):
            yield votes, dx, dy


def _peaks(differences: Any, most: int) -> Iterator[tuple[float, int]]:
    """Give the differences that are the most frequent within the tolerance, and how many."""
    if not len(differences):
        return
    bins = np.round(differences / TOLERANCE).astype(np.int64)
    first = bins.min() - 1
    counts = np.bincount(bins - first, minlength=bins.max() - first + 2)
    votes = counts.copy()
    votes[1:] += counts[:-1]
    votes[:-1] += counts[1:]
    # of three bins that have the same in their windows, the one that has most itself
    rank = votes + counts
    for _ in range(most):
        k = int(rank.argmax())
        if rank[k] <= 0:
            return
        yield float((k + first) * TOLERANCE), int(votes[k])
        rank[max(k - 2, 0) : k + 3] = 0


def refined(a: Facets, b: Facets, shift: Any, window: float = WINDOW) -> "NDArray[np.float64]":
    """Make a shift exact: along each axis the one that most planes of faces that overlap have."""
    exact = np.array(shift, np.float64)
    for k in range(3):
        across, dz = exact[:2], [exact[2]]
        _, i, j = _in_planes(a, b, k, across, dz, window, OVERLAP + window, copies=False)
        apart = b.low[k][j, k] - a.low[k][i, k]
        planes = np.unique(np.round(np.column_stack([apart, b.low[k][j, k]]), 4), axis=0)[:, 0]
        for most, _ in _peaks(planes, 1):
            exact[k] = np.median(planes[np.abs(planes - most) <= 1.6 * TOLERANCE])
    return exact


def _in_planes(
    a: Facets,
    b: Facets,
    k: int,
    across: Any,
    dzs: Sequence[float],
    tolerance: float,
    overlap: float,
    *,
    copies: bool,
) -> "tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]":
    """Find the faces perpendicular to an axis that overlap, within a tolerance along it.

    A face that is the same in both says little after a shift: buildings repeat themselves.

    Returns
    -------
    tuple of int64[n]
        Which of the heights `dzs` it is, and the faces of `a` and of `b`.
    """
    dz = np.asarray(dzs, np.float64)
    low, high = a.low[k], a.high[k]
    if k == 2:
        moved = np.add.outer(dz, low[:, 2]).ravel()
        pair, j = _within(b.low[2][:, 2], moved, tolerance)
        at, i = np.divmod(pair, max(len(low), 1))
    else:
        i, j = _within(b.low[k][:, k], low[:, k] + across[k], tolerance)
        at = np.zeros(len(i), np.int64)
    alike = np.full(len(i), not copies)
    # what does not depend on the height is looked at once for all of them
    for axis in (*({0, 1} - {k}), *({2} - {k})):
        if axis == 2:
            at = np.repeat(np.arange(len(dz)), len(i))
            i, j, alike = (np.tile(each, len(dz)) for each in (i, j, alike))
        sides = low[i, axis], high[i, axis], b.low[k][j, axis], b.high[k][j, axis]
        shift = dz[at] if axis == 2 else across[axis]
        alike &= _alike(*sides, shift)
        there = _overlap(*sides, shift, overlap)
        at, i, j, alike = at[there], i[there], j[there], alike[there]
    return at[~alike], i[~alike], j[~alike]


def _overlap(a_low: Any, a_high: Any, b_low: Any, b_high: Any, shift: Any, least: float) -> Any:
    return np.minimum(a_high + shift, b_high) - np.maximum(a_low + shift, b_low) > least


def _alike(a_low: Any, a_high: Any, b_low: Any, b_high: Any, shift: Any) -> Any:
    low, high = np.abs(a_low + shift - b_low), np.abs(a_high + shift - b_high)
    return np.maximum(low, high) < TOLERANCE


def _within(
    ordered: Any, values: Any, tolerance: float
) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Find the pairs of a value and one of those in order that are as near as the tolerance."""
    first = np.searchsorted(ordered, values - tolerance)
    counts = np.searchsorted(ordered, values + tolerance, side="right") - first
    i = np.repeat(np.arange(len(values)), counts)
    j = np.arange(len(i)) - np.repeat(np.cumsum(counts) - counts - first, counts)
    return i, j
