"""What all transports share: lists in, lists of structs out."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.data.arrow import ARROW_TYPES
from spatialq.data.columns import Lists, Text
from spatialq.functions.catalogue import Function
from spatialq.runtime.arrays import Array
from spatialq.runtime.threads import in_threads

Columns = Mapping[str, pa.Array]
"""Of a table."""


def each_list(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Values of each list; an empty array for NULL, as list() gives for no rows at all."""
    for chunk in column.chunks:
        offsets = chunk.offsets.to_pylist()
        for k, valid in enumerate(chunk.is_valid().to_pylist()):
            stop = offsets[k + 1] if valid else offsets[k]
            yield chunk.values.slice(offsets[k], stop - offsets[k])


def structs(
    function: Function,
    result: Mapping[str, Any],
    columns: Mapping[str, str] | None = None,
    *,
    as_it_is: bool = False,
) -> pa.StructArray:
    """Make an Arrow array of structs of what a kernel gave.

    Parameters
    ----------
    function : Function
    result : mapping
        The columns that its kernel gave.
    columns : mapping, optional
        Columns and their SQL types, by default those of the function's output.
    as_it_is : bool
        Whether NaN stays NaN and a truth value a byte, so that nothing is copied: the extension
        makes NULL and BOOLEAN of them.
    """
    output = function.output
    columns = output.columns if columns is None else columns
    arrays = []
    for name, kind in columns.items():
        values = result[name]
        if isinstance(values, Lists):
            arrays.append(_lists(values))
            continue
        if isinstance(values, Text):
            codes = pa.array(values.codes, mask=values.codes < 0)
            values = pa.array(values.names, pa.string()).take(codes)
        elif name in output.codes:
            codes = pa.array(values, mask=values < 0) if name in output.nulls else pa.array(values)
            values = pa.array(output.codes[name], pa.string()).take(codes)
        if name in output.nulls and name not in output.codes:
            arrays.append(_without(values, output.nulls[name], ARROW_TYPES[kind]))
        elif as_it_is and kind == "BOOLEAN":
            arrays.append(pa.array(np.asarray(values, np.bool_).view(np.uint8)))
        else:  # from_pandas: a kernel says "no value" with NaN, SQL with NULL
            arrays.append(pa.array(values, ARROW_TYPES[kind], from_pandas=not as_it_is))
    return pa.StructArray.from_arrays(arrays, names=list(columns))


def _without(values: Array, missing: int, kind: pa.DataType) -> pa.Array:
    """Make an Arrow array of integers, NULL where they are the one that says "no value"."""
    values = np.ascontiguousarray(values, kind.to_pandas_dtype())
    valid = np.empty(-(-values.size // 8), np.uint8)

    def mark(span: tuple[int, int]) -> None:
        part = values[8 * span[0] : 8 * span[1]]
        valid[slice(*span)] = np.packbits(part != missing, bitorder="little")

    in_threads(mark, valid.size)
    parts = [pa.py_buffer(valid), pa.py_buffer(values)]
    return pa.Array.from_buffers(kind, values.size, parts)


def _lists(lists: Lists) -> pa.LargeListArray:
    """Make an Arrow array of lists of structs without a copy, of however many structs."""
    fields = [pa.array(values) for values in lists.columns.values()]
    values = pa.StructArray.from_arrays(fields, names=list(lists.columns))
    return pa.LargeListArray.from_arrays(pa.array(lists.offsets), values)


def list_of_structs(rows: Sequence[pa.StructArray]) -> pa.ListArray:
    """Make an Arrow array of lists: each row's structs are a list."""
    offsets = np.cumsum([0, *map(len, rows)])
    structs = rows[0] if len(rows) == 1 else pa.concat_arrays(rows)  # which copies even one
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)
