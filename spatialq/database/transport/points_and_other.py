"""From a table of points and another one, of elements, polygons or points, to a kernel and back."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spatialq.data.polygons import Polygons
from spatialq.database.transport import clouds, elements, points, polygons, reference
from spatialq.database.transport.arrow import (
    Columns,
    each_list,
    list_of_structs,
    structs,
)
from spatialq.database.transport.columns import TABLES, attributes_of, points_of
from spatialq.database.transport.queries import Source, call_of, lookups_of, names_of, request_of
from spatialq.database.transport.refusal import require_table
from spatialq.database.transport.request import Request, Transport
from spatialq.execution.call import call
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import BOUNDS, PointsAndTableInput
from spatialq.geometry.polygon_index import PolygonIndex


def list_of(source: Source) -> str:
    """Write the query for the list of a table's rows."""
    fields = ", ".join(f"{name}: {value}" for name, value in source.columns.items())
    return f"(SELECT list({{{fields}}}) FROM {source.checked})"


@dataclass(frozen=True)
class Other:
    """How a function gets the rows of the table beside points."""

    beside_points: Callable[[Function, str], Source]
    """Says where they are: gets the name of the table."""
    read: Callable[[Function, Request, Columns], Any]
    """Makes of their columns what the kernel gets."""
    named: Callable[[Mapping[str, Any], Any], dict[str, Any]] | None = None
    """Names rows of what was read in a result."""
    with_names: Callable[[Function, str, str], str] | None = None
    """Writes a query that names them, where the result cannot: gets the table, too."""
    list_of: Callable[[Source], str] = list_of
    """Writes the query for a list of them."""
    may_be_file: bool = False


OTHERS = {
    "polygons": Other(polygons.beside_points, polygons.read, with_names=polygons.with_names),
    "cloud": Other(reference.beside_points, reference.read, reference.named, may_be_file=True),
    "elements": Other(
        elements.beside_points, elements.read, elements.named, list_of=elements.list_of
    ),
}


def of_lists(function: Function, *arguments: pa.ChunkedArray) -> pa.ListArray:
    """Run the kernel once a row, on lists of point_ids, columns and rows of the other table."""
    *columns, others, requests = arguments
    names = tuple(points_of(function))
    rows = zip(
        zip(*map(each_list, columns), strict=True),
        _each_table(function, others),
        requests.to_pylist(),
        strict=True,
    )
    return list_of_structs([
        _together(function, text, [dict(zip(names, lists, strict=True)), table])
        for lists, table, text in rows
    ])  # fmt: skip


def of_files(
    function: Function, others: pa.ChunkedArray, requests: pa.ChunkedArray
) -> pa.ListArray:
    """Run the kernel once a row, on the points of files and a list of rows of the other table."""
    rows = zip(_each_table(function, others), requests.to_pylist(), strict=True)
    return list_of_structs([_together(function, text, [{}, table]) for table, text in rows])


def _together(function: Function, text: str, parts: Sequence[Columns]) -> pa.StructArray:
    return pa.concat_arrays(list(answers(function, Request.of(text), parts, transport="lists")))


def answers(
    function: Function,
    request: Request,
    parts: Sequence[Columns],
    *,
    transport: Transport,
) -> Iterator[pa.StructArray]:
    """Run the kernel and give its result as Arrow arrays of structs: one, or one for each file.

    Parameters
    ----------
    function : Function
    request : Request
        Whose `source` may name files to read the points of instead.
    parts : sequence of mapping of str to Arrow array
        The points and the other table.
    transport : 'native' or 'lists'
    """
    rows = _rows_of(function)
    other = rows.read(function, request, parts[1])
    chosen, device = request.choose(function)
    is_file = "files" in request.source
    way = "files" if is_file else transport
    with request.within_memory(function.name):
        for columns, value in _calls(function, request, parts[0], other, is_file=is_file):
            arguments = {**columns, function.inputs.other: value}
            result, _ = call(
                function, arguments, chosen, device, transport=way, frame=request.frame
            )
            if rows.named is not None:
                result = rows.named(result, other)
            yield structs(function, result, as_it_is=transport == "native")


def _calls(
    function: Function, request: Request, part: Columns, other: Any, *, is_file: bool
) -> Iterator[tuple[dict[str, Any], Any]]:
    """Give the points and the other table of each call.

    Each file is one beside polygons, which need no point of another; a file that none touches is
    not read.
    """
    value = other.meshes if isinstance(other, elements.ElementSet) else other
    if not is_file:
        cloud = {name: part[name] for name in points_of(function)}
        yield points.arrays_of(function.name, cloud, attributes_of(function)), value
    elif isinstance(value, Polygons):
        index = PolygonIndex.kept(value, function.name)
        for columns in clouds.each_near(function, request, index.boxes):
            yield columns, value
    else:
        yield clouds.of_files(function, request), value


def _kind_of(function: Function) -> str:
    inputs = function.inputs
    return inputs.kind if isinstance(inputs, PointsAndTableInput) else "elements"


def _rows_of(function: Function) -> Other:
    return OTHERS[_kind_of(function)]


def _each_table(function: Function, column: pa.ChunkedArray) -> Iterator[Columns]:
    """Give the columns of each list of rows, as the extension collects them."""
    names = TABLES.get(_kind_of(function))
    if names is None:
        return elements.each_table(column)
    return ({name: rows.field(name) for name in names} for rows in each_list(column))


def query(
    function: Function, transport: Transport, given: str | None, other: str | None, text: str
) -> str:
    """Write the query that calls a function of points and another table."""
    table, rows = clouds.given_points(function, given), _rows_of(function)
    what = "a table or a file" if rows.may_be_file else "a table"
    sentence = f"{function.name}: {function.inputs.other} must be the name of {what}, got "
    if not other:
        message = f"{sentence}{'NULL' if other is None else repr(other)}"
        raise ValueError(message)
    if not rows.may_be_file:
        require_table(sentence, other)
    request = clouds.request_of_files(function, text, table)
    source = rows.beside_points(function, other)
    if request is not None:
        lists = (
            f"{lookups_of([source])}SELECT unnest(spatialq_{function.name}_files("
            f"{rows.list_of(source)}, {request_of(request, [source])}), max_depth := 2)"
            f"{''.join(f' FROM {name}' for name in names_of([source]))}"
        )
        query = call_of(function, transport, request, [source], lists)
        return rows.with_names(function, query, other) if rows.with_names else query
    assert isinstance(table, str)
    request = Request.new(text)
    options, _ = request.choose(function)  # wrong ones are rejected while the query is bound
    cloud = points.source_of(function, table, request).within(getattr(options, BOUNDS, None))
    sources = [cloud, source]
    columns = ", ".join(f"list({value}) AS {name}" for name, value in cloud.columns.items())
    given = f"(SELECT {columns} FROM {cloud.checked} HAVING {source.check} IS NULL) AS given"
    names = ", ".join(f"given.{name}" for name in cloud.columns)
    called = (
        f"{lookups_of(sources)}SELECT unnest(spatialq_{function.name}_udf({names}, "
        f"{rows.list_of(source)}, {request_of(request, sources)}), max_depth := 2) "
        f"FROM {', '.join([given, *names_of(sources)])}"
    )
    query = call_of(function, transport, request, sources, called)
    return rows.with_names(function, query, other) if rows.with_names else query
