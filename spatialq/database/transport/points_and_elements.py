"""From a table of points and one of elements to a kernel and back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from spatialq.database.transport import clouds, elements, points
from spatialq.database.transport.arrow import each_list, list_of_structs, structs
from spatialq.database.transport.columns import attributes_of, points_of
from spatialq.database.transport.queries import call_of, lookups_of, names_of, request_of
from spatialq.database.transport.refusal import require_table
from spatialq.database.transport.request import Request, Transport
from spatialq.execution.call import call
from spatialq.functions.catalogue import Function
from spatialq.functions.sql_text import literal


def query(function: Function, transport: Transport, tables: Any, others: Any, options: Any) -> Any:
    """Write the query that calls a function of points and elements."""
    columns = (tables, others, options)
    calls = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array([_query(function, transport, *arguments) for arguments in calls], pa.string())


def of_lists(function: Function, *arguments: Any) -> Any:
    """Run the kernel once a row, on lists of point_ids, columns and elements."""
    *columns, members, requests = arguments
    names = tuple(points_of(function))
    rows = zip(
        zip(*map(each_list, columns), strict=True),
        elements.each_table(members),
        requests.to_pylist(),
        strict=True,
    )
    return list_of_structs([
        found
        for lists, table, text in rows
        for found in answers(function, Request.of(text),
                             [dict(zip(names, lists, strict=True)), table], transport="lists")
    ])  # fmt: skip


def of_files(function: Function, members: Any, requests: Any) -> Any:
    """Run the kernel once a row, on the points of files and a list of elements."""
    rows = zip(elements.each_table(members), requests.to_pylist(), strict=True)
    return list_of_structs([
        found
        for table, text in rows
        for found in answers(function, Request.of(text), [{}, table], transport="lists")
    ])  # fmt: skip


def answers(
    function: Function,
    request: Request,
    parts: Sequence[Mapping[str, Any]],
    *,
    transport: Transport,
) -> Iterator[Any]:
    """Run the kernel and give its result as an Arrow array of structs.

    A row of the elements in the kernel's result is their `global_id` in SQL.

    Parameters
    ----------
    function : Function
    request : Request
        Whose `source` may name files to read the points of instead.
    parts : sequence of mapping of str to Arrow array
        The points and the elements.
    transport : 'native' or 'lists'
    """
    members = elements.set_of(f"{function.name}: elements", parts[1])
    chosen, device = request.choose(function)
    is_file = "files" in request.source
    with request.within_memory(function.name):
        if is_file:
            columns = clouds.of_files(function, request)
        else:
            cloud = {name: parts[0][name] for name in points_of(function)}
            columns = points.arrays_of(function.name, cloud, attributes_of(function))
        arguments = {**columns, "elements": members.meshes}
        way = "files" if is_file else transport
        result, _ = call(function, arguments, chosen, device, transport=way, frame=request.frame)
    if "element" in result:
        rows = pa.array(result["element"], mask=result["element"] < 0)
        result = {**result, "global_id": members.global_id.take(rows)}
    yield structs(function, result, as_it_is=transport == "native")


def _query(
    function: Function, transport: Transport, given: str | None, other: str | None, text: str
) -> str:
    table = clouds.given_points(function, given)
    sentence = f"{function.name}: elements must be the name of a table, got "
    if not other:
        message = f"{sentence}{'NULL' if other is None else repr(other)}"
        raise ValueError(message)
    require_table(sentence, other)
    of_files = clouds.request_of_files(function, text, table)
    if of_files is not None:
        members = elements.source_of(f"{function.name}: elements", other, 1)
        return call_of(
            function, transport, of_files, [members],
            f"SELECT unnest(spatialq_{function.name}_files({elements.list_of(members)}, "
            f"{literal(of_files.text)}), max_depth := 2)",
        )  # fmt: skip
    assert isinstance(table, str)
    request = Request.new(text)
    options, _ = request.choose(function)  # wrong ones are rejected while the query is bound
    cloud = points.source_of(function, table, request).within(options.bounds)
    members = elements.source_of(f"{function.name}: elements", other, 1)
    lists = {name: f"list({expression})" for name, expression in cloud.columns.items()}
    columns = ", ".join(f"{value} AS {name}" for name, value in lists.items())
    given = f"(SELECT {columns} FROM {cloud.rows} HAVING {cloud.check} IS NULL) AS given"
    names = ", ".join(f"given.{name}" for name in lists)
    return call_of(
        function, transport, request, [cloud, members],
        f"{lookups_of([cloud])}SELECT unnest(spatialq_{function.name}_udf({names}, "
        f"{elements.list_of(members)}, {request_of(request, [cloud])}), max_depth := 2) "
        f"FROM {', '.join([given, *names_of([cloud])])}",
    )  # fmt: skip
