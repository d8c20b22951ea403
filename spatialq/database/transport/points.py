"""From lists of points to a kernel and back: `<name>_udf` of a function of points."""

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.database import pins
from spatialq.database.transport.arrow import choose, each_list, list_of_structs, structs
from spatialq.execution.call import call
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import PointsInput
from spatialq.functions.sql_text import literal
from spatialq.runtime import cuda
from spatialq.runtime.cuda import on_gpu


def of_lists(function: Function, *arguments: Any) -> Any:
    """Run the kernel once a row, on lists of point_ids, columns and attributes (NULL: absent)."""
    *columns, options = arguments
    attributes = attributes_of(function)
    names = ("point_id", *function.inputs.columns, *attributes)
    results = []
    for *lists, chosen in zip(*map(each_list, columns), options.to_pylist(), strict=True):
        arrays = arrays_of(function.name, dict(zip(names, lists, strict=True)), attributes)
        results.append(call(function, arrays, *choose(function, chosen))[0])
    return list_of_structs([structs(function, result) for result in results])


def of_pin(function: Function, numbers: Any, options: Any) -> Any:
    """Run the kernel once a row, on pinned columns, where they are."""
    results = []
    for number, chosen in zip(numbers.to_pylist(), options.to_pylist(), strict=True):
        pin = pins.find(number, function.name)
        made, device = choose(function, chosen)
        device = "gpu" if pin.device == "gpu" else device
        with cuda.device().use() if pin.device == "gpu" else nullcontext():
            found, _ = call(function, pin.arrays(function), made, device)
            results.append({
                name: cuda.device().download(values) if on_gpu(values) else values
                for name, values in found.items()
            })  # fmt: skip
    return list_of_structs([structs(function, result) for result in results])


def query(function: Function, points: Any, options: Any) -> Any:
    """Write the query of a table, while it is bound. Parameters travel as JSON."""
    calls = zip(points.to_pylist(), options.to_pylist(), strict=True)
    return pa.array([_query(function, *arguments) for arguments in calls], pa.string())


def _query(function: Function, points: str | None, text: str) -> str:
    if not points:
        got = "NULL" if points is None else "''"
        message = f"{function.name}: points must be the name of a table, got {got}"
        raise ValueError(message)
    lists = ["list(point_id::BIGINT)"]
    lists += [f"list({name}::DOUBLE)" for name in function.inputs.columns]
    source = f"query_table({literal(points)})"
    return of_table(function, points, source, lists, *choose(function, json.loads(text)))


def of_table(
    function: Function,
    points: str,
    source: str,
    lists: Sequence[str],
    options: Any,
    device: str,
    having: str | None = None,
) -> str:
    """Write the query of a table: by lists, or by pinned columns where it has their content.

    Parameters
    ----------
    function : Function
    points : str
        The name of the table.
    source : str
        What is behind FROM.
    lists : sequence of str
        The arguments of `<name>_udf`.
    options, device
        As `choose` gives them.
    having : str, optional
        What must be true of the table.
    """
    chosen = {**options.values(), "device": device}
    given = f"{{{', '.join(f'{name}: {literal(value)}' for name, value in chosen.items())}}}"
    rows = f"SELECT unnest({function.name}_udf({', '.join(lists)}, {given}), max_depth := 2) FROM "
    columns = pins.columns_of(function)
    key = pins.columns_key(columns)
    if not pins.may_be_pinned(points, key):
        return f"{rows}{source}{f' HAVING {having}' if having else ''}"
    may_be_on_gpu = device != "cpu" and function.has_kernel("gpu")
    may_be_on_gpu = may_be_on_gpu and not function.declaration.cpu_only(options)
    check = pins.check(pins.CHECK, points, key, columns, source, on_gpu=may_be_on_gpu)
    is_there = f"(SELECT pin IS NOT NULL FROM {pins.CHECK})"
    return (
        f"WITH {check} "
        f"SELECT unnest({function.name}_pinned(pin, {given}), max_depth := 2) FROM {pins.CHECK} "
        f"WHERE pin IS NOT NULL UNION ALL {rows}{pins.unless_pinned(source)} "
        f"HAVING CASE WHEN {is_there} THEN false ELSE {having or 'true'} END"
    )


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
