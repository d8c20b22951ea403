"""What all transports share: lists in, parameters of a call, lists of structs out."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.data.arrow import ARROW_TYPES
from spatialq.data.columns import Lists, Text
from spatialq.functions.catalogue import Function


def each_list(column: Any) -> Iterator[Any]:
    """Values of each list; an empty array for NULL, as list() gives for no rows at all."""
    for chunk in column.chunks:
        offsets = chunk.offsets.to_pylist()
        for k, valid in enumerate(chunk.is_valid().to_pylist()):
            stop = offsets[k + 1] if valid else offsets[k]
            yield chunk.values.slice(offsets[k], stop - offsets[k])


def choose(function: Function, given: Mapping[str, Any]) -> tuple[Any, str]:
    """Make the parameters of a call in SQL, and the requested device.

    Raises
    ------
    ValueError
        As `Function.choose`; also if a parameter is NULL that must have a value.
    """
    named = {name: value for name, value in given.items() if name != "device"}
    for each in function.parameters:
        if not each.is_optional and named.get(each.name, 0) is None:
            message = f"{function.name}: {each.name} must not be NULL"
            raise ValueError(message)
    return function.choose(named), given["device"]


def structs(
    function: Function, result: Mapping[str, Any], columns: Mapping[str, str] | None = None
) -> Any:
    """Make an Arrow array of structs of what a kernel gave."""
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
            values = pa.array(output.codes[name], pa.string()).take(pa.array(values))
        mask = values == output.nulls[name] if name in output.nulls else None
        # from_pandas: a kernel says "no value" with NaN, SQL with NULL
        arrays.append(pa.array(values, ARROW_TYPES[kind], mask=mask, from_pandas=True))
    return pa.StructArray.from_arrays(arrays, names=list(columns))


def _lists(lists: Lists) -> Any:
    """Make an Arrow array of lists of structs without a copy, of however many structs."""
    fields = [pa.array(values) for values in lists.columns.values()]
    values = pa.StructArray.from_arrays(fields, names=list(lists.columns))
    return pa.LargeListArray.from_arrays(pa.array(lists.offsets), values)


def list_of_structs(rows: list[Any]) -> Any:
    """Make an Arrow array of lists: each row's structs are a list."""
    offsets = np.cumsum([0, *map(len, rows)])
    structs = rows[0] if len(rows) == 1 else pa.concat_arrays(rows)  # which copies even one
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)
