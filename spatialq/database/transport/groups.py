"""Groups of points, as `GROUP BY` makes them: small ones that ask for the same are one call."""

import warnings
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from spatialq.data.columns import concatenate, length
from spatialq.database.transport import points
from spatialq.database.transport.arrow import Columns, each_list, list_of_structs, structs
from spatialq.database.transport.columns import attributes_of, points_of
from spatialq.database.transport.points import arrays_of, choose_of_group
from spatialq.database.transport.request import Request, Transport
from spatialq.execution.groups import call_groups
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import PointsInput
from spatialq.runtime.arrays import Ints
from spatialq.runtime.threads import CHUNK, FEW_POINTS

MANY_ROWS = 1_000_000
"""From which on the extension is worth a hint."""


def runs(function: Function, texts: Sequence[str | None], sizes: Sequence[int]) -> Iterator[range]:
    """Divide groups into runs, each of which is one call.

    Parameters
    ----------
    function : Function
    texts : sequence
        What each group asks for.
    sizes : sequence of int
        Rows of each group.

    Yields
    ------
    range
        One group, or several small ones of points, one behind the other, that ask for the same.
    """
    first, rows, may_grow = 0, 0, False
    for k, (text, size) in enumerate(zip(texts, sizes, strict=True)):
        is_small = isinstance(function.inputs, PointsInput) and size < FEW_POINTS
        rows += size
        if k > first and not (may_grow and is_small and text == texts[first] and rows <= CHUNK):
            yield range(first, k)
            first, rows = k, size
        may_grow = is_small
    if len(texts):
        yield range(first, len(texts))


def answers(
    function: Function,
    request: Request,
    part: Columns,
    starts: Ints,
    *,
    transport: Transport,
) -> Iterator[pa.StructArray]:
    """Run the kernel for each group of a run, or for one that is alone.

    Parameters
    ----------
    function : Function
        Of points.
    request : Request
    part : mapping of str to Arrow array
        The columns of all groups, one behind the other; None for ids that are the positions.
    starts : int64[k + 1]
        Where each of the k groups begins, and where the last one ends.
    transport : 'native' or 'lists'
        How the rows come and go.

    Yields
    ------
    Arrow array of structs
        The rows of a group.
    """
    if len(starts) == 2:
        yield from points.answers(function, request, [part], transport=transport)
        return
    options, device = choose_of_group(function, request)
    columns = arrays_of(function.name, part, attributes_of(function))
    if columns["point_id"] is None:
        columns["point_id"] = np.arange(starts[-1])
    with request.within_memory(function.name):
        found = call_groups(
            function, columns, starts, options, device, transport=transport, frame=request.frame
        )
    names = function.output.columns
    rows = structs(function, concatenate(found), as_it_is=transport == "native")
    first = 0
    for size in (length(each[next(iter(names))]) for each in found):
        yield rows.slice(first, size)
        first += size


def of_lists(function: Function, *arguments: pa.ChunkedArray) -> pa.ListArray:
    """Run the kernel once a row, on lists of point_ids, columns and attributes."""
    *columns, requests = arguments
    names = tuple(points_of(function))
    lists = [list(each_list(column)) for column in columns]
    texts, sizes = requests.to_pylist(), [len(each) for each in lists[0]]
    found: list[pa.StructArray] = []
    for run in runs(function, texts, sizes):
        if sizes[run.start] >= MANY_ROWS:
            _hint()
        request = Request.of_group(texts[run.start])
        part = {
            name: pa.concat_arrays(each[run.start : run.stop]) if len(run) > 1 else each[run.start]
            for name, each in zip(names, lists, strict=True)
        }
        starts = np.concatenate([[0], np.cumsum(sizes[run.start : run.stop])])
        found += answers(function, request, part, starts, transport="lists")
    return list_of_structs(found)


@cache
def _hint() -> None:
    """Say, once in a process, how large tables are faster."""
    warnings.warn(
        "spatialq: the rows of a large table went to a function as lists, which is several times "
        "as slow as by the extension that spatialq.connect() loads; spatialq_devices() says why",
        stacklevel=2,
    )
