"""Runs `direction` on the CPU (Numba)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry import rtree
from spatialq.runtime import progress
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import in_threads

from . import Options
from .beyond import all_over, some_over
from .polygons import ROOM
from .view import MIN_TOLERANCE, View, axes, corners, look


def run(
    a: Meshes, b: Meshes | None = None, *, options: Options, pairs: tuple[Any, Any] | None = None
) -> dict[str, Any]:
    """Find the pairs of elements of which the second lies in a direction from the first.

    Parameters
    ----------
    a, b : Meshes
        Pairs of an element of each; without `b` all pairs of two different elements of `a`.
    options : Options
    pairs : int64[], int64[], optional
        Rows of the pairs to test, instead of all.

    Returns
    -------
    dict of arrays
        `a b` (int64, the rows): b lies above a, or whatever the direction is. Sorted by a, then b.

    Raises
    ------
    ValueError
        If a corner of a triangle is not finite.

    Notes
    -----
    An element without triangles is in no pair; in the model 'projection' neither is one whose
    projection is a line, such as a single vertical surface seen from above.
    """
    return search(a, b, options, pairs, some_lie_over)


def search(
    a: Meshes,
    b: Meshes | None,
    options: Options,
    pairs: tuple[Any, Any] | None,
    some: Callable[[View, Any, Any, float], Any],
) -> dict[str, Any]:
    """Do what `run` does; `some` is the device's `some_lie_over`."""
    t = max(options.tolerance, MIN_TOLERANCE)
    progress.stage("view along the direction", 0.2)
    view = view_of(a, b, options)
    shift = 0 if b is None else len(a)
    progress.stage("near pairs", 0.3)
    if pairs is not None:
        rows_a, rows_b = pairs[0], pairs[1] + shift
        keep = _may_be(view.boxes, rows_a, rows_b, t, options)
        rows_a, rows_b = rows_a[keep], rows_b[keep]
    elif options.model == "halfspace":
        rows_a, rows_b = _beyond_extremes(view.boxes, len(a), shift, t, strict=options.strict)
    else:
        rows_a, rows_b = _candidates(view.boxes, None if b is None else len(a), t, options)
    if options.model == "projection":
        progress.stage("pairs that overlap", 0.8 if options.strict else 1.0)
        keep = some(view, rows_a, rows_b, t)
        rows_a, rows_b = rows_a[keep], rows_b[keep]
        if options.strict:
            progress.stage("pairs that lie over each other", 1.0)
            keep = _all_lie_over(view, rows_a, rows_b, t)
            rows_a, rows_b = rows_a[keep], rows_b[keep]
    return {"a": rows_a, "b": rows_b - shift}


def view_of(a: Meshes, b: Meshes | None, options: Options) -> View:
    """View the elements of a, and behind them those of b, along the direction."""
    triangles, starts = corners(a, "a"), a.face_starts
    if b is not None:
        triangles = np.concatenate([triangles, corners(b, "b")])
        starts = np.concatenate([starts, starts[-1] + b.face_starts[1:]])
    if len(triangles):
        triangles = triangles - triangles.min(axis=(0, 1))
    u, v, w = axes(options)
    x, y, z = (np.ascontiguousarray(triangles[:, :, axis]) for axis in range(3))
    turned = np.stack([x * d[0] + y * d[1] + z * d[2] for d in (u, v, w)], axis=-1)
    return look(turned, starts)


def some_lie_over(view: View, rows_a: Any, rows_b: Any, t: float) -> Any:
    """Tell for pairs of elements whether some points of the second lie over the first."""
    keep, halt = np.empty(len(rows_a), np.bool_), progress.stop_flag()
    in_threads(
        lambda span: _some_over(
            rows_a, rows_b, *span,
            view.facets, view.starts, view.clusters, view.cluster_starts, view.boxes, t, halt, keep,
        ),
        len(rows_a),
    )  # fmt: skip
    return keep


