"""From a table of points and one of elements to a kernel and back."""

from inspect import Parameter, Signature
from typing import Any

import pyarrow as pa

from spatialq.database.sql_function import SqlFunction
from spatialq.database.transport.arrow import (
    arrays_of,
    choose,
    each_list,
    list_of_structs,
    options_type,
    structs,
)
from spatialq.database.transport.elements import ELEMENT, each_set, struct_type
from spatialq.execution.call import call
from spatialq.functions.declaration import Udf


def kernel_function(udf: Udf) -> SqlFunction:
    """Make the SQL function `<name>_udf` of a function of points and elements.

    Its arguments are a list of point_ids, a list per column, a list of elements, and a struct of
    the options and the device; it gives a list of structs, where a row of the elements is their
    `global_id`.
    """

    def answer(*arguments: Any) -> Any:
        *columns, elements, options = arguments
        rows = zip(
            zip(*map(each_list, columns), strict=True),
            each_set(udf, "elements", elements),
            options.to_pylist(),
            strict=True,
        )
        return list_of_structs([_run(udf, *row) for row in rows])

    names = ["ids", *udf.columns, "elements", "options"]
    # DuckDB counts the arguments of a function by its signature.
    answer.__signature__ = Signature([Parameter(n, Parameter.POSITIONAL_ONLY) for n in names])  # type: ignore[attr-defined]
    return SqlFunction(
        f"{udf.name}_udf",
        ("BIGINT[]", *("DOUBLE[]" for _ in udf.columns), f"{ELEMENT}[]", options_type(udf)),
        f"{struct_type(udf.returns)}[]",
        answer,
    )


def _run(udf: Udf, lists: Any, elements: Any, chosen: dict[str, Any]) -> Any:
    points = arrays_of(udf, dict(zip(("point_id", *udf.columns), lists, strict=True)))
    result, _ = call(udf, {**points, "elements": elements.meshes}, *choose(udf, chosen))
    rows = pa.array(result["element"], mask=result["element"] < 0)
    return structs(udf, {**result, "global_id": elements.global_id.take(rows)})
