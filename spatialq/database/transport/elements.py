"""From tables of elements to a kernel and back: meshes in, plan, run, log, pairs out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spatialq.data.arrow import ARROW_TYPES
from spatialq.data.meshes import Meshes
from spatialq.database import pins
from spatialq.database.transport.arrow import (
    Columns,
    each_list,
    list_of_structs,
    structs,
)
from spatialq.database.transport.columns import given_by
from spatialq.database.transport.queries import Source, call_of, lookups_of, names_of, request_of
from spatialq.database.transport.refusal import require_table
from spatialq.database.transport.request import Request, Transport
from spatialq.execution.call import call
from spatialq.execution.placement import warn_if_misplaced
from spatialq.execution.validation import meshes_with, reject_meshes, require_whole_meshes
from spatialq.functions.catalogue import Function, divisible
from spatialq.functions.declaration import ElementsInput, PointsAndElementsInput
from spatialq.functions.sql_text import literal
from spatialq.geometry.indexed_meshes import IndexedMeshes
from spatialq.runtime.arrays import Array, Bools, Ints

OF_RESULT = ("a_open", "b_open", "penetration_at_least")
FLAGS = np.array([*OF_RESULT, "a_duplicate_id", "b_duplicate_id"])
"""What may be odd about a pair: what the kernel says of it, and GlobalIds that a set has more than
once."""
ROW = "{place: place, global_id: global_id, identity: identity, mesh: mesh}"
"""An element of a list, which may have them in any order: `place` says in which."""


def of_sets(
    function: Function,
    firsts: pa.ChunkedArray,
    seconds: pa.ChunkedArray,
    requests: pa.ChunkedArray,
) -> pa.ListArray:
    """Run the kernel once a row, on two lists of elements, and give a list of pairs."""
    rows = zip(each_table(firsts), each_table(seconds), requests.to_pylist(), strict=True)
    return list_of_structs([
        pairs
        for a, b, text in rows
        for pairs in answers(function, Request.of(text), [a, b], transport="lists")
    ])  # fmt: skip


def answers(
    function: Function,
    request: Request,
    parts: Sequence[Columns],
    *,
    transport: Transport,
) -> Iterator[pa.StructArray]:
    """Run the kernel and give its pairs as an Arrow array of structs.

    Parameters
    ----------
    function : Function
    request : Request
        Whose `source` says whether all pairs `within` the first table are asked for, and may name
        pins.
    parts : sequence of mapping of str to Arrow array
        The elements of the first and the second table.
    transport : 'native' or 'lists'
    """
    sets: list[ElementSet] = []
    notes = []
    for part in (0,) if request.source["within"] else (0, 1):
        pin = pins.of_request(request, part, function.name)
        if pin is None:
            sets.append(set_of(f"{function.name}: {'ab'[part]}", parts[part]))
        else:
            sets.append(pin.kept)
            notes.append(pin.note)
    yield _pairs(function, sets, request, transport=transport, note="; ".join(notes))


def source_of(place: str, elements: str, part: int) -> Source:
    """Say how a function gets the elements of a table.

    Parameters
    ----------
    place : str
        The function and its argument, as errors name them.
    elements : str
    part : int
    """
    columns = {
        "place": "place",
        "global_id": "global_id",
        "identity": "identity",
        "vertices": "mesh.vertices",
        "faces": "mesh.faces",
    }
    return Source(columns, in_order(place, elements), part)


def beside_points(function: Function, elements: str) -> Source:
    """Say how a function of points and elements gets the elements of a table."""
    return source_of(f"{function.name}: elements", elements, 1)


def read(function: Function, _: Request, columns: Columns) -> "ElementSet":
    """Make the elements that a function of points and elements gets of the columns of a table.

    Raises
    ------
    ValueError
        As `set_of`.
    """
    return set_of(f"{function.name}: elements", columns)


def named(result: Mapping[str, Any], elements: "ElementSet") -> dict[str, Any]:
    """Give a result whose `element`, a row, is a `global_id`, too."""
    if "element" not in result:
        return dict(result)
    rows = pa.array(result["element"], mask=result["element"] < 0)
    return {**result, "global_id": elements.global_id.take(rows)}


def in_order(place: str, elements: str) -> str:
    """Write what gives the elements of a table, numbered in its order."""
    rows = f"FROM spatialq_elements({literal(place)}, {literal(elements)})"
    return f"(SELECT row_number() OVER () AS place, * {rows})"


def stated_by(function: Function, request: Request, table: str, part: int) -> pins.Lookup | None:
    """Write what looks for values of parameters in the table; None if all are given.

    A column that the table lacks states nothing, and NULL neither.
    """
    names = [
        each.name
        for each in function.parameters
        if each.of_elements and request.options.get(each.name) is None
    ]
    if not names:
        return None
    absent = ", ".join(f"NULL::DOUBLE AS {name}" for name in names)
    lists = (
        f"{name}: list(DISTINCT {name}::DOUBLE) FILTER (WHERE isfinite({name}::DOUBLE))"
        for name in names
    )
    cte = f'"spatialq stated {part}"'
    return pins.Lookup(
        cte,
        f"{cte} AS MATERIALIZED (SELECT to_json({{{', '.join(lists)}}}) AS stated "
        f"FROM (FROM query_table({literal(table)}) UNION ALL BY NAME SELECT {absent} WHERE false))",
    )


def list_of(source: Source) -> str:
    """Write the query for the list of a table's elements."""
    return f"(SELECT list({ROW}) AS elements FROM {source.rows})"


