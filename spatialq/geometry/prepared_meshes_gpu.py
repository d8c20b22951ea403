"""`PreparedMeshes` on the GPU, see solids.cu."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry.clusters import CLUSTER
from spatialq.geometry.solids import Solids
from spatialq.runtime import cuda

SOURCE = Path(__file__).parent / "solids.cu"
WARPS = 4  # of a block


def to_device(device: cuda.Device, meshes: Meshes) -> Meshes:
    """Bring meshes to the device, if they are not there."""
    if device.is_here(meshes.vertices):
        return Meshes(*(device.view(array) for array in meshes.arrays))
    return Meshes(*device.upload([np.ascontiguousarray(array) for array in meshes.arrays]))


class PreparedMeshes:
    """Meshes, their boxes and clusters, and what each of them is as a solid, on the device.

    Parameters
    ----------
    device : spatialq.runtime.cuda.Device
    meshes : Meshes
        Of k elements, on the device.
    boxes : float64[k, 6]
        The boxes of the elements, on the device.

    Attributes
    ----------
    side, label, parts
        See `solids.describe`.
    cluster_starts, clusters
        See `clusters.cluster_boxes`.
    max_vertices : int
        Of any element.
    """

    def __init__(self, device: cuda.Device, meshes: Meshes, boxes: Any) -> None:
        xp = device.xp
        self.meshes = meshes
        self.boxes = boxes
        k = len(meshes)
        self.side = xp.empty(k, np.int8)
        self.label = xp.empty(len(meshes.vertices), np.int32)
        self.parts = xp.empty(k, np.int32)
        self.cluster_starts = xp.zeros(k + 1, np.int64)
        self.cluster_starts[1:] = xp.cumsum(-(-xp.diff(meshes.face_starts) // CLUSTER))
        count = int(self.cluster_starts[-1])
        self.clusters = xp.empty((count, 6))
        self.max_vertices = int(xp.diff(meshes.vertex_starts).max()) if k else 0
        if k:
            device.launch(
                SOURCE, "describe", (-(-k // WARPS),), 32 * WARPS,
                *meshes.arrays, boxes, k, self.side, self.label, self.parts,
            )  # fmt: skip
        if count:
            device.launch(
                SOURCE, "cluster_boxes", (-(-count // 128),), 128,
                *meshes.arrays, self.cluster_starts, k, count, self.clusters,
            )  # fmt: skip

    @property
    def solids(self) -> Solids:
        """All arrays, in the order of `Solids` in the sources."""
        return Solids(
            *self.meshes.arrays, self.boxes, self.side, self.label, self.parts,
            self.cluster_starts, self.clusters,
        )  # fmt: skip
