"""Points on faces: how an element is moved, and which of its cells then have points."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.runtime import progress
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import chunks, in_threads, workers

from .faces import Faces
from .samples import Samples, look_up

SUPPORT = 0.3
"""Share of what is in view along an axis that must have points, or its movement is not known."""
ALIGNED = 0.8
"""Cosine between a face and the surface around a point that may be on it: 37 degrees."""
WIDER = 0.6
"""Edges of a cube of the sample within which, to either side, a cell has its points at least."""
NEAR = 0.03
"""Metres: a point around which the surface is not known may be on a face that is as near."""
STEP = 0.004
"""Metres between the movements that are tried."""
BAND = 3
"""Steps on either side of a movement within which a point is on the moved face."""
ON, ON_OWN = 0.01, 0.008
"""Metres: a point as near to a face of another element, or to another face of the same one, where
the model has them, is on that face."""
THICK = 0.1
"""Metres from which points of the other face of an element are kept apart so; those of a thinner
one are told by the support of both faces."""
NEARER = 0.006
"""Metres by which it must be nearer to that face."""
SHARED = 0.002
"""Metres: a point as far from a face of another element may as well be on that one, which lies in
the same plane."""
SAME_AXIS = 0.97
"""Cosine between normals that are one direction of movement: 14 degrees."""
FARTHER_COSTS = 0.15
"""Share of the best support that a movement over all of the search must have more than none."""
ROUNDS = 6
"""Of fitting a plane to the offsets of points, each with those that are near the one before."""
STEEPEST = 0.09
"""Slope of a fitted plane at most: 5 degrees."""
WORTH = 0.01
"""Square metres in view from which those that are not in view say nothing of a movement."""
CLEAR = 0.03
"""Metres between a face and where a ray ends, at least, if that is in front of it or behind: noise,
and the bending of the surface between points of the sample."""
THIN = 0.1
"""Metres: a layer that is not there may be seen by the points of what it lies on."""

AXIS_COLUMNS = 12
"""Of an axis of an element: its direction (3); offset, slopes along two tangents (3); area that
supports it, area in view (2); extents along the tangents (2); spread; area."""
FACE_COLUMNS = 12
"""Of a face: area with points, the same in view, in view, seen through, behind points within
`search`, hidden by the model; points; sum and count of offsets; area in view without points on it
or behind it; area whose points may as well be on another element, the same in view."""


@dataclass(frozen=True)
class Touches:
    """Points of the sample before and behind each cell.

    Parameters
    ----------
    starts : int64[n + 1]
        Where those of each cell begin.
    offset : float64[m]
        Metres along the normal.
    sample : int64[m]
        Rows of the sample.
    owner : int64[k]
        Of each row of the sample the element that it is nearest to where the model has it, -1 for
        none.
    nearest : float64[k, 2]
        How far that is along the normal, and how far another element is, inf for none.
    """

    starts: Any
    offset: Any
    sample: Any
    owner: Any
    nearest: Any

    @classmethod
    def of(cls, faces: Faces, samples: Samples, search: float) -> "Touches":
        """Find the points within the column of each cell, `search` metres to either side."""
        owners = faces.cell_face
        columns = (
            faces.centres, owners, faces.normal, faces.u, faces.v, samples.keys, samples.slots,
            samples.points, samples.normals, samples.low, samples.size, search,
        )  # fmt: skip

        def some(span: tuple[int, int]) -> Any:
            counts = np.zeros(span[1] - span[0], np.int64)
            offset, sample = np.empty(0), np.empty(0, np.int64)
            total = _touch(*columns, *span, counts, offset, sample)
            offset, sample = np.empty(total), np.empty(total, np.int64)
            _touch(*columns, *span, counts, offset, sample)
            return counts, offset, sample

        with workers() as pool:
            found = pool.map(some, chunks(len(faces.centres), 1 << 13) or [(0, 0)])
        counts, offset, sample = map(np.concatenate, zip(*found, strict=True))
        starts = np.concatenate([[0], np.cumsum(counts)])
        owner = np.full(len(samples.keys), -1, np.int64)
        nearest = np.full((len(samples.keys), 2), np.inf)
        element = np.repeat(faces.element[owners], counts)
        _own(element, offset, sample, owner, nearest)
        return cls(starts, offset, sample, owner, nearest)


def measure(
    faces: Faces,
    touches: Touches,
    counts: Any,
    sight: Any,
    height: Any,
    search: float,
    n_elements: int,
) -> tuple[Any, Any, Any]:
    """Find how each element is moved, and what is seen of its faces there.

    Parameters
    ----------
    faces : Faces
    touches : Touches
    counts : int64[k]
        Points for which each row of the sample stands.
    sight, height
        See `sight.look`.
    search : float
        Metres: movements that are tried.
    n_elements : int

    Returns
    -------
    axes : float64[n_elements, 3, AXIS_COLUMNS]
        NaN where there is no such direction; offset NaN where nothing supports one.
    found : float64[len(faces.element), FACE_COLUMNS]
    axis : int64[len(faces.element)]
        Of each face, -1 where it has none of the three.
    """
    k = len(faces.element)
    axes = np.full((n_elements, 3, AXIS_COLUMNS), np.nan)
    found, axis = np.zeros((k, FACE_COLUMNS)), np.full(k, -1, np.int64)
    starts = np.searchsorted(faces.element, np.arange(n_elements + 1))
    halt = progress.stop_flag()

    def some(span: tuple[int, int]) -> None:
        _measure(
            *span, halt, starts, faces.normal, faces.area, faces.starts,
            faces.centres, faces.cell_area, touches.starts, touches.offset, touches.sample,
            touches.owner, touches.nearest, counts, sight, height, search, axes, found, axis,
        )  # fmt: skip

    in_threads(some, n_elements)
    return axes, found, axis


@njit(cache=True, nogil=True, error_model="numpy")
def _touch(  # type: ignore[no-untyped-def]
    centres, owners, normal, u, v, keys, slots, points, normals, low, size, search,
    first, stop, counts, offset, sample,
):  # fmt: skip
    """List the points in the columns of cells first to stop; gives how many there are."""
    total = 0
    begin, end = np.empty(3, np.int64), np.empty(3, np.int64)
    for i in range(first, stop):
        f = owners[i]
        uu = vv = 0.0
        for k in range(3):
            uu, vv = uu + u[f, k] ** 2, vv + v[f, k] ** 2
            reach = abs(u[f, k]) / 2 + abs(v[f, k]) / 2 + abs(normal[f, k]) * search
            reach += WIDER * size
            begin[k] = np.int64(np.floor((centres[i, k] - reach - low[k]) / size))
            end[k] = np.int64(np.floor((centres[i, k] + reach - low[k]) / size)) + 1
        # a cube whose middle is farther beside the column has no point in it
        # and one that is smaller than a cube would seldom have the one point of a cube in it
        within_u = max(0.5, WIDER * size / np.sqrt(uu))
        within_v = max(0.5, WIDER * size / np.sqrt(vv))
        beside_u = within_u + 0.87 * size / np.sqrt(uu)
        beside_v = within_v + 0.87 * size / np.sqrt(vv)
        before = total
        for a in range(begin[0], end[0]):
            for b in range(begin[1], end[1]):
                for c in range(begin[2], end[2]):
                    dx = low[0] + (a + 0.5) * size - centres[i, 0]
                    dy = low[1] + (b + 0.5) * size - centres[i, 1]
                    dz = low[2] + (c + 0.5) * size - centres[i, 2]
                    if abs(dx * u[f, 0] + dy * u[f, 1] + dz * u[f, 2]) > beside_u * uu:
                        continue
                    if abs(dx * v[f, 0] + dy * v[f, 1] + dz * v[f, 2]) > beside_v * vv:
                        continue
                    row = look_up(keys, slots, a, b, c)
                    if row < 0:
                        continue
                    dx = points[row, 0] - centres[i, 0]
                    dy = points[row, 1] - centres[i, 1]
                    dz = points[row, 2] - centres[i, 2]
                    if abs(dx * u[f, 0] + dy * u[f, 1] + dz * u[f, 2]) > within_u * uu:
                        continue
                    if abs(dx * v[f, 0] + dy * v[f, 1] + dz * v[f, 2]) > within_v * vv:
                        continue
                    above = dx * normal[f, 0] + dy * normal[f, 1] + dz * normal[f, 2]
                    if abs(above) > search:
                        continue
                    cosine = known = 0.0
                    for k in range(3):
                        cosine += normals[row, k] * normal[f, k]
                        known += abs(normals[row, k])
                    if abs(cosine) < ALIGNED if known > 0.0 else abs(above) > NEAR:
                        continue
                    if total < offset.size:
                        offset[total], sample[total] = above, row
                    total += 1
        counts[i - first] = total - before
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _own(element, offset, sample, owner, nearest):  # type: ignore[no-untyped-def]
    """Give each point of the sample to the element whose face is nearest; and find the next."""
    for i in range(offset.size):
        row, far = sample[i], abs(offset[i])
        if owner[row] == element[i]:
            nearest[row, 0] = min(nearest[row, 0], far)
        elif far < nearest[row, 0]:
            nearest[row, 1] = nearest[row, 0]
            nearest[row, 0], owner[row] = far, element[i]
        else:
            nearest[row, 1] = min(nearest[row, 1], far)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _is_elsewhere(row, e, o, owner, nearest):  # type: ignore[no-untyped-def]
    """Whether a point is on another face where the model has that, and farther from this one."""
    other = nearest[row, 1 if owner[row] == e else 0]
    own = nearest[row, 0] if owner[row] == e and abs(o) > THICK else np.inf
    return (other <= ON and other + NEARER < abs(o)) or (own <= ON_OWN and own + NEARER < abs(o))


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _is_shared(row, e, o, owner, nearest):  # type: ignore[no-untyped-def]
    """Whether a point is as near to another element, which has a face in the same plane."""
    return abs(nearest[row, 1 if owner[row] == e else 0] - abs(o)) <= SHARED


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(m, b, found):  # type: ignore[no-untyped-def]
    """Solve three equations with a symmetric matrix by elimination; gives whether it can be."""
    for i in range(3):
        if not m[i, i] > 1e-9:
            return False
        for j in range(i + 1, 3):
            share = m[j, i] / m[i, i]
            for k in range(i, 3):
                m[j, k] -= share * m[i, k]
            b[j] -= share * b[i]
    for i in range(2, -1, -1):
        value = b[i]
        for k in range(i + 1, 3):
            value -= m[i, k] * found[k]
        found[i] = value / m[i, i]
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _lie(e, a, f0, f1, axes, axis_of, cell_starts, centres, centre, p, q):  # type: ignore[no-untyped-def]
    """Find tangents of an axis: p along its faces, q across, where they are narrow."""
    flat = 0
    for k in range(1, 3):
        if abs(axes[e, a, k]) < abs(axes[e, a, flat]):
            flat = k
    length = 0.0
    for k in range(3):
        p[k] = (1.0 if k == flat else 0.0) - axes[e, a, flat] * axes[e, a, k]
        length += p[k] * p[k]
    for k in range(3):
        p[k] /= np.sqrt(length)
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        q[k] = axes[e, a, i] * p[j] - axes[e, a, j] * p[i]
    n = sx = sy = xx = xy = yy = 0.0
    for f in range(f0, f1):
        if axis_of[f] != a:
            continue
        for c in range(cell_starts[f], cell_starts[f + 1]):
            x = y = 0.0
            for k in range(3):
                x += p[k] * (centres[c, k] - centre[k])
                y += q[k] * (centres[c, k] - centre[k])
            n, sx, sy = n + 1.0, sx + x, sy + y
            xx, xy, yy = xx + x * x, xy + x * y, yy + y * y
    angle = np.arctan2(2.0 * (xy - sx * sy / n), xx - sx * sx / n - yy + sy * sy / n) / 2.0
    for k in range(3):
        along, across = p[k], q[k]
        p[k] = np.cos(angle) * along + np.sin(angle) * across
        q[k] = np.cos(angle) * across - np.sin(angle) * along


@njit(cache=True, nogil=True, error_model="numpy")
def _measure(  # type: ignore[no-untyped-def]
    first, stop, halt, starts, normal, area, cell_starts, centres, cell_area,
    touch_starts, offset, sample, owner, nearest, counts, sight, height, search,
    axes, found, axis_of,
):  # fmt: skip
    """Measure the elements first to stop: see `measure`."""
    bins = 2 * int(np.ceil(search / STEP)) + 1
    middle = bins // 2
    score, given, stamp = np.empty(bins), np.zeros(bins), np.full(bins, -1, np.int64)
    tangents, centre = np.empty((3, 2, 3)), np.empty(3)
    p, q = tangents[0, 0], tangents[0, 1]
    matrix, right, plane = np.empty((3, 3)), np.empty(3), np.empty(3)
    window = (BAND + 0.5) * STEP
    for e in range(first, stop):
        if halt[0]:
            return
        f0, f1 = starts[e], starts[e + 1]
        n_axes = 0
        for f in range(f0, f1):
            for a in range(n_axes):
                cosine = 0.0
                for k in range(3):
                    cosine += axes[e, a, k] * normal[f, k]
                if abs(cosine) >= SAME_AXIS:
                    axis_of[f] = a
                    axes[e, a, 11] += area[f]
                    break
            if axis_of[f] < 0 and n_axes < 3:
                is_apart = True
                for a in range(n_axes):
                    cosine = 0.0
                    for k in range(3):
                        cosine += axes[e, a, k] * normal[f, k]
                    is_apart = is_apart and abs(cosine) < 0.5
                if is_apart:
                    for k in range(3):
                        axes[e, n_axes, k] = normal[f, k]
                    axes[e, n_axes, 11] = area[f]
                    axis_of[f] = n_axes
                    n_axes += 1
        for k in range(3):
            centre[k] = 0.0
        total = 0.0
        for f in range(f0, f1):
            for c in range(cell_starts[f], cell_starts[f + 1]):
                total += cell_area[c]
                for k in range(3):
                    centre[k] += cell_area[c] * centres[c, k]
        for k in range(3):
            centre[k] /= max(total, 1e-300)
        for a in range(n_axes):
            p, q = tangents[a, 0], tangents[a, 1]
            _lie(e, a, f0, f1, axes, axis_of, cell_starts, centres, centre, p, q)
            in_view = 0.0
            for f in range(f0, f1):
                if axis_of[f] == a:
                    for c in range(cell_starts[f], cell_starts[f + 1]):
                        in_view += cell_area[c] if sight[c] >= 2 else 0.0
            # other cells count only where none is in view: behind a thin layer is its other face
            has_view = in_view >= WORTH
            for b in range(bins):
                score[b], stamp[b] = 0.0, -1
            for f in range(f0, f1):
                if axis_of[f] != a:
                    continue
                sign = 0.0
                for k in range(3):
                    sign += axes[e, a, k] * normal[f, k]
                sign = 1.0 if sign > 0.0 else -1.0
                for c in range(cell_starts[f], cell_starts[f + 1]):
                    for t in range(touch_starts[c], touch_starts[c + 1]):
                        o, row = offset[t], sample[t]
                        if _is_elsewhere(row, e, o, owner, nearest):
                            continue
                        if sight[c] < 2 and (has_view or abs(o) > NEAR):
                            continue
                        b = middle + int(np.round(sign * o / STEP))
                        for at in range(max(0, b - BAND), min(bins, b + BAND + 1)):
                            if stamp[at] != c:
                                stamp[at], given[at] = c, 0.0
                            # of several points of a cell the nearest counts, the more the nearer
                            weight = 1.0 - abs(at - b) / (BAND + 1.0)
                            if weight > given[at]:
                                score[at] += (weight - given[at]) * cell_area[c]
                                given[at] = weight
            most = 0.0
            for b in range(bins):
                most = max(most, score[b])
            if most <= 0.0:
                continue
            best, value = middle, -1.0
            for b in range(bins):
                cost = FARTHER_COSTS * most * abs(b - middle) / middle
                if score[b] - cost > value:
                    best, value = b, score[b] - cost
            plane[0], plane[1], plane[2] = (best - middle) * STEP, 0.0, 0.0
            residual = squares = n = 0.0
            low_p, high_p, low_q, high_q = np.inf, -np.inf, np.inf, -np.inf
            for turn in range(ROUNDS):
                for i in range(3):
                    right[i] = 0.0
                    for j in range(3):
                        matrix[i, j] = 0.0
                residual = squares = n = 0.0
                low_p, high_p, low_q, high_q = np.inf, -np.inf, np.inf, -np.inf
                for f in range(f0, f1):
                    if axis_of[f] != a:
                        continue
                    sign = 0.0
                    for k in range(3):
                        sign += axes[e, a, k] * normal[f, k]
                    sign = 1.0 if sign > 0.0 else -1.0
                    for c in range(cell_starts[f], cell_starts[f + 1]):
                        x = y = 0.0
                        for k in range(3):
                            x += p[k] * (centres[c, k] - centre[k])
                            y += q[k] * (centres[c, k] - centre[k])
                        at = plane[0] + plane[1] * x + plane[2] * y
                        for t in range(touch_starts[c], touch_starts[c + 1]):
                            o, row = offset[t], sample[t]
                            if abs(sign * o - at) > window:
                                continue
                            if _is_elsewhere(row, e, o, owner, nearest):
                                continue
                            if sight[c] < 2 and (has_view or abs(o) > NEAR):
                                continue
                            d = sign * o
                            n += 1.0
                            residual += d - at
                            squares += (d - at) ** 2
                            low_p, high_p = min(low_p, x), max(high_p, x)
                            low_q, high_q = min(low_q, y), max(high_q, y)
                            matrix[0, 1] += x
                            matrix[0, 2] += y
                            matrix[1, 1] += x * x
                            matrix[1, 2] += x * y
                            matrix[2, 2] += y * y
                            right[0] += d
                            right[1] += d * x
                            right[2] += d * y
                if n < 1.0:
                    break
                if turn == ROUNDS - 1:
                    break
                matrix[0, 0] = n
                # an extent that is too short says nothing about a slope
                if high_p - low_p < 0.3 or n < 12.0:
                    matrix[0, 1] = matrix[1, 2] = right[1] = 0.0
                    matrix[1, 1] = 1.0
                if high_q - low_q < 0.3 or n < 12.0:
                    matrix[0, 2] = matrix[1, 2] = right[2] = 0.0
                    matrix[2, 2] = 1.0
                matrix[1, 0], matrix[2, 0], matrix[2, 1] = matrix[0, 1], matrix[0, 2], matrix[1, 2]
                mean = right[0] / n
                if not _solve(matrix, right, plane) or (
                    max(abs(plane[1]), abs(plane[2])) > STEEPEST
                ):
                    plane[0], plane[1], plane[2] = mean, 0.0, 0.0
            if n < 1.0:
                continue
            for k in range(3):
                axes[e, a, 3 + k] = plane[k]
            axes[e, a, 8], axes[e, a, 9] = high_p - low_p, high_q - low_q
            axes[e, a, 10] = np.sqrt(max(0.0, squares / n - (residual / n) ** 2))
            # what supports it, of what is in view
            support = view = 0.0
            for f in range(f0, f1):
                if axis_of[f] != a:
                    continue
                sign = 0.0
                for k in range(3):
                    sign += axes[e, a, k] * normal[f, k]
                sign = 1.0 if sign > 0.0 else -1.0
                for c in range(cell_starts[f], cell_starts[f + 1]):
                    x = y = 0.0
                    for k in range(3):
                        x += p[k] * (centres[c, k] - centre[k])
                        y += q[k] * (centres[c, k] - centre[k])
                    at = sign * (plane[0] + plane[1] * x + plane[2] * y)
                    is_on = False
                    for t in range(touch_starts[c], touch_starts[c + 1]):
                        o, row = offset[t], sample[t]
                        if abs(o - at) > window:
                            continue
                        if _is_elsewhere(row, e, o, owner, nearest):
                            continue
                        if sight[c] < 2 and (has_view or abs(o) > NEAR):
                            continue
                        is_on = True
                        break
                    if is_on:
                        support += cell_area[c]
                    if is_on or (sight[c] == 3 and height[c] < at + CLEAR):
                        view += cell_area[c]
            axes[e, a, 6], axes[e, a, 7] = support, view
        for f in range(f0, f1):
            a = axis_of[f]
            sign = base = 0.0
            if a >= 0 and axes[e, a, 6] >= SUPPORT * axes[e, a, 7]:
                for k in range(3):
                    sign += axes[e, a, k] * normal[f, k]
                sign = 1.0 if sign > 0.0 else -1.0
                base = axes[e, a, 3]
                p, q = tangents[a, 0], tangents[a, 1]
            for c in range(cell_starts[f], cell_starts[f + 1]):
                place = sign * base
                if sign != 0.0:
                    for k in range(3):
                        d = centres[c, k] - centre[k]
                        place += sign * (axes[e, a, 4] * p[k] + axes[e, a, 5] * q[k]) * d
                is_on, is_own, is_behind, is_before = False, False, False, False
                for t in range(touch_starts[c], touch_starts[c + 1]):
                    o, row = offset[t], sample[t]
                    is_other = _is_elsewhere(row, e, o, owner, nearest)
                    far = abs(o - place)
                    if not is_other and far <= (window if sight[c] >= 2 else 2.0 * STEP):
                        is_on = True
                        is_own = is_own or not _is_shared(row, e, o, owner, nearest)
                        found[f, 6] += counts[row]
                        found[f, 7] += o
                        found[f, 8] += 1.0
                    elif is_other and place - THIN < o < place - window / 2:
                        is_behind = True
                    elif o > place + window:
                        is_before = True
                if is_on:
                    found[f, 0] += cell_area[c]
                    found[f, 10] += 0.0 if is_own else cell_area[c]
                if sight[c] == 0:
                    found[f, 5] += cell_area[c]
                elif sight[c] == 3 and not is_on and height[c] > place + CLEAR:
                    found[f, 4] += cell_area[c]
                elif sight[c] >= 2:
                    found[f, 2] += cell_area[c]
                    if is_on:
                        found[f, 1] += cell_area[c]
                        found[f, 11] += 0.0 if is_own else cell_area[c]
                    elif sight[c] == 3 and (
                        height[c] < place - CLEAR or (is_behind and not is_before)
                    ):
                        found[f, 3] += cell_area[c]
                    elif sight[c] == 2:
                        found[f, 9] += cell_area[c]
