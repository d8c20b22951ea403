"""From tables of elements to a kernel and back: meshes in, plan, run, log, pairs out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spatialq.data.arrow import ARROW_TYPES
from spatialq.data.meshes import Meshes
from spatialq.database import pins
from spatialq.database.transport.arrow import choose, list_of_structs, structs
from spatialq.execution.call import call
from spatialq.execution.validation import meshes_with, reject_meshes, require_whole_meshes
from spatialq.functions.catalogue import Function
from spatialq.geometry.indexed_meshes import IndexedMeshes

FLAGS = np.array(["a_open", "b_open", "a_duplicate_id", "b_duplicate_id"])
"""What may be odd about a pair: open meshes, and GlobalIds that a set has more than once."""


def of_sets(function: Function, firsts: Any, seconds: Any, sets: Any, options: Any) -> Any:
    """Run the kernel once a row, on two lists of elements, and give a list of pairs.

    Of `sets`, `within` says that all pairs within the first are asked for instead; `a` and `b` are
    the numbers of pins to use instead of the lists, or NULL.
    """
    rows = zip(
        each_set(f"{function.name}: a", firsts),
        each_set(f"{function.name}: b", seconds),
        sets.to_pylist(),
        options.to_pylist(),
        strict=True,
    )
    found = []
    for a, b, given, chosen in rows:
        first, second = (
            each if given[name] is None else pins.find(given[name], function.name).kept
            for name, each in (("a", a), ("b", b))
        )
        found.append(_pairs(function, first, None if given["within"] else second, chosen))
    return list_of_structs(found)


def of_meshes(function: Function, firsts: Any, seconds: Any, options: Any) -> Any:
    """Say how the two meshes of each row stand to each other: a struct."""
    parts = zip(firsts.chunks, seconds.chunks, options.chunks, strict=True)
    return pa.concat_arrays([_row_by_row(function, a, b, chosen) for a, b, chosen in parts])


@dataclass(frozen=True)
class ElementSet:
    """The elements of one argument, and what names them in the result."""

    global_id: pa.Array
    identity: Any
    """uint64[k]: the same for the same element in two sets."""
    is_duplicate: Any
    """bool[k]: another element of the set has its GlobalId."""
    meshes: Meshes

    @property
    def nbytes(self) -> int:
        """The size of all of it, and of the index of its meshes."""
        arrays = (*self.meshes.arrays, self.identity, self.is_duplicate)
        index = self.meshes.index_bytes if isinstance(self.meshes, IndexedMeshes) else 0
        return index + int(self.global_id.nbytes) + sum(int(each.nbytes) for each in arrays)


def each_set(place: str, column: Any) -> Any:
    """Give the set of each row; NULL, as list() gives for no rows at all, has no elements.

    Errors begin with `place`.
    """
    for chunk in column.chunks:
        offsets = chunk.offsets.to_pylist()
        for k, valid in enumerate(chunk.is_valid().to_pylist()):
            stop = offsets[k + 1] if valid else offsets[k]
            rows = chunk.values.slice(offsets[k], stop - offsets[k])
            global_id = rows.field("global_id")
            codes = global_id.dictionary_encode().indices.fill_null(-1).to_numpy()
            known = codes[codes >= 0]
            yield ElementSet(
                global_id,
                rows.field("identity").fill_null(0).to_numpy(),
                (codes >= 0) & (np.bincount(known, minlength=1)[codes] > 1),
                _meshes(place, rows.field("mesh"), global_id),
            )


def kept_set(elements: ElementSet) -> ElementSet:
    """Copy a set into memory of its own, and index its meshes."""
    meshes = IndexedMeshes(*(np.array(each) for each in elements.meshes.arrays))
    meshes.index()
    everything = pa.array(np.arange(len(elements.global_id)))
    return ElementSet(
        elements.global_id.take(everything),  # a copy: a slice would hold the whole column
        np.array(elements.identity),
        elements.is_duplicate,
        meshes,
    )


def _meshes(place: str, column: Any, global_id: Any = None) -> Meshes:
    """View an Arrow column of meshes as arrays; copied only where some are NULL.

    Raises
    ------
    ValueError
        If a mesh is broken; the sentence begins with `place`.
    """
    if column.null_count:  # what is below a NULL may be anything
        column = pc.if_else(column.is_valid(), column, pa.scalar(EMPTY, column.type))
    vertices, vertex_starts = _flat(place, "vertices", column.field("vertices"), global_id)
    faces, face_starts = _flat(place, "faces", column.field("faces"), global_id)
    meshes = Meshes(vertices, faces, vertex_starts, face_starts)
    require_whole_meshes(place, meshes, global_id)
    return meshes


EMPTY: dict[str, list[float]] = {"vertices": [], "faces": []}


def _flat(place: str, name: str, lists: Any, global_id: Any) -> tuple[Any, Any]:
    """Turn lists of 3 m values into an array [n, 3] and the starts of the lists in it."""
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy()
    reject_meshes(place, lengths % 3 != 0, f"whose number of {name} values is no multiple of 3",
            global_id)  # fmt: skip
    values = lists.flatten()
    if values.null_count:
        is_null = values.is_null().to_numpy(zero_copy_only=False)
        bad = meshes_with(np.concatenate([[0], np.cumsum(lengths)]), is_null)
        reject_meshes(place, bad, f"with NULL among its {name}", global_id)
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths // 3, out=starts[1:])
    return values.to_numpy(zero_copy_only=True).reshape(-1, 3), starts


def _pairs(function: Function, a: ElementSet, b: ElementSet | None, chosen: dict[str, Any]) -> Any:
    """Run the kernel on two sets and name the pairs: a struct each."""
    sets = {"a": a.meshes, "b": None if b is None else b.meshes}
    result, _ = call(function, sets, *choose(function, chosen))
    other = a if b is None else b
    # an element that is in both sets does not meet itself
    keep = a.identity[result["a"]] != other.identity[result["b"]] if b is not None else slice(None)
    result = {name: values[keep] for name, values in result.items()}
    n = len(result["a"])
    odd = np.zeros((n, len(FLAGS)), bool)
    odd[:, 0] = result.get("a_open", False)
    odd[:, 1] = result.get("b_open", False)
    odd[:, 2] = a.is_duplicate[result["a"]]
    odd[:, 3] = other.is_duplicate[result["b"]]
    pairs = structs(function, {
        **result,
        "a": a.global_id.take(pa.array(result["a"])),
        "b": other.global_id.take(pa.array(result["b"])),
    })  # fmt: skip
    starts = np.concatenate([[0], np.cumsum(odd.sum(axis=1))])
    flags = pa.ListArray.from_arrays(
        pa.array(starts, pa.int32()), pa.array(FLAGS[np.nonzero(odd)[1]], pa.string())
    )
    return pa.StructArray.from_arrays(
        [*pairs.flatten(), flags], names=[*function.output.columns, "flags"]
    )


def _row_by_row(function: Function, firsts: Any, seconds: Any, options: Any) -> Any:
    """Run the kernel on the pairs of meshes of one chunk, together."""
    n = len(firsts)
    asked = np.flatnonzero(
        pc.and_(firsts.is_valid(), seconds.is_valid()).to_numpy(zero_copy_only=False)
    )
    result: dict[str, Any] = {"found": np.zeros(n, bool)}
    columns = [name for name in function.output.columns if name not in ("a", "b")]
    for name in columns:
        kind = ARROW_TYPES[function.output.columns[name]]
        is_real = name not in function.output.codes and kind == pa.float64()
        result[name] = np.full(n, np.nan) if is_real else np.zeros(n, np.int64)
    each = options.to_pylist()
    for chosen in {tuple(each[row].items()) for row in asked}:
        rows = np.array([row for row in asked if tuple(each[row].items()) == chosen])
        settings, _ = choose(function, dict(chosen))  # one by one, always on the CPU
        found = function.kernel("cpu")(
            _meshes(f"{function.name}: the first argument", firsts.take(pa.array(rows))),
            _meshes(f"{function.name}: the second argument", seconds.take(pa.array(rows))),
            options=settings,
            pairs=(np.arange(len(rows)), np.arange(len(rows))),
        )
        result["found"][rows[found["a"]]] = True
        for name in columns:
            result[name][rows[found["a"]]] = found[name]
    mask = np.ones(n, bool)
    mask[asked] = False
    fields = {"found": "BOOLEAN", **{name: function.output.columns[name] for name in columns}}
    arrays = structs(function, result, fields).flatten()
    return pa.StructArray.from_arrays(arrays, names=list(fields), mask=pa.array(mask))
