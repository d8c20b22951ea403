"""Runs `intersects_with` on the CPU (Numba)."""

from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry import broad_phase
from spatialq.geometry.indexed_meshes import boxes_of, prepare_pairs, tree_of
from spatialq.geometry.prepared_meshes import PreparedMeshes
from spatialq.runtime import progress
from spatialq.runtime.threads import in_threads

from . import Options, common_parts, depths, pairmesh
from .depths import MIN_TOLERANCE
from .narrow_phase import relate


def run(
    a: Meshes, b: Meshes | None = None, *, options: Options, pairs: tuple[Any, Any] | None = None,
    identities: tuple[Any, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Find the pairs of elements that meet, and how.

    Parameters
    ----------
    a, b : Meshes
        Pairs of an element of each; without `b` all pairs within `a`.
    options : Options
    pairs : int64[], int64[], optional
        Rows of the pairs to relate, instead of all whose boxes meet.
    identities : uint64[], uint64[], optional
        Of the elements of a and b; a pair with one number is left out.

    Returns
    -------
    dict of arrays
        `a b` (int64, the rows), `relation` (int8, see `RELATIONS`), `penetration` (float64: how
        far they reach into each other; 0 for touch, NaN where a mesh is open), `thickness`
        (float64: the diameter of the largest ball found in both; alike), `distance` (float64),
        `x y z` (float64: the centre of the ball, or of the contact), `a_open b_open` (bool),
        `penetration_at_least` (bool: it may be larger). Sorted by a, then b. The method 'pairmesh'
        gives no penetration, no thickness, no distance and no point: NaN. For `volume dx dy dz`
        see `common_parts.columns`.
    """
    progress.stage("near pairs", 0.2)
    t = max(options.tolerance, MIN_TOLERANCE)
    # the outer meshes of two elements meet at up to twice the tolerance
    margin = t if options.method == "exact" else 2.0 * t
    boxes_a, boxes_b = boxes_of(a), None if b is None else boxes_of(b)
    rows_a, rows_b = pairs or broad_phase.pairs(
        boxes_a, boxes_b, margin, options.broad_phase, tree_of(a), tree_of(b)
    )
    rows_a, rows_b = different(rows_a, rows_b, identities)
    n = len(rows_a)
    relation, measures = np.zeros(n, np.int8), np.full((n, 5), np.nan)
    penetration, is_least = np.full(n, np.nan), np.zeros(n, np.bool_)
    is_open = np.zeros((2, n), np.bool_)
    for batch in prepare_pairs(a, b, boxes_a, boxes_b, rows_a, rows_b, "relations of pairs"):
        meshes, there_a, there_b = batch.meshes, batch.rows_a, batch.rows_b
        if options.method == "exact":
            found = relate_exactly(meshes, there_a, there_b, options)
            relation[batch.at], measures[batch.at] = found.relation, found.measures
            penetration[batch.at], is_least[batch.at] = found.penetration, found.is_least
        else:
            relation[batch.at] = pairmesh.relations(meshes.meshes, None, there_a, there_b, t)
        is_open[:, batch.at] = meshes.side[there_a] == 0, meshes.side[there_b] == 0
    keep = np.flatnonzero(relation > (0 if options.relations else 1))
    thickness, distance, x, y, z = np.ascontiguousarray(measures[keep].T)
    table = {
        "a": rows_a[keep],
        "b": rows_b[keep],
        "relation": relation[keep],
        "penetration": penetration[keep],
        "thickness": thickness,
        "distance": distance,
        "x": x,
        "y": y,
        "z": z,
        "a_open": is_open[0, keep],
        "b_open": is_open[1, keep],
        "penetration_at_least": is_least[keep],
    }
    return table | common_parts.columns(table, a, b, options)


def different(rows_a: Any, rows_b: Any, identities: tuple[Any, Any] | None) -> tuple[Any, Any]:
    """Leave out the pairs of an element and itself, of arrays in any memory."""
    if identities is None:
        return rows_a, rows_b
    keep = identities[0][rows_a] != identities[1][rows_b]
    return rows_a[keep], rows_b[keep]


def relate_exactly(
    meshes: PreparedMeshes, rows_a: Any, rows_b: Any, options: Options
) -> depths.Related:
    """Find the relations of pairs of elements by their triangles, see `depths.relate`."""
    solids = meshes.solids

    def related(rows: Any, t: float, *, touches: bool) -> tuple[Any, Any]:
        return relate_pairs(meshes, rows_a[rows], rows_b[rows], t, touches=touches)

    def reaches(rows: Any, measures: Any, floors: Any) -> Any:
        return depths.reaches(solids, rows_a[rows], rows_b[rows], measures, floors)

    return depths.relate(np, related, reaches, meshes.boxes, meshes.side, rows_a, rows_b, options)


def relate_pairs(
    meshes: PreparedMeshes, rows_a: Any, rows_b: Any, t: float, *, touches: bool
) -> tuple[Any, Any]:
    """Find the relations of pairs of elements, see `narrow_phase.relate`."""
    relation = np.empty(len(rows_a), np.int8)
    measures = np.empty((len(rows_a), 5))
    solids = meshes.solids

    def some(span: tuple[int, int]) -> None:
        relate(
            rows_a, rows_b, *span, solids,
            t, touches, meshes.max_faces, meshes.max_vertices, progress.stop_flag(),
            relation, measures,
        )  # fmt: skip

    in_threads(some, len(rows_a))
    return relation, measures
