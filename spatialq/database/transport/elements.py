"""From tables of elements to a kernel and back: meshes in, plan, run, log, pairs out."""

from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spatialq.data.meshes import Meshes
from spatialq.database.sql_function import SqlFunction
from spatialq.database.transport.arrow import (
    ARROW_TYPES,
    choose,
    list_of_structs,
    options_type,
    structs,
)
from spatialq.execution.call import call
from spatialq.functions.declaration import Udf
from spatialq.functions.sql_text import identifier
from spatialq.runtime import cuda
from spatialq.runtime.cuda import on_gpu

MESH = "STRUCT(vertices DOUBLE[], faces INTEGER[])"
ELEMENT = f"STRUCT(global_id VARCHAR, identity UBIGINT, mesh {MESH})"
FLAGS = np.array(["a_open", "b_open", "a_duplicate_id", "b_duplicate_id"])
"""What may be odd about a pair: open meshes, and GlobalIds that a set has more than once."""


def kernel_functions(udf: Udf) -> tuple[SqlFunction, SqlFunction]:
    """Make the SQL functions `<name>_udf` and `<name>_of_meshes` of a function of elements.

    The first gets two lists of elements, whether all pairs within the first are asked for
    instead, and a struct of the options and the device; one row is one call of the kernel, which
    gives a list of pairs. The second gets two meshes a row and gives a struct: how the two stand
    to each other.
    """

    def of_sets(firsts: Any, seconds: Any, within: Any, options: Any) -> Any:
        rows = zip(
            each_set(udf, "a", firsts),
            each_set(udf, "b", seconds),
            within.to_pylist(),
            options.to_pylist(),
            strict=True,
        )
        return list_of_structs(
            [_pairs(udf, a, None if alone else b, chosen) for a, b, alone, chosen in rows]
        )

    def of_meshes(firsts: Any, seconds: Any, options: Any) -> Any:
        parts = zip(firsts.chunks, seconds.chunks, options.chunks, strict=True)
        return pa.concat_arrays([_row_by_row(udf, a, b, chosen) for a, b, chosen in parts])

    _name_arguments(of_sets, "a", "b", "within", "options")
    _name_arguments(of_meshes, "mesh", "other", "options")
    pair = {name: kind for name, kind in udf.returns.items() if name not in ("a", "b")}
    return (
        SqlFunction(
            f"{udf.name}_udf",
            (f"{ELEMENT}[]", f"{ELEMENT}[]", "BOOLEAN", options_type(udf)),
            f"{struct_type({**udf.returns, 'flags': 'VARCHAR[]'})}[]",
            of_sets,
        ),
        SqlFunction(
            f"{udf.name}_of_meshes",
            (MESH, MESH, options_type(udf)),
            struct_type({"found": "BOOLEAN", **pair}),
            of_meshes,
            volatile=False,  # so that a query may name a result, and it is not computed twice
        ),
    )


def _name_arguments(function: Any, *names: str) -> None:
    # DuckDB counts the arguments of a function by its signature.
    function.__signature__ = Signature([Parameter(n, Parameter.POSITIONAL_ONLY) for n in names])


def struct_type(columns: Any) -> str:
    """Write the SQL type of a struct."""
    return "STRUCT({})".format(
        ", ".join(f"{identifier(name)} {kind}" for name, kind in columns.items())
    )


@dataclass(frozen=True)
class _Set:
    """The elements of one argument, and what names them in the result."""

    global_id: pa.Array
    identity: Any
    """uint64[k]: the same for the same element in two sets."""
    is_duplicate: Any
    """bool[k]: another element of the set has its GlobalId."""
    meshes: Meshes


