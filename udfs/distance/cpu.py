"""`distance` on the CPU: near boxes, then the triangles of each pair, in threads."""

from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry.indexed_meshes import PairBatch, boxes_of, prepare_pairs, tree_of
from spatialq.runtime import progress
from spatialq.runtime.threads import in_threads

from . import Options
from .candidates import candidates, table
from .search import measure_nearest, measure_pairs


def run(
    a: Meshes, b: Meshes | None = None, *, options: Options, pairs: tuple[Any, Any] | None = None
) -> dict[str, Any]:
    """Measure how far elements are from each other, and where.

    Parameters
    ----------
    a, b : Meshes
        Pairs of an element of each; without `b` all pairs within `a`, and with `k` each element
        of `a` and all others.
    options : Options
    pairs : int64[], int64[], optional
        Rows of the pairs to measure, without `k`.

    Returns
    -------
    dict of arrays
        `a b` (int64, the rows), `distance` (float64, metres: 0 where the surfaces meet, or one
        element has a part inside the other), `ax ay az bx by bz` (float64, metres: a point of
        each at this distance; of several those of the first triangles, and a common point where
        they meet). Sorted by a, then b; with `k` by a, distance, b.

    Notes
    -----
    An element without triangles is in no pair. An open mesh is a surface: nothing is inside it.
    """
    progress.stage("near pairs", 0.2)
    boxes_a, boxes_b = boxes_of(a), None if b is None else boxes_of(b)
    rows_a, rows_b = pairs or candidates(boxes_a, boxes_b, options, tree_of(a), tree_of(b))
    measures = np.empty((len(rows_a), 7))
    for batch in prepare_pairs(a, b, boxes_a, boxes_b, rows_a, rows_b, "distances"):
        measures[batch.at] = _measure(batch, options)
    return table(rows_a, rows_b, measures, options)


def _measure(batch: PairBatch, options: Options) -> Any:
    """Measure the pairs of a batch: float64[n, 7], see `search.measure_pairs`."""
    meshes, pairs = batch.meshes, (batch.rows_a, batch.rows_b)
    arrays = (
        *meshes.meshes.arrays, meshes.boxes, meshes.cluster_starts, meshes.clusters,
        meshes.side, meshes.label, meshes.max_faces,
    )  # fmt: skip
    n = len(batch.rows_a)
    measures, halt = np.empty((n, 7)), progress.stop_flag()
    limit = np.inf if options.max_distance is None else options.max_distance
    if options.k is None:
        in_threads(lambda span: measure_pairs(*pairs, *span, limit, halt, *arrays, measures), n)
        return measures
    new = np.flatnonzero(np.diff(batch.rows_a)) + 1
    starts = np.concatenate([[0], new, [n]]) if n else np.zeros(1, np.int64)
    in_threads(
        lambda span: measure_nearest(
            *pairs, starts, *span, limit, options.k, halt, *arrays, measures
        ),
        len(starts) - 1,
    )
    return measures
