"""From lists of points to a kernel and back: `<name>_udf` of a function of points."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spatialq.database.transport.arrow import choose, each_list, list_of_structs, structs
from spatialq.execution.call import call
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import PointsInput


def of_lists(function: Function, *arguments: Any) -> Any:
    """Run the kernel once a row, on lists of point_ids, columns and attributes (NULL: absent)."""
    *columns, options = arguments
    attributes = attributes_of(function)
    names = ("point_id", *function.inputs.columns, *attributes)
    results = []
    for *lists, chosen in zip(*map(each_list, columns), options.to_pylist(), strict=True):
        arrays = arrays_of(function.name, dict(zip(names, lists, strict=True)), attributes)
        results.append(call(function, arrays, *choose(function, chosen), road="lists")[0])
    return list_of_structs([structs(function, result) for result in results])


def attributes_of(function: Function) -> Mapping[str, str]:
    """Give the attributes that a function of points may get."""
    assert isinstance(function.inputs, PointsInput)
    return function.inputs.attributes


def arrays_of(
    function: str, columns: Mapping[str, Any], attributes: Mapping[str, str] = {}
) -> dict[str, Any]:
    """Zero-copy views of the columns; of attributes masked copies where a value is NULL.

    Raises
    ------
    ValueError
        If a value is NULL that must be there, or the columns have different lengths.
    """
    given = {n: v for n, v in columns.items() if n not in attributes or v.null_count < len(v)}
    lengths = {name: len(values) for name, values in given.items()}
    if len(set(lengths.values())) > 1:
        message = f"{function}: the columns must have one length, got {lengths}"
        raise ValueError(message)
    for name, values in given.items():
        if values.null_count and name not in attributes:
            first = np.argmax(values.is_null().to_numpy(zero_copy_only=False))
            where = (
                f"at position {first}"
                if name == "point_id"
                else f"the first with point_id {columns['point_id'][int(first)]}"
            )
            message = (
                f"{function}: {name} must not be NULL, got {values.null_count} of them, {where}"
            )
            raise ValueError(message)
    return {**dict.fromkeys(attributes), **{n: _array(values) for n, values in given.items()}}


def _array(values: Any) -> Any:
    if not values.null_count:
        return values.to_numpy(zero_copy_only=True)
    mask = values.is_null().to_numpy(zero_copy_only=False)
    return np.ma.MaskedArray(values.fill_null(0).to_numpy(), mask)
