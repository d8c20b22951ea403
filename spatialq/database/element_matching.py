"""Which object of one state of a model is which of another: by GlobalId, or place and shape."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spatialq.data.meshes import Meshes
from spatialq.database.transport.elements import meshes_of
from spatialq.geometry import boxes, broad_phase
from spatialq.geometry.motion import Shape, is_in_place
from spatialq.runtime.arrays import Floats, Ints

Match = tuple[int, int, str]
"""Rows of the old and of the new state, and by what they are the same."""

GLOBAL_ID, PLACE, NAME = "GlobalId", "place and shape", "class and name"


@dataclass(frozen=True)
class State:
    """The objects of one state of a model, or of several.

    Parameters
    ----------
    objects : pyarrow.Table
        With the columns `global_id`, `ifc_class`, `name`, `file_name`.
    meshes : Meshes
    mesh_of : int64[n]
        The mesh of each object; -1 where it has none.
    """

    objects: pa.Table
    meshes: Meshes
    mesh_of: Ints

    @classmethod
    def of_elements(cls, elements: pa.Table) -> "State":
        """Take a table of elements, which all have meshes."""
        rows = np.arange(elements.num_rows)
        return cls(elements, meshes_of("elements", elements["mesh"].combine_chunks()), rows)

    @classmethod
    def of_model(cls, objects: pa.Table, elements: pa.Table) -> "State":
        """Take the objects of one file, with the meshes that its table of elements has."""
        found = pc.index_in(objects["step_id"], value_set=elements["step_id"].combine_chunks())
        mesh_of = found.fill_null(-1).to_numpy().astype(np.int64)
        meshes = meshes_of("elements", elements["mesh"].combine_chunks())
        return cls(objects, meshes, mesh_of)

    def __len__(self) -> int:
        return len(self.mesh_of)

    def shape(self, row: int) -> Shape | None:
        """Give the mesh of an object; None where it has none."""
        mesh = self.mesh_of[row]
        if mesh < 0:
            return None
        starts, faces = self.meshes.vertex_starts, self.meshes.face_starts
        return Shape(
            self.meshes.vertices[starts[mesh] : starts[mesh + 1]],
            self.meshes.faces[faces[mesh] : faces[mesh + 1]],
        )

    @cached_property
    def boxes(self) -> Floats:
        """The box of each mesh."""
        return boxes.of(self.meshes)

    def column(self, name: str) -> list[str | None]:
        """Give a column of texts."""
        found: list[str | None] = self.objects[name].to_pylist()
        return found


def match(old: State, new: State, tolerance: float) -> list[Match]:
    """Find the objects that are in both states, each once.

    Those with one GlobalId are the same, whatever became of them. Of several with one GlobalId,
    and of those whose GlobalIds are new, those that stayed in their place and shape are; and of
    objects without a mesh, those that have a class and name to themselves.

    Parameters
    ----------
    old, new : State
    tolerance : float
        Metres, to which places and shapes are the same.
    """
    columns = ("global_id", "file_name", "ifc_class", "name")
    olds, news = (list(zip(*map(state.column, columns), strict=True)) for state in (old, new))
    by_old: dict[int, Match] = {}
    taken: set[int] = set()

    def take(pairs: Iterable[tuple[int, int]], by: str) -> None:
        for i, j in pairs:
            if i not in by_old and j not in taken:
                by_old[i] = (i, j, by)
                taken.add(j)

    def stayed(i: int, j: int) -> bool:
        a, b = old.shape(i), new.shape(j)
        return a is not None and b is not None and is_in_place(a, b, tolerance)

    def likeness(pair: tuple[int, int]) -> tuple[bool, ...]:
        """Sort the most alike to the front."""
        return tuple(a != b for a, b in zip(olds[pair[0]][1:], news[pair[1]][1:], strict=True))

    same = list(_groups([row[0] for row in olds], [row[0] for row in news]))
    take(((i, j) for (i, *more), (j, *others) in same if not more and not others), GLOBAL_ID)
    for rows, others in same:
        if len(rows) + len(others) > 2:
            pairs = sorted(((i, j) for i in rows for j in others), key=likeness)
            take([pair for pair in pairs if stayed(*pair)], GLOBAL_ID)
            take(pairs, GLOBAL_ID)

    def left(state: State, seen: Iterable[int], *, with_mesh: bool) -> Ints:
        is_left = (state.mesh_of >= 0) == with_mesh
        is_left[list(seen)] = False
        return np.flatnonzero(is_left)

    rows_a, rows_b = left(old, by_old, with_mesh=True), left(new, taken, with_mesh=True)
    near = sorted(_near(old, rows_a, new, rows_b, tolerance), key=likeness)
    take((pair for pair in near if pair[0] not in by_old and stayed(*pair)), PLACE)
    rows_a, rows_b = left(old, by_old, with_mesh=False), left(new, taken, with_mesh=False)
    named = _groups([olds[i][2:] for i in rows_a], [news[j][2:] for j in rows_b])
    alone = [(rows_a[i], rows_b[j]) for (i, *m), (j, *n) in named if not m and not n]
    take(((int(i), int(j)) for i, j in alone), NAME)
    return sorted(by_old.values())


def _groups(
    old: Iterable[Hashable], new: Iterable[Hashable]
) -> Iterator[tuple[list[int], list[int]]]:
    """Give the places of each value that is in both."""
    places: list[dict[Hashable, list[int]]] = []
    for values in (old, new):
        places.append(defaultdict(list))
        for k, value in enumerate(values):
            places[-1][value].append(k)
    for value, there in places[0].items():
        if value is not None and value in places[1]:
            yield there, places[1][value]


def _near(
    old: State, rows_a: Ints, new: State, rows_b: Ints, tolerance: float
) -> list[tuple[int, int]]:
    """Find the pairs of objects whose boxes are the same."""
    if 0 in (len(rows_a), len(rows_b)):
        return []
    a, b = old.boxes[old.mesh_of[rows_a]], new.boxes[new.mesh_of[rows_b]]
    low_a, low_b = (np.hstack([each[:, :3], each[:, :3]]) for each in (a, b))
    i, j = broad_phase.pairs(low_a, low_b, tolerance)
    is_same = (np.abs(a[i] - b[j]) <= tolerance).all(axis=1)
    return list(zip(rows_a[i[is_same]].tolist(), rows_b[j[is_same]].tolist(), strict=True))
