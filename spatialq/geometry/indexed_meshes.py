"""Meshes that keep what is made of them, so that further calls do not make it again."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry import boxes
from spatialq.geometry.boxes import Boxes
from spatialq.geometry.prepared_meshes import PreparedMeshes
from spatialq.geometry.rtree import Tree, along_curve
from spatialq.runtime import budget, progress
from spatialq.runtime.arrays import Ints
from spatialq.runtime.compile_cache import njit

Rows = Ints

BUDGET_PARTS = 4
"""Prepared elements of a batch may take this part of the memory budget, in which the meshes of all
elements are, too, and copies that are made on the way."""
BYTES_OF_VERTEX, BYTES_OF_FACE, BYTES_OF_ELEMENT = 28, 24, 88
"""Of prepared meshes: coordinates and label; corners and a share of a box of some; the rest."""


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


@dataclass(frozen=True)
class PairBatch:
    """Some of the pairs of a call, and their elements."""

    at: Any
    """Which pairs, int64[n]; all of them as a slice."""
    meshes: PreparedMeshes
    rows_a: Rows
    """The pairs as rows of `meshes`."""
    rows_b: Rows


def prepare_pairs(
    a: Meshes,
    b: Meshes | None,
    boxes_a: Boxes,
    boxes_b: Boxes | None,
    rows_a: Rows,
    rows_b: Rows,
    stage: str,
) -> Iterator[PairBatch]:
    """Prepare the elements of pairs, as many at a time as the memory budget allows.

    Pairs near each other are in one batch, and all pairs of an element of `a`. An element is
    prepared once for each batch in which it has a pair, with the same result.

    Parameters
    ----------
    a, b : Meshes
        Without b pairs within a.
    boxes_a, boxes_b : float64[k, 6]
        Their boxes.
    rows_a, rows_b : int64[n]
        The pairs: rows of a, and of b.
    stage : str
        What is done with a batch, for the progress of the call, of which 0.2 are done.
    """
    most, everything = budget.current() // BUDGET_PARTS, _sizes(a).sum()
    parts: list[Any] = [slice(None)]
    if everything + (0 if b is None else _sizes(b).sum()) > most:
        parts = _divided(a, b, boxes_a, rows_a, rows_b, most) or parts
    for number, at in enumerate(parts):
        begin, step = 0.2 + 0.8 * number / len(parts), 0.8 / len(parts)
        progress.stage("meshes", begin + step / 8)
        prepare = _prepare_all if isinstance(at, slice) else _prepare_some
        prepared = prepare(a, b, boxes_a, boxes_b, rows_a[at], rows_b[at])
        progress.stage(stage, begin + step)
        yield PairBatch(at, *prepared)


@dataclass(frozen=True)
class PairTile:
    """Some of the pairs of a call, and copies of their elements."""

    at: Rows
    """Which pairs, int64[n]."""
    meshes: Meshes
    rows_a: Rows
    """The pairs as rows of `meshes`."""
    rows_b: Rows


def tiles_of_pairs(
    a: Meshes, b: Meshes | None, boxes_a: Boxes, rows_a: Rows, rows_b: Rows, tiles: int
) -> Iterator[PairTile]:
    """Divide the pairs of a call so that the elements of each tile are a part of all.

    Parameters
    ----------
    a, b, boxes_a, rows_a, rows_b
        As for `prepare_pairs`, in which pairs are divided alike.
    tiles : int
        The elements of a tile need this part of the memory of all, unless those of one element's
        pairs need more. There are more tiles where elements are in several.
    """
    everything = _sizes(a).sum() + (0 if b is None else _sizes(b).sum())
    for at in _divided(a, b, boxes_a, rows_a, rows_b, everything // tiles):
        if b is None:
            both = np.concatenate([rows_a[at], rows_b[at]])
            rows, there = np.unique(both, return_inverse=True)
            yield PairTile(at, a.take(rows), there[: len(at)], there[len(at) :])
            continue
        of_a, there_a = np.unique(rows_a[at], return_inverse=True)
        of_b, there_b = np.unique(rows_b[at], return_inverse=True)
        meshes = a.take(of_a).followed_by(b.take(of_b))
        yield PairTile(at, meshes, there_a, there_b + len(of_a))


def _divided(
    a: Meshes, b: Meshes | None, boxes_a: Boxes, rows_a: Rows, rows_b: Rows, most: int
) -> list[Rows]:
    """Divide pairs into parts whose elements need so many bytes; none if there is no pair."""
    sizes_a, sizes_b = _sizes(a), _sizes(a if b is None else b)
    order, ends = rows_by_place(boxes_a, rows_a), np.empty(len(rows_a) + 1, np.int64)
    n = cut_pairs(rows_a[order], rows_b[order], sizes_a, sizes_b, most, ends)
    return np.split(order, ends[: n - 1]) if n else []


def rows_by_place(boxes_a: Boxes, rows_a: Rows) -> Rows:
    """Order pairs so that those of one element follow each other, and near elements, too."""
    there = np.unique(rows_a)
    rank = np.empty(len(boxes_a), np.int64)
    rank[there[along_curve(boxes_a, there)]] = np.arange(there.size)
    order: Rows = np.argsort(rank[rows_a], kind="stable")
    return order


def _sizes(meshes: Meshes) -> Rows:
    """Give the bytes that each element needs in prepared meshes, int64[k]."""
    vertices, faces = np.diff(meshes.vertex_starts), np.diff(meshes.face_starts)
    sizes: Rows = BYTES_OF_VERTEX * vertices + BYTES_OF_FACE * faces + BYTES_OF_ELEMENT
    return sizes


@njit(cache=True, nogil=True)
def cut_pairs(rows_a, rows_b, sizes_a, sizes_b, most, ends):  # type: ignore[no-untyped-def]
    """Cut a list of pairs between elements of a, so that each part's elements are small enough.

    Parameters
    ----------
    rows_a, rows_b : int64[n]
        The pairs, those of each element of a one after the other.
    sizes_a, sizes_b : int64[k]
        Bytes of each element.
    most : int
        Bytes of the elements of a part, unless those of one element's pairs are more.
    ends : int64[n]
        Out: where each part ends.

    Returns
    -------
    int
        Number of parts.
    """
    last = np.full(sizes_b.size, -1)  # the part in which an element of b was counted
    n = size = first = 0
    for stop in range(1, rows_a.size + 1):
        if stop < rows_a.size and rows_a[stop] == rows_a[first]:
            continue
        new = sizes_a[rows_a[first]]
        for k in range(first, stop):
            if last[rows_b[k]] != n:
                new += sizes_b[rows_b[k]]
        if size + new > most and size > 0:
            ends[n] = first
            n += 1
            size, new = 0, sizes_a[rows_a[first]]
            for k in range(first, stop):
                new += sizes_b[rows_b[k]]
        for k in range(first, stop):
            last[rows_b[k]] = n
        size += new
        first = stop
    if rows_a.size:
        ends[n] = rows_a.size
        n += 1
    return n


def _prepare_all(
    a: Meshes, b: Meshes | None, boxes_a: Boxes, boxes_b: Boxes | None, rows_a: Rows, rows_b: Rows
) -> tuple[PreparedMeshes, Rows, Rows]:
    """Prepare all elements; of sets that are kept, only those that are in a pair.

    The others of these would have to be copied.
    """
    if b is None or boxes_b is None:
        return _prepared(a, boxes_a), rows_a, rows_b
    if not (isinstance(a, IndexedMeshes) or isinstance(b, IndexedMeshes)):
        limits = np.concatenate([boxes_a, boxes_b])
        return PreparedMeshes(a.followed_by(b), limits), rows_a, rows_b + len(a)
    return _prepare_some(a, b, boxes_a, boxes_b, rows_a, rows_b)


def _prepare_some(
    a: Meshes, b: Meshes | None, boxes_a: Boxes, boxes_b: Boxes | None, rows_a: Rows, rows_b: Rows
) -> tuple[PreparedMeshes, Rows, Rows]:
    """Prepare the elements that are in a pair."""
    if b is None or boxes_b is None:
        both, there = np.unique(np.concatenate([rows_a, rows_b]), return_inverse=True)
        return _prepared(a, boxes_a, both), there[: len(rows_a)], there[len(rows_a) :]
    of_a, there_a = np.unique(rows_a, return_inverse=True)
    of_b, there_b = np.unique(rows_b, return_inverse=True)
    found = _prepared(a, boxes_a, of_a).followed_by(_prepared(b, boxes_b, of_b))
    return found, there_a, there_b + len(of_a)


def _prepared(meshes: Meshes, limits: Boxes, rows: Any = None) -> PreparedMeshes:
    """Prepare all elements, or those of some rows."""
    if isinstance(meshes, IndexedMeshes):
        return meshes.prepared if rows is None else meshes.prepared.take(rows)
    if rows is None:
        return PreparedMeshes(meshes, limits)
    return PreparedMeshes(meshes.take(rows), limits[rows])
