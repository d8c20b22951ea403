"""Meshes with what is computed once for each of them, before pairs are compared."""

from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes, spans_of
from spatialq.geometry.boxes import Boxes
from spatialq.geometry.clusters import cluster_boxes, starts_of
from spatialq.geometry.solids import Solids, describe
from spatialq.runtime.threads import in_threads


class PreparedMeshes:
    """Meshes, their boxes and clusters, and what each of them is as a solid.

    Parameters
    ----------
    meshes : Meshes
        Of k elements, in the memory of the host.
    boxes : float64[k, 6]
        The boxes of the elements.

    Attributes
    ----------
    side, label, parts
        See `solids.describe`.
    cluster_starts, clusters
        See `clusters.cluster_boxes`.
    max_faces, max_vertices : int
        Of any element.
    """

    def __init__(self, meshes: Meshes, boxes: Boxes) -> None:
        k = len(meshes)
        cluster_starts = starts_of(meshes.face_starts)
        self._hold(
            meshes,
            boxes,
            np.empty(k, np.int8),
            np.empty(len(meshes.vertices), np.int32),
            np.empty(k, np.int32),
            cluster_starts,
            np.empty((cluster_starts[-1], 6)),
        )
        vertices, *rest = meshes.arrays
        bits = vertices.view(np.uint64)

        def prepare(span: tuple[int, int]) -> None:
            cluster_boxes(vertices, *rest, self.cluster_starts, *span, self.clusters)
            describe(vertices, bits, *rest, boxes, *span, self.side, self.label, self.parts)

        in_threads(prepare, k)

    def _hold(
        self, meshes: Meshes, boxes: Boxes,
        side: Any, label: Any, parts: Any, cluster_starts: Any, clusters: Any,
    ) -> None:  # fmt: skip
        self.meshes, self.boxes = meshes, boxes
        self.side, self.label, self.parts = side, label, parts
        self.cluster_starts, self.clusters = cluster_starts, clusters
        self.max_faces = int(np.diff(meshes.face_starts).max(initial=0))
        self.max_vertices = int(np.diff(meshes.vertex_starts).max(initial=0))

    def take(self, rows: Any) -> "PreparedMeshes":
        """Copy what is known of some of the elements, int64[n]."""
        found = PreparedMeshes.__new__(PreparedMeshes)
        of_vertices, _ = spans_of(self.meshes.vertex_starts, rows)
        of_clusters, cluster_starts = spans_of(self.cluster_starts, rows)
        found._hold(
            self.meshes.take(rows), self.boxes[rows], self.side[rows], self.label[of_vertices],
            self.parts[rows], cluster_starts, self.clusters[of_clusters],
        )  # fmt: skip
        return found

    def followed_by(self, other: "PreparedMeshes") -> "PreparedMeshes":
        """Append other elements; nothing is computed again."""
        found = PreparedMeshes.__new__(PreparedMeshes)
        one, two = self, other
        found._hold(
            one.meshes.followed_by(two.meshes),
            np.concatenate([one.boxes, two.boxes]),
            np.concatenate([one.side, two.side]),
            np.concatenate([one.label, two.label]),
            np.concatenate([one.parts, two.parts]),
            np.concatenate([one.cluster_starts, one.cluster_starts[-1] + two.cluster_starts[1:]]),
            np.concatenate([one.clusters, two.clusters]),
        )
        return found

    @property
    def solids(self) -> Solids:
        """All arrays, as kernels take them."""
        return Solids(
            *self.meshes.arrays, self.boxes, self.side, self.label, self.parts,
            self.cluster_starts, self.clusters,
        )  # fmt: skip
