"""Meshes that keep what is made of them, so that further calls do not make it again."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spatialq.data.meshes import Meshes
from spatialq.geometry import boxes
from spatialq.geometry.boxes import Boxes
from spatialq.geometry.prepared_meshes import PreparedMeshes
from spatialq.geometry.rtree import Tree

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class IndexedMeshes(Meshes):
    """Meshes in the memory of the host, with their boxes, their R-tree and what they are as solids.

    Each is made when it is first asked for, and stays. Kernels take them as any `Meshes`.
    """

    @classmethod
    def over(cls, meshes: Meshes) -> "IndexedMeshes":
        """Wrap meshes; nothing is copied."""
        return cls(*meshes.arrays)

    @cached_property
    def boxes(self) -> Boxes:
        """The box of each element, float64[k, 6]."""
        return boxes.of(self)

    @cached_property
    def tree(self) -> Tree:
        """The R-tree of the boxes."""
        return Tree.of(self.boxes)

    @cached_property
    def prepared(self) -> PreparedMeshes:
        """The elements as solids."""
        return PreparedMeshes(self, self.boxes)

    def index(self) -> None:
        """Make all of it now."""
        self.tree  # noqa: B018 (makes it)
        self.prepared  # noqa: B018

    @property
    def index_bytes(self) -> int:
        """The size of what is kept beside the meshes."""
        solids = self.prepared
        own = (solids.side, solids.label, solids.parts, solids.cluster_starts, solids.clusters)
        arrays = (self.boxes, self.tree.boxes, self.tree.starts, self.tree.rows, *own)
        return sum(int(each.nbytes) for each in arrays)


def boxes_of(meshes: Meshes) -> Boxes:
    """Give the boxes of meshes, which may be kept."""
    return meshes.boxes if isinstance(meshes, IndexedMeshes) else boxes.of(meshes)


def tree_of(meshes: Meshes | None) -> Tree | None:
    """Give the R-tree of meshes if it is kept."""
    return meshes.tree if isinstance(meshes, IndexedMeshes) else None


def prepare_pairs(
    a: Meshes, b: Meshes | None, boxes_a: Boxes, boxes_b: Boxes | None, rows_a: Rows, rows_b: Rows
) -> tuple[PreparedMeshes, Rows, Rows]:
    """Prepare the elements of some pairs.

    Parameters
    ----------
    a, b : Meshes
        Without b pairs within a.
    boxes_a, boxes_b : float64[k, 6]
        Their boxes.
    rows_a, rows_b : int64[n]
        The pairs: rows of a, and of b.

    Returns
    -------
    meshes : PreparedMeshes
        All elements of a and b; of sets that are kept, only those that are in a pair, since others
        would have to be copied.
    rows_a, rows_b : int64[n]
        The pairs as rows of these.
    """
    if b is None or boxes_b is None:
        return _prepared(a, boxes_a), rows_a, rows_b
    if not (isinstance(a, IndexedMeshes) or isinstance(b, IndexedMeshes)):
        limits = np.concatenate([boxes_a, boxes_b])
        return PreparedMeshes(a.followed_by(b), limits), rows_a, rows_b + len(a)
    of_a, there_a = np.unique(rows_a, return_inverse=True)
    of_b, there_b = np.unique(rows_b, return_inverse=True)
    both = _prepared(a, boxes_a, of_a).followed_by(_prepared(b, boxes_b, of_b))
    return both, there_a, there_b + len(of_a)


def _prepared(meshes: Meshes, limits: Boxes, rows: Any = None) -> PreparedMeshes:
    """Prepare all elements, or those of some rows."""
    if isinstance(meshes, IndexedMeshes):
        return meshes.prepared if rows is None else meshes.prepared.take(rows)
    if rows is None:
        return PreparedMeshes(meshes, limits)
    return PreparedMeshes(meshes.take(rows), limits[rows])
