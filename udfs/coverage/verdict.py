"""The rows of `coverage`: what was measured of faces and elements, and what that means."""

from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry import boxes

from . import STATUSES, Options
from .faces import Faces
from .match import SUPPORT
from .samples import Samples

CODES = {name: code for code, name in enumerate(STATUSES)}
MINOR = 0.2
"""Share of the largest support of an element below which another axis is not used: the narrow ends
of a wall meet other elements, whose points are taken for theirs."""
ROUGH = 1.5
"""Multiple of the spread of points on a face that a movement must be more than: faces of a window
that are some millimetres apart are no movement of one of them."""
IN_VIEW = 0.03
"""Share of the surface of an element that must be in view where it is not found or displaced: a few
rays pass between the points of what hides it."""
REVEALED = 0.02
"""Share of the surface that must be seen of an element which the model hides."""


def rows(
    elements: Meshes, faces: Faces, samples: Samples, axes: Any, found: Any, axis: Any,
    options: Options,
) -> dict[str, Any]:  # fmt: skip
    """Give the rows: of each element one, or one of each of its faces.

    Parameters
    ----------
    elements, faces, samples
    axes, found, axis
        See `match.measure`.
    options : Options

    Returns
    -------
    dict of arrays
    """
    n = len(elements)
    is_known = _known(axes, options)
    movement = _movement(axes, is_known)
    moved = _moved(axes, is_known)
    limit = np.fmax(options.tolerance, ROUGH * np.nan_to_num(axes[:, :, 10]))
    tilt = np.where(is_known, np.degrees(np.arctan(np.hypot(axes[:, :, 4], axes[:, :, 5]))), np.nan)
    main = np.argmax(np.nan_to_num(np.where(is_known, axes[:, :, 6], 0.0)), axis=1)
    every = np.arange(n)
    is_any = is_known.any(axis=1)
    near = _near(elements, samples, options.near)
    if options.faces:
        of = faces.element
        sums = found
        on_axis = np.maximum(axis, 0)
        has = (axis >= 0) & is_known[of, on_axis]
        with np.errstate(invalid="ignore", divide="ignore"):
            offset = np.where(sums[:, 8] > 0, sums[:, 7] / sums[:, 8], np.nan)
        tilts = np.where(has, tilt[of, on_axis], np.nan)
        spread = np.where(has, axes[of, on_axis, 10], np.nan)
        thickness = np.full(len(of), np.nan)
        area, face = faces.area, np.arange(len(of)) - np.searchsorted(of, of)
        is_off = has & (np.nan_to_num(moved[of, on_axis]) > limit[of, on_axis])
    else:
        of, face = every, np.full(n, -1)
        sums = np.zeros((n, found.shape[1]))
        np.add.at(sums, faces.element, found)
        offset = np.where(is_any, axes[every, main, 3], np.nan)
        tilts = np.where(is_any, tilt[every, main], np.nan)
        spread = np.where(is_any, axes[every, main, 10], np.nan)
        thickness = _thickness(faces, axes, found, axis, main, is_any, options.min_area)
        area = np.bincount(faces.element, faces.area, n)
        is_off = (np.where(is_known, moved, 0.0) > limit).any(axis=1)
    status = _status(sums, area, is_off, near[of], options)
    is_there = np.isin(status, [CODES[each] for each in ("installed", "displaced", "uncertain")])
    shift = np.where(is_there[:, None], movement[of], np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        seen, visible = sums[:, 0] / area, (sums[:, 2]) / area
    if options.scanner is None:
        visible = np.full(len(of), np.nan)
    return {
        "element": of,
        "face": face,
        "status": status,
        "seen": np.minimum(seen, 1.0),
        "visible": np.minimum(visible, 1.0),
        "offset": np.where(is_there, offset, np.nan),
        "tilt": np.where(is_there, tilts, np.nan),
        "dx": shift[:, 0],
        "dy": shift[:, 1],
        "dz": shift[:, 2],
        "thickness": np.where(is_there, thickness, np.nan),
        "spread": np.where(is_there, spread, np.nan),
        "points": sums[:, 6].astype(np.int64),
        "area": np.where(area > 0, area, np.nan),
    }


def _known(axes: Any, options: Options) -> Any:
    """Say along which axes the movement of elements is known: bool[n, 3]."""
    with np.errstate(invalid="ignore"):
        support, view = axes[:, :, 6], axes[:, :, 7]
        is_known = (support >= options.min_area) & (support >= SUPPORT * view)
        most = np.nanmax(np.where(is_known, support, 0.0), axis=1, initial=0.0)
        return is_known & (support >= MINOR * most[:, None])


def _moved(axes: Any, is_known: Any) -> Any:
    """How far the faces along each axis are off: float64[n, 3], metres.

    The offset of their middle, or half of what their slope makes over their extent, as the root of
    the mean square: a slope is less certain than an offset.
    """
    slopes = (axes[:, :, 4] * axes[:, :, 8]) ** 2 + (axes[:, :, 5] * axes[:, :, 9]) ** 2
    moved = np.fmax(np.abs(axes[:, :, 3]), np.sqrt(slopes / 12) / 2)
    return np.where(is_known, moved, np.nan)


def _movement(axes: Any, is_known: Any) -> Any:
    """Give the shortest movement that has the known offsets along the axes: float64[n, 3]."""
    directions = np.where(is_known[:, :, None], axes[:, :, :3], 0.0)
    offsets = np.where(is_known, axes[:, :, 3], 0.0)
    return np.einsum("nij,nj->ni", np.linalg.pinv(directions), offsets)


def _thickness(
    faces: Faces, axes: Any, found: Any, axis: Any, main: Any, is_any: Any, min_area: float
) -> Any:
    """Measure between the largest faces of an element that look along its main axis both ways."""
    n = len(axes)
    along = np.einsum("ij,ij->i", axes[faces.element, main[faces.element], :3], faces.normal)
    level = np.einsum("ij,ij->i", axes[faces.element, main[faces.element], :3], faces.origin)
    with np.errstate(invalid="ignore", divide="ignore"):
        level = level + np.sign(along) * found[:, 7] / found[:, 8]
    is_seen = (axis == main[faces.element]) & (found[:, 0] >= min_area) & is_any[faces.element]
    ends = np.full((n, 2), np.nan)
    for side, sign in enumerate((1.0, -1.0)):
        chosen = np.flatnonzero(is_seen & (sign * along > 0))
        # the largest face of each element comes last, and stays
        chosen = chosen[np.argsort(faces.area[chosen], kind="stable")]
        ends[faces.element[chosen], side] = level[chosen]
    thickness = ends[:, 0] - ends[:, 1]
    return np.where(thickness > 0, thickness, np.nan)


def _near(elements: Meshes, samples: Samples, reach: float) -> Any:
    """Say which elements have a point of the sample near their boxes: bool[n]."""
    limits = boxes.of(elements)
    order = np.argsort(samples.points[:, 0], kind="stable")
    points = samples.points[order]
    found = np.zeros(len(limits), bool)
    for row, box in enumerate(limits):
        if not np.isfinite(box).all():
            continue
        first, stop = np.searchsorted(points[:, 0], [box[0] - reach, box[3] + reach])
        there = points[first:stop]
        found[row] = (
            ((there[:, 1:] >= box[1:3] - reach) & (there[:, 1:] <= box[4:] + reach))
            .all(axis=1)
            .any()
        )
    return found


def _status(sums: Any, area: Any, is_off: Any, near: Any, options: Options) -> Any:
    """Choose the status of each row: int64[n], a place in `STATUSES`."""
    seen, seen_in_view, view, through, before, _, _, _, _, empty, shared, shared_in_view = sums.T
    # what is on a face in the plane of another element's tells nothing of either, but that no
    # place is empty there
    in_place, in_any_view = seen_in_view, view
    seen, seen_in_view, view = seen - shared, seen_in_view - shared_in_view, view - shared_in_view
    has_stations = options.scanner is not None
    if has_stations:
        least = np.maximum(options.min_area, IN_VIEW * area)
        share = np.divide(
            seen_in_view, view, out=np.zeros(len(view)), where=view >= options.min_area
        )
        # what hardly a ray reaches, but has points, is seen, too
        is_revealed = (view < least) & (seen >= REVEALED * area)
        share = np.where(is_revealed, 1.0, share)
        # where nothing is behind, what is around an element says that the scan reaches it
        through = through + np.where(near, empty, 0.0)
        may_be_moved = seen_in_view >= least
        sees_through = (through >= least) & (through >= options.min_seen * in_any_view)
        # points close in front of more than is seen through may be the element, moved there
        sees_through &= through >= before
        # few points in view are too little for a movement, and too many for an empty place
        sees_through &= share < options.min_uncertain
        sees_through &= in_place < options.min_uncertain * in_any_view
        is_out_of_view = view < least
    else:
        share = (seen >= options.min_area).astype(np.float64)
        may_be_moved = np.ones(len(view), bool)
        sees_through = is_out_of_view = ~may_be_moved
    is_seen = (seen >= options.min_area) & (share >= options.min_seen)
    # of a moved element the faces in view must be there: others have points by chance
    is_seen &= ~is_off | may_be_moved
    may_be = (seen >= options.min_area) & (share >= options.min_uncertain)
    may_be &= may_be_moved
    may_be |= (seen + shared >= options.min_area) & ((seen < options.min_area) | (shared > seen))
    cases = [
        area <= 0,
        is_seen & is_off,
        is_seen,
        sees_through,
        may_be,
        ~near,
        is_out_of_view,
    ]
    names = (
        "not applicable", "displaced", "installed", "not found", "uncertain", "no data", "occluded",
    )  # fmt: skip
    return np.select(cases, [CODES[each] for each in names], CODES["not enough data"])
