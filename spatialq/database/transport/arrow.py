"""From DuckDB to a kernel and back: lists in, plan, run, log, lists of structs out."""

from collections.abc import Iterator, Mapping
from inspect import Parameter, Signature
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa

from spatialq.database.sql_function import SqlFunction
from spatialq.execution.call import call
from spatialq.functions.declaration import Kind, Lists, Text, Udf
from spatialq.functions.sql_text import identifier

SQL_TYPES = {float: "DOUBLE", int: "BIGINT", bool: "BOOLEAN", str: "VARCHAR"}
ARROW_TYPES = {
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "DOUBLE": pa.float64(),
    "GEOMETRY": pa.binary(),  # DuckDB reads WKB
    "INTEGER": pa.int32(),
    "VARCHAR": pa.string(),
}


def kernel_function(udf: Udf) -> SqlFunction:
    """Make the SQL function `<name>_udf` of a spatial function.

    Its arguments are a list of point_ids, a list per column, one per column that it carries (NULL
    if there is none), and a struct of the options and the device; it gives a list of structs. One
    row is one call of the kernel, so that it serves a whole table (one row) and GROUP BY (a row a
    group).
    """
    names = ["point_id", *udf.columns, *udf.carries]

    def answer(*arguments: Any) -> Any:
        *columns, options = arguments
        lists = [each_list(column) for column in columns]
        results = [
            _run(udf, dict(zip(names, arrays, strict=True)), chosen)
            for *arrays, chosen in zip(*lists, options.to_pylist(), strict=True)
        ]
        return list_of_structs([structs(udf, result) for result in results])

    # DuckDB counts the arguments of a function by its signature.
    parameters = [Parameter(n, Parameter.POSITIONAL_ONLY) for n in (*names, "options")]
    answer.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    carried = (f"{kind}[]" for kind in udf.carries.values())
    returns = ", ".join(f"{identifier(name)} {kind}" for name, kind in udf.returns.items())
    return SqlFunction(
        f"{udf.name}_udf",
        ("BIGINT[]", *("DOUBLE[]" for _ in udf.columns), *carried, options_type(udf)),
        f"STRUCT({returns})[]",
        answer,
    )


def options_type(udf: Udf) -> str:
    """Give the SQL type of the options of a function, and the device."""
    hints = get_type_hints(udf.options)
    kinds = {name: Kind.of(hint) for name, hint in hints.items()}
    fields = [
        f"{name} {SQL_TYPES[kind.value]}{'[]' * kind.is_list}" for name, kind in kinds.items()
    ]
    return f"STRUCT({', '.join([*fields, 'device VARCHAR'])})"


def each_list(column: Any) -> Iterator[Any]:
    """Values of each list; an empty array for NULL, as list() gives for no rows at all."""
    for chunk in column.chunks:
        offsets = chunk.offsets.to_pylist()
        for k, valid in enumerate(chunk.is_valid().to_pylist()):
            stop = offsets[k + 1] if valid else offsets[k]
            yield chunk.values.slice(offsets[k], stop - offsets[k])


def _run(udf: Udf, columns: dict[str, Any], chosen: dict[str, Any]) -> dict[str, Any]:
    result, _ = call(udf, arrays_of(udf, columns), *choose(udf, chosen))
    return result


def choose(udf: Udf, given: dict[str, Any]) -> tuple[Any, str]:
    """Make the options of a call in SQL, and the device that is wished for.

    Raises
    ------
    ValueError
        As `Udf.choose`; also if an option is NULL that must have a value.
    """
    hints = get_type_hints(udf.options)
    named = {name: value for name, value in given.items() if name != "device"}
    for name, value in named.items():
        if value is None and not Kind.of(hints[name]).is_optional:
            message = f"{udf.name}: {name} must not be NULL"
            raise ValueError(message)
    return udf.choose(named), given["device"]


def arrays_of(udf: Udf, columns: dict[str, Any]) -> dict[str, Any]:
    """Zero-copy views of the columns; of those carried masked copies where a value is NULL.

    Raises
    ------
    ValueError
        If a value is NULL that must be there, or the columns have different lengths.
    """
    given = {n: v for n, v in columns.items() if n not in udf.carries or v.null_count < len(v)}
    lengths = {name: len(values) for name, values in given.items()}
    if len(set(lengths.values())) > 1:
        message = f"{udf.name}: the columns must have one length, got {lengths}"
        raise ValueError(message)
    for name, values in given.items():
        if values.null_count and name not in udf.carries:
            first = np.argmax(values.is_null().to_numpy(zero_copy_only=False))
            where = (
                f"at position {first}"
                if name == "point_id"
                else f"the first with point_id {columns['point_id'][int(first)]}"
            )
            message = (
                f"{udf.name}: {name} must not be NULL, got {values.null_count} of them, {where}"
            )
            raise ValueError(message)
    return {**dict.fromkeys(udf.carries), **{n: _array(values) for n, values in given.items()}}


def _array(values: Any) -> Any:
    if not values.null_count:
        return values.to_numpy(zero_copy_only=True)
    mask = values.is_null().to_numpy(zero_copy_only=False)
    return np.ma.MaskedArray(values.fill_null(0).to_numpy(), mask)


def structs(udf: Udf, result: Mapping[str, Any], columns: Mapping[str, str] | None = None) -> Any:
    """Make an Arrow array of structs of what a kernel gave."""
    columns = udf.returns if columns is None else columns
    arrays = []
    for name, kind in columns.items():
        values = result[name]
        if isinstance(values, Lists):
            arrays.append(_lists(values))
            continue
        if isinstance(values, Text):
            codes = pa.array(values.codes, mask=values.codes < 0)
            values = pa.array(values.names, pa.string()).take(codes)
        elif name in udf.values:
            values = pa.array(udf.values[name], pa.string()).take(pa.array(values))
        mask = values == udf.nulls[name] if name in udf.nulls else None
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