def _all_lie_over(view: View, rows_a: Any, rows_b: Any, t: float) -> Any:
    keep, halt = np.empty(len(rows_a), np.bool_), progress.stop_flag()
    max_facets = int(np.diff(view.starts).max(initial=0))
    in_threads(
        lambda span: _all_over(
            rows_a, rows_b, *span,
            view.facets, view.starts, view.clusters, view.cluster_starts, t, max_facets, halt, keep,
        ),
        len(rows_a),
    )  # fmt: skip
    return keep


def _may_be(boxes: Any, rows_a: Any, rows_b: Any, t: float, options: Options) -> Any:
    """Tell which pairs may be wanted, by their boxes; in the model 'halfspace', which are."""
    a, b = boxes[rows_a], boxes[rows_b]
    if options.model == "halfspace":
        place, top = b[:, 2 if options.strict else 5], a[:, 5]
        beyond = place >= top - t if options.strict else place > top + t
        return beyond & np.isfinite(place) & np.isfinite(top)
    common = np.minimum(a[:, 3:5], b[:, 3:5]) - np.maximum(a[:, :2], b[:, :2])
    return (common > t).all(axis=1) & (b[:, 5] - a[:, 2] > t)


def _beyond_extremes(
    boxes: Any, size: int, shift: int, t: float, *, strict: bool
) -> tuple[Any, Any]:
    there = np.isfinite(boxes[:, 2])
    rows_a = np.flatnonzero(there[:size])
    rows_b = shift + np.flatnonzero(there[shift:])
    place, top = boxes[rows_b, 2 if strict else 5], boxes[:, 5]
    parts = [np.empty(0, np.int64)]
    for i in rows_a:
        progress.check()
        beyond = rows_b[place >= top[i] - t if strict else place > top[i] + t]
        parts.append(beyond[beyond != i])
    return np.repeat(rows_a, [len(part) for part in parts[1:]]), np.concatenate(parts)


def _candidates(boxes: Any, split: int | None, t: float, options: Options) -> tuple[Any, Any]:
    """Find the candidate pairs by their boxes, projected: an R-tree of what is seen from above."""
    flat = boxes.copy()
    seen = np.isfinite(boxes[:, 2])
    flat[seen, 2] = flat[seen, 5] = 0.0
    if split is not None:
        rows_a, rows_b = rtree.pairs(flat[:split], flat[split:], 0.0)
        rows_b = rows_b + split
    else:  # in both orders
        lower, upper = rtree.pairs(flat, None, 0.0)
        rows_a, rows_b = np.concatenate([lower, upper]), np.concatenate([upper, lower])
        order = np.lexsort((rows_b, rows_a))
        rows_a, rows_b = rows_a[order], rows_b[order]
    keep = _may_be(boxes, rows_a, rows_b, t, options)
    return rows_a[keep], rows_b[keep]


@njit(cache=True, nogil=True, error_model="numpy")
def _some_over(
    rows_a: Any, rows_b: Any, first: int, stop: int,
    facets: Any, starts: Any, clusters: Any, cluster_starts: Any, boxes: Any, t: float,
    halt: Any, keep: Any,
) -> None:  # fmt: skip
    x = np.empty(3 * ROOM)
    y = np.empty(3 * ROOM)
    for p in range(first, stop):
        if halt[0]:
            return
        keep[p] = some_over(
            rows_a[p], rows_b[p], facets, starts, clusters, cluster_starts, boxes, t, x, y
        )


@njit(cache=True, nogil=True, error_model="numpy")
def _all_over(
    rows_a: Any, rows_b: Any, first: int, stop: int,
    facets: Any, starts: Any, clusters: Any, cluster_starts: Any,
    t: float, max_facets: int, halt: Any, keep: Any,
) -> None:  # fmt: skip
    below = np.empty(max_facets, np.int64)
    for p in range(first, stop):
        if halt[0]:
            return
        keep[p] = all_over(rows_a[p], rows_b[p], facets, starts, clusters, cluster_starts, t, below)