def each_set(udf: Udf, argument: str, column: Any) -> Any:
    """Give the set of each row; NULL, as list() gives for no rows at all, has no elements."""
    for chunk in column.chunks:
        offsets = chunk.offsets.to_pylist()
        for k, valid in enumerate(chunk.is_valid().to_pylist()):
            stop = offsets[k + 1] if valid else offsets[k]
            rows = chunk.values.slice(offsets[k], stop - offsets[k])
            global_id = rows.field("global_id")
            codes = global_id.dictionary_encode().indices.fill_null(-1).to_numpy()
            known = codes[codes >= 0]
            yield _Set(
                global_id,
                rows.field("identity").fill_null(0).to_numpy(),
                (codes >= 0) & (np.bincount(known, minlength=1)[codes] > 1),
                _meshes(f"{udf.name}: {argument}", rows.field("mesh"), global_id),
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
    check(place, meshes, global_id)
    return meshes


EMPTY: dict[str, list[float]] = {"vertices": [], "faces": []}


def _flat(place: str, name: str, lists: Any, global_id: Any) -> tuple[Any, Any]:
    """Turn lists of 3 m values into an array [n, 3] and the starts of the lists in it."""
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy()
    _refuse(place, lengths % 3 != 0, f"whose number of {name} values is no multiple of 3",
            global_id)  # fmt: skip
    values = lists.flatten()
    if values.null_count:
        is_null = values.is_null().to_numpy(zero_copy_only=False)
        bad = _with_any(np.concatenate([[0], np.cumsum(lengths)]), is_null)
        _refuse(place, bad, f"with NULL among its {name}", global_id)
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths // 3, out=starts[1:])
    return values.to_numpy(zero_copy_only=True).reshape(-1, 3), starts


def as_meshes(place: str, given: Any) -> Meshes:
    """Take what a caller of `run_elements` gives as meshes.

    Parameters
    ----------
    place : str
        How an error begins.
    given : Meshes, or sequence of (vertices, faces)

    Raises
    ------
    ValueError
        If arrays have another shape or type or are in different memories, or a mesh is broken.
    """
    if isinstance(given, Meshes):
        parts = (given.vertices, given.faces, given.vertex_starts, given.face_starts)
        there = [on_gpu(part) for part in parts]
        if any(there) and not all(there):
            message = f"{place}: all arrays of the meshes must be in one memory"
            raise ValueError(message)
        view = cuda.device().view if any(there) else np.asarray
        given = Meshes(*(view(part) for part in parts))
    else:
        pairs = [(np.asarray(vertices), np.asarray(faces)) for vertices, faces in given]
        for k, pair in enumerate(pairs):
            _require_shapes(f"{place}: mesh {k}", *pair)
        given = Meshes.of([(vertices, narrowed(faces)) for vertices, faces in pairs])
    _require_shapes(place, given.vertices, given.faces)
    if len(given.vertex_starts) != len(given.face_starts):
        message = f"{place}: vertex_starts and face_starts must have one length"
        raise ValueError(message)
    meshes = Meshes(
        given.vertices.astype(np.float64, order="C", copy=False),
        narrowed(given.faces),
        given.vertex_starts.astype(np.int64, order="C", copy=False),
        given.face_starts.astype(np.int64, order="C", copy=False),
    )
    for name, starts, values in (
        ("vertex_starts", meshes.vertex_starts, meshes.vertices),
        ("face_starts", meshes.face_starts, meshes.faces),
    ):
        if not (len(starts) and starts[0] == 0 and starts[-1] == len(values)
                and (np.diff(starts) >= 0).all()):  # fmt: skip
            message = f"{place}: {name} must grow from 0 to {len(values)}, the number of rows"
            raise ValueError(message)
    check(place, meshes)
    return meshes


def narrowed(faces: Any) -> Any:
    """Make int32 of indices; those it has no room for stay wrong, to be refused."""
    if faces.size and faces.dtype.itemsize >= 4 and faces.dtype != np.int32:
        faces = faces.clip(-1 if faces.dtype.kind == "i" else 0, 2**31 - 1)
    return faces.reshape(-1, 3).astype(np.int32, order="C", copy=False)


def _require_shapes(place: str, vertices: Any, faces: Any) -> None:
    for name, array, kinds, right in (
        ("vertices", vertices, "fiu", "numbers [n, 3]"),
        ("faces", faces, "iu", "integers [m, 3]"),
    ):
        is_empty = 0 in array.shape
        if (array.dtype.kind not in kinds and not is_empty) or (
            array.shape[1:] != (3,) and array.shape != (0,)
        ):
            message = f"{place}: {name} must be {right}, got {array.dtype}{list(array.shape)}"
            raise ValueError(message)


def check(place: str, meshes: Meshes, global_id: Any = None) -> None:
    """Refuse meshes that no kernel may get.

    Raises
    ------
    ValueError
        If coordinates are not finite, or faces name vertices that are not there.
    """
    is_finite = np.isfinite(meshes.vertices)
    if not is_finite.all():
        bad = _with_any(meshes.vertex_starts, ~is_finite.all(axis=1))
        _refuse(place, bad, "with vertices that are not finite", global_id)
    room = np.diff(meshes.vertex_starts)[_owners(meshes.face_starts, len(meshes.faces))][:, None]
    beyond = (meshes.faces < 0) | (meshes.faces >= room)
    if beyond.any():
        bad = _with_any(meshes.face_starts, beyond.any(axis=1))
        _refuse(place, bad, "whose faces name vertices that are not there", global_id)


def _owners(starts: Any, n: int) -> Any:
    """Give int64[n], the mesh that each of n values belongs to; in the memory of starts."""
    return np.cumsum(np.bincount(starts[1:-1], minlength=n + 1)[:n])


def _with_any(starts: Any, is_bad: Any) -> Any:
    """Give bool[k], the meshes that have one of the bad values."""
    bad = np.zeros(len(starts) - 1, bool)
    bad[_owners(starts, len(is_bad))[is_bad].tolist()] = True
    return bad


def _refuse(place: str, is_bad: Any, what: str, global_id: Any) -> None:
    count = np.count_nonzero(is_bad)
    if not count:
        return
    first = int(np.argmax(is_bad))
    name = f"at position {first}" if global_id is None else f"global_id {global_id[first]}"
    plural = "mesh" if count == 1 else "meshes"
    message = f"{place} has {count} {plural} {what}, the first is {name}"
    raise ValueError(message)


def _pairs(udf: Udf, a: _Set, b: _Set | None, chosen: dict[str, Any]) -> Any:
    """Run the kernel on two sets and name the pairs: a struct each."""
    sets = {"a": a.meshes, "b": None if b is None else b.meshes}
    result, _ = call(udf, sets, *choose(udf, chosen))
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
    pairs = structs(udf, {
        **result,
        "a": a.global_id.take(pa.array(result["a"])),
        "b": other.global_id.take(pa.array(result["b"])),
    })  # fmt: skip
    starts = np.concatenate([[0], np.cumsum(odd.sum(axis=1))])
    flags = pa.ListArray.from_arrays(
        pa.array(starts, pa.int32()), pa.array(FLAGS[np.nonzero(odd)[1]], pa.string())
    )
    return pa.StructArray.from_arrays([*pairs.flatten(), flags], names=[*udf.returns, "flags"])


def _row_by_row(udf: Udf, firsts: Any, seconds: Any, options: Any) -> Any:
    """Run the kernel on the pairs of meshes of one chunk, together."""
    n = len(firsts)
    asked = np.flatnonzero(
        pc.and_(firsts.is_valid(), seconds.is_valid()).to_numpy(zero_copy_only=False)
    )
    result: dict[str, Any] = {"found": np.zeros(n, bool)}
    columns = [name for name in udf.returns if name not in ("a", "b")]
    for name in columns:
        kind = ARROW_TYPES[udf.returns[name]]
        is_real = name not in udf.values and kind == pa.float64()
        result[name] = np.full(n, np.nan) if is_real else np.zeros(n, np.int64)
    each = options.to_pylist()
    for chosen in {tuple(each[row].items()) for row in asked}:
        rows = np.array([row for row in asked if tuple(each[row].items()) == chosen])
        settings, _ = choose(udf, dict(chosen))  # one by one, always on the CPU
        found = udf.kernel("cpu")(
            _meshes(f"{udf.name}: the first argument", firsts.take(pa.array(rows))),
            _meshes(f"{udf.name}: the second argument", seconds.take(pa.array(rows))),
            options=settings,
            pairs=(np.arange(len(rows)), np.arange(len(rows))),
        )
        result["found"][rows[found["a"]]] = True
        for name in columns:
            result[name][rows[found["a"]]] = found[name]
    mask = np.ones(n, bool)
    mask[asked] = False
    fields = {"found": "BOOLEAN", **{name: udf.returns[name] for name in columns}}
    arrays = structs(udf, result, fields).flatten()
    return pa.StructArray.from_arrays(arrays, names=list(fields), mask=pa.array(mask))
