"""Meshes with what is computed once for each of them, before pairs are compared."""

import numpy as np

from spatialq.data.meshes import Meshes
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
        self.meshes = meshes
        self.boxes = boxes
        k = len(meshes)
        self.side = np.empty(k, np.int8)
        self.label = np.empty(len(meshes.vertices), np.int32)
        self.parts = np.empty(k, np.int32)
        self.cluster_starts = starts_of(meshes.face_starts)
        self.clusters = np.empty((self.cluster_starts[-1], 6))
        self.max_faces = int(np.diff(meshes.face_starts).max(initial=0))
        self.max_vertices = int(np.diff(meshes.vertex_starts).max(initial=0))
        bits = meshes.vertices.view(np.uint64)

        def prepare(span: tuple[int, int]) -> None:
            cluster_boxes(*meshes.arrays, self.cluster_starts, *span, self.clusters)
            vertices, *rest = meshes.arrays
            describe(vertices, bits, *rest, boxes, *span, self.side, self.label, self.parts)

        in_threads(prepare, k)

    @property
    def solids(self) -> Solids:
        """All arrays, as kernels take them."""
        return Solids(
            *self.meshes.arrays, self.boxes, self.side, self.label, self.parts,
            self.cluster_starts, self.clusters,
        )  # fmt: skip
