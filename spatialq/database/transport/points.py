"""From a table of points, or from files of them, to a kernel and back.

The query is written while it is bound, as for `read_las`. Attributes are NULL where a table has
none of that name.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.data.columns import whole_numbers
from spatialq.data.points import to_host
from spatialq.database import pins
from spatialq.database.transport import clouds
from spatialq.database.transport.arrow import Columns, list_of_structs, structs
from spatialq.database.transport.columns import attributes_of, points_of
from spatialq.database.transport.queries import (
    Source,
    call_of,
    lookups_of,
    names_of,
    request_of,
    table_of,
    with_columns,
)
from spatialq.database.transport.refusal import WHOLE, refusal
from spatialq.database.transport.request import Request, Transport
from spatialq.errors import DeviceError
from spatialq.execution.call import call
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import BOUNDS, Parameters
from spatialq.functions.sql_text import literal
from spatialq.runtime import cuda
from spatialq.runtime.arrays import Array
from spatialq.runtime.cuda import on_gpu

MAX_ROWS = 2**31 - 1
"""Of a table whose rows go as lists, whose offsets have 32 bits."""


def of_files(function: Function, requests: pa.ChunkedArray) -> pa.ListArray:
    """Run the kernel once a row, on all points of files."""
    plans = map(Request.of, requests.to_pylist())
    return list_of_structs(
        [rows for plan in plans for rows in answers(function, plan, [], transport="lists")]
    )


def answers(
    function: Function,
    request: Request,
    parts: Sequence[Columns],
    *,
    transport: Transport,
) -> Iterator[pa.StructArray]:
    """Run the kernel and give its result as an Arrow array of structs.

    Parameters
    ----------
    function : Function
    request : Request
        Whose `source` may name files to read instead, or a pin.
    parts : sequence of mapping of str to Arrow array
        The columns of the one table.
    transport : 'native' or 'lists'
    """
    is_file = "files" in request.source
    pin = pins.of_request(request, 0, function.name)
    choose = request.choose if request.token else partial(choose_of_group, request=request)
    options, device = choose(function)
    with request.within_memory(function.name), ExitStack() as stack:
        decoded = clouds.on_gpu(function, request) if is_file else None
        note = "" if pin is None else pin.note
        if decoded is not None:
            columns, number, note = decoded
            stack.enter_context(cuda.on(number))
            stack.enter_context(cuda.device().use())
        elif is_file:
            columns = clouds.of_files(function, request)
        elif pin is None:
            columns = arrays_of(function.name, parts[0], attributes_of(function))
        else:
            columns = {name: pin.kept.get(name) for name in points_of(function)}
            if pin.device == "gpu":
                device = "gpu"
                stack.enter_context(cuda.beside(function.name, *columns.values()))
        run = partial(
            call, function, options=options, transport="files" if is_file else transport,
            frame=request.frame,
        )  # fmt: skip
        result = None
        try:
            result, _ = run(columns, requested=device, note=note)
        except (DeviceError, MemoryError) as full:
            if decoded is None:
                raise
            note = f"{note}; again from the memory of the host: {full}"
        if result is None:  # not where the error keeps arrays of the GPU
            columns = {n: v if v is None else to_host(cuda.device(), v) for n, v in columns.items()}
            result, _ = run(columns, requested=device, note=note)
        result = {
            name: to_host(cuda.device(), values) if on_gpu(values) else values
            for name, values in result.items()
        }
    yield structs(function, result, as_it_is=transport == "native")


def choose_of_group(function: Function, request: Request) -> tuple[Parameters, str]:
    """Make the parameters of a call of a group, and the requested device."""
    if more := _more_columns(function, request):
        message = (
            f"{function.name}_list: attributes must be NULL, since an aggregate gets no other "
            f"columns: join them by point_id, got {list(more)!r}"
        )
        raise ValueError(message)
    return request.choose(function)


def source_of(
    function: Function, points: str, request: Request, more: Sequence[str] = ()
) -> Source:
    """Say how a function gets the points of a table, of which samples shall have more columns."""
    attributes = {
        name: attribute(function.name, name, kind) for name, kind in attributes_of(function).items()
    }
    columns = ("point_id", *function.inputs.columns)
    return table_of(function, points, columns, request, attributes, more)


def _pin_of(function: Function, points: str, request: Request) -> pins.Lookup | None:
    """Write what looks for the pin of a table of points."""
    options, device = request.choose(function)
    may_be_on_gpu = device != "cpu" and function.has_kernel("gpu")
    may_be_on_gpu = may_be_on_gpu and not function.declaration.cpu_only(options)
    return pins.lookup(points, tuple(points_of(function)), on_gpu=may_be_on_gpu)


def query(function: Function, transport: Transport, given: str | None, text: str) -> str:
    """Write the query that calls a function of points; parameters travel as JSON."""
    points = clouds.given_points(function, given)
    of_files = clouds.request_of_files(function, text, points)
    if of_files is not None:
        read = f"spatialq_{function.name}_files({literal(of_files.text)})"
        lists = f"SELECT unnest({read}, max_depth := 2)"
        more = _more_columns(function, of_files)
        rows = clouds.rows_of_files(function, of_files, more)
        return with_columns(call_of(function, transport, of_files, [], lists), rows, more)
    assert isinstance(points, str)
    request = Request.new(text)
    options, _ = request.choose(function)  # wrong ones are rejected while the query is bound
    more = _more_columns(function, request)
    source = source_of(function, points, request, more)
    rows = source.rows
    source = source.unless_pinned(_pin_of(function, points, request))
    source = source.within(getattr(options, BOUNDS, None))
    columns = (f"list({value}) AS {name}" for name, value in source.columns.items())
    given = (
        f"(SELECT {', '.join(columns)} FROM {source.checked} HAVING {_is_short(function)}) AS given"
    )
    names = (f"given.{name}" for name in source.columns)
    lists = (
        f"{lookups_of([source])}SELECT unnest("
        f"spatialq_{function.name}_udf({', '.join(names)}, {request_of(request, [source])}), "
        f"max_depth := 2) FROM {', '.join([given, *names_of([source])])}"
    )
    return with_columns(call_of(function, transport, request, [source], lists), rows, more)


def _more_columns(function: Function, request: Request) -> tuple[str, ...]:
    """Name the columns that samples shall have beyond those of the function."""
    options, _ = request.choose(function)
    more: tuple[str, ...] = getattr(options, "more_columns", ())
    return more


def _is_short(function: Function) -> str:
    sentence = f"{function.name}: points must be at most {MAX_ROWS} in a table, got "
    refused = refusal(sentence, "count(*)::VARCHAR")
    return f"CASE WHEN count(*) > {MAX_ROWS} THEN {refused} > 0 ELSE true END"


def attribute(caller: str, name: str, kind: str) -> str:
    """Write a column that a table may lack as numbers of its type."""
    return f"{name}::DOUBLE" if kind == "DOUBLE" else whole(caller, name, kind)


def whole(caller: str, name: str, kind: str) -> str:
    """Write a column as numbers of its type: a cast would round, and say no more than "range"."""
    is_whole = f"regexp_full_match(typeof({name}), '{WHOLE}')"
    text = (
        f"if({is_whole}, 'got ', 'of a type such as {kind}, got ') || {name}::VARCHAR "
        f"|| ' of type ' || typeof({name})"
    )
    sentence = f"{caller}: {name} must be {whole_numbers(kind)}, "
    return (
        f"CASE WHEN typeof({name}) = '{kind}' OR {name} IS NULL "
        f"OR ({is_whole} AND TRY_CAST({name} AS {kind}) IS NOT NULL) THEN {name}::{kind} "
        f"ELSE {refusal(sentence, text)}::{kind} END"
    )


def arrays_of(
    function: str, columns: Columns, attributes: Mapping[str, str] = {}
) -> dict[str, Any]:
    """Zero-copy views of the columns; of attributes masked copies where a value is NULL.

    None, of ids that are the positions of the points and of attributes without a value, stays None.

    Raises
    ------
    ValueError
        If a value is NULL that must be there, or the columns have different lengths.
    """
    given = {
        name: values
        for name, values in columns.items()
        if values is not None and (name not in attributes or values.null_count < len(values))
    }
    lengths = {name: len(values) for name, values in given.items()}
    if len(set(lengths.values())) > 1:
        message = f"{function}: the columns must have one length, got {lengths}"
        raise ValueError(message)
    for name, values in given.items():
        if values.null_count and name not in attributes:
            first = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            ids = columns["point_id"]
            where = (
                f"at position {first}"
                if name == "point_id"
                else f"the first with point_id {first if ids is None else ids[first]}"
            )
            message = (
                f"{function}: {name} must not be NULL, got {values.null_count} of them, {where}"
            )
            raise ValueError(message)
    return {**dict.fromkeys(columns), **{n: _array(values) for n, values in given.items()}}


def _array(values: pa.Array) -> Array:
    if not values.null_count:
        return np.asarray(values.to_numpy(zero_copy_only=True))
    mask = values.is_null().to_numpy(zero_copy_only=False)
    return np.ma.MaskedArray(values.fill_null(0).to_numpy(), mask)
