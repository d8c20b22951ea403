"""`distance` on the CPU: near boxes, then the triangles of each pair, in threads."""

from collections.abc import Callable
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry.indexed_meshes import boxes_of, prepare_pairs, tree_of
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
    progress.stage("meshes", 0.3)
    meshes, there_a, there_b = prepare_pairs(a, b, boxes_a, boxes_b, rows_a, rows_b)
    progress.stage("distances", 1.0)
    arrays = (
        *meshes.meshes.arrays, meshes.boxes, meshes.cluster_starts, meshes.clusters,
        meshes.side, meshes.label, meshes.max_faces,
    )  # fmt: skip
    measures = np.empty((len(rows_a), 7))
    halt = progress.stop_flag()
    limit = np.inf if options.max_distance is None else options.max_distance
    work: Callable[[tuple[int, int]], Any]
    if options.k is None:
        n = len(rows_a)

        def work(span: tuple[int, int]) -> None:
            measure_pairs(there_a, there_b, *span, limit, halt, *arrays, measures)
    else:
        n = len(a)
        starts = np.searchsorted(rows_a, np.arange(n + 1))

        def work(span: tuple[int, int]) -> None:
            measure_nearest(
                there_a, there_b, starts, *span, limit, options.k, halt, *arrays, measures
            )

    in_threads(work, n)
    return table(rows_a, rows_b, measures, options)