def query(
    function: Function, transport: Transport, caller: str, a: str | None, b: str | None, text: str
) -> str:
    """Write the query that calls a function of elements; parameters travel as JSON."""
    for argument, name in (("a", a), ("b", b)):
        sentence = f"{caller}: {argument} must be the name of a table of elements, got "
        if name == "" or (name is None and argument == "a"):
            message = f"{sentence}{'NULL' if name is None else repr(name)}"
            raise ValueError(message)
        if name is not None:
            require_table(sentence, name)
    assert a is not None
    known = divisible().get(caller)
    of_points = caller if known and isinstance(known.inputs, PointsAndElementsInput) else ""
    request = Request.new(text, within=b is None, of_points=of_points)
    request.choose(function, caller)  # wrong ones are rejected while the query is bound
    sources = []
    for part, table in enumerate([a] if b is None else [a, b]):
        argument = "elements" if of_points and part else "ab"[part]
        source = source_of(f"{caller}: {argument}", table, part)
        pin = pins.lookup(table, pins.ELEMENTS, part, on_gpu=False)
        stated = stated_by(function, request, table, part)
        sources.append(replace(source.unless_pinned(pin), stated=stated))
    second = "NULL" if b is None else "b.elements"
    given = (f"{list_of(each)} AS {'ab'[each.part]}" for each in sources)
    lists = (
        f"{lookups_of(sources)}SELECT unnest(spatialq_{function.name}_udf(a.elements, {second}, "
        f"{request_of(request, sources)}), max_depth := 2) "
        f"FROM {', '.join([*given, *names_of(sources)])}"
    )
    return call_of(function, transport, request, sources, lists)


def of_meshes(function: Function, *columns: pa.ChunkedArray) -> pa.StructArray:
    """Say how the two meshes of each row stand to each other: a struct.

    The columns are the callers, the meshes and the parameters.
    """
    parts = zip(*(column.chunks for column in columns), strict=True)
    return pa.concat_arrays([_row_by_row(function, *part) for part in parts])


@dataclass(frozen=True)
class ElementSet:
    """The elements of one argument, and what names them in the result."""

    global_id: pa.Array
    identity: Array
    """uint64[k]: the same for the same element in two sets."""
    is_duplicate: Bools
    """bool[k]: another element of the set has its GlobalId."""
    meshes: Meshes

    def is_same(self, other: "ElementSet") -> bool:
        """Tell whether the other set has the same elements with the same meshes, in this order."""
        mine, others = (self.identity, *self.meshes.arrays), (other.identity, *other.meshes.arrays)
        return all(map(np.array_equal, mine, others))

    @property
    def nbytes(self) -> int:
        """The size of all of it, and of the index of its meshes."""
        arrays = (*self.meshes.arrays, self.identity, self.is_duplicate)
        index = self.meshes.index_bytes if isinstance(self.meshes, IndexedMeshes) else 0
        return index + int(self.global_id.nbytes) + sum(int(each.nbytes) for each in arrays)


def each_table(column: pa.ChunkedArray) -> Iterator[Columns]:
    """Give the columns of each list of elements, as the extension collects them."""
    for unordered in each_list(column):
        rows = _in_order(unordered)
        mesh = rows.field("mesh")
        if mesh.null_count:  # what is below a NULL may be anything
            mesh = pc.if_else(mesh.is_valid(), mesh, pa.scalar(EMPTY, mesh.type))
        yield {
            "global_id": rows.field("global_id"),
            "identity": rows.field("identity"),
            "vertices": mesh.field("vertices"),
            "faces": mesh.field("faces"),
        }


def _in_order(rows: pa.StructArray) -> pa.StructArray:
    """Put the elements of a list into the order of their table."""
    places = rows.field("place").to_numpy(zero_copy_only=False)
    if (places[1:] > places[:-1]).all():
        return rows
    return rows.take(pa.array(np.argsort(places)))


def set_of(place: str, columns: Columns) -> ElementSet:
    """Make the set of elements that a kernel gets of the columns of a table.

    Raises
    ------
    ValueError
        If a mesh is broken; the sentence begins with `place`.
    """
    global_id = columns["global_id"]
    codes = global_id.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    known = codes[codes >= 0]
    return ElementSet(
        global_id,
        columns["identity"].fill_null(0).to_numpy(),
        (codes >= 0) & (np.bincount(known, minlength=1)[codes] > 1),
        _meshes(place, columns["vertices"], columns["faces"], global_id),
    )


def indexed(elements: ElementSet) -> ElementSet:
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


def _meshes(
    place: str, vertices: pa.Array, faces: pa.Array, global_id: pa.Array | None = None
) -> Meshes:
    """View Arrow columns of lists as the arrays of meshes.

    Raises
    ------
    ValueError
        If a mesh is broken; the sentence begins with `place`.
    """
    points, point_starts = _flat(place, "vertices", vertices, global_id)
    corners, corner_starts = _flat(place, "faces", faces, global_id)
    meshes = Meshes(points, corners, point_starts, corner_starts)
    require_whole_meshes(place, meshes, global_id)
    return meshes


def meshes_of(place: str, column: pa.Array) -> Meshes:
    """View an Arrow column of meshes, a struct of lists, as the arrays of meshes; NULL is empty.

    Raises
    ------
    ValueError
        If a mesh is broken; the sentence begins with `place`.
    """
    vertices, faces = (pc.struct_field(column, name) for name in ("vertices", "faces"))
    return _meshes(place, vertices.cast(pa.list_(pa.float64())), faces.cast(pa.list_(pa.int32())))


EMPTY: dict[str, list[float]] = {"vertices": [], "faces": []}


def _flat(place: str, name: str, lists: pa.Array, global_id: pa.Array | None) -> tuple[Array, Ints]:
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


def _pairs(
    function: Function,
    sets: Sequence[ElementSet],
    request: Request,
    *,
    transport: Transport,
    note: str,
) -> pa.StructArray:
    """Run the kernel on one set, or on two, and name the pairs: a struct each."""
    a, other, is_one = sets[0], sets[-1], len(sets) == 1
    given: dict[str, Any] = {"a": a.meshes, "b": None if is_one else other.meshes}
    options, device = request.choose(function)
    inputs, mirrored = function.inputs, None
    assert isinstance(inputs, ElementsInput)
    if not is_one and inputs.mirrored and inputs.is_symmetric(options):
        if a.is_same(other):
            given["b"], mirrored = None, inputs.mirrored
        elif np.isin(a.identity, other.identity).any():
            given["identities"] = a.identity, other.identity
    with request.within_memory(function.name):
        result, _ = call(function, given, options, device, transport=transport, note=note)
        if mirrored:
            result = _with_mirrored(result, mirrored(result))
        if caller := request.source["of_points"]:
            warn_if_misplaced(caller, a.meshes.vertices.T, 1.0, other.meshes)
    # an element that is in both sets does not meet itself
    keep = slice(None) if is_one else a.identity[result["a"]] != other.identity[result["b"]]
    result = {name: values[keep] for name, values in result.items()}
    n = len(result["a"])
    odd = np.zeros((n, len(FLAGS)), bool)
    for k, name in enumerate(OF_RESULT):
        odd[:, k] = result.get(name, False)
    odd[:, -2] = a.is_duplicate[result["a"]]
    odd[:, -1] = other.is_duplicate[result["b"]]
    named = {
        **result,
        "a": a.global_id.take(pa.array(result["a"])),
        "b": other.global_id.take(pa.array(result["b"])),
    }
    pairs = structs(function, named, as_it_is=transport == "native")
    starts = np.concatenate([[0], np.cumsum(odd.sum(axis=1))])
    flags = pa.ListArray.from_arrays(
        pa.array(starts, pa.int32()), pa.array(FLAGS[np.nonzero(odd)[1]], pa.string())
    )
    return pa.StructArray.from_arrays([*pairs.flatten(), flags], names=list(given_by(function)))


def _with_mirrored(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Put pairs (a, b) and (b, a) into the order of a, then b."""
    both = {name: np.concatenate([one[name], other[name]]) for name in one}
    order = np.lexsort((both["b"], both["a"]))
    return {name: values[order] for name, values in both.items()}


def _row_by_row(
    function: Function, callers: pa.Array, firsts: pa.Array, seconds: pa.Array, options: pa.Array
) -> pa.StructArray:
    """Run the kernel on the pairs of meshes of one chunk, together."""
    caller = callers[0].as_py()
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
    for chosen in {each[row] for row in asked}:
        rows = np.array([row for row in asked if each[row] == chosen])
        settings, _ = Request.of(chosen).choose(function, caller)  # always on the CPU
        taken = (column.take(pa.array(rows)) for column in (firsts, seconds))
        a, b = ((mesh.field("vertices"), mesh.field("faces")) for mesh in taken)
        found = function.kernel("cpu")(
            _meshes(f"{caller}: the first argument", *a),
            _meshes(f"{caller}: the second argument", *b),
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
