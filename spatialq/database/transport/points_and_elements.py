"""From a table of points and one of elements to a kernel and back."""

from typing import Any

import pyarrow as pa

from spatialq.database.transport.arrow import choose, each_list, list_of_structs, structs
from spatialq.database.transport.elements import each_set
from spatialq.database.transport.points import arrays_of
from spatialq.execution.call import call
from spatialq.functions.catalogue import Function


def of_lists(function: Function, *arguments: Any) -> Any:
    """Run the kernel once a row, on lists of point_ids, columns and elements.

    A row of the elements in the result is their `global_id`.
    """
    *columns, elements, options = arguments
    rows = zip(
        zip(*map(each_list, columns), strict=True),
        each_set(f"{function.name}: elements", elements),
        options.to_pylist(),
        strict=True,
    )
    return list_of_structs([_run(function, *row) for row in rows])


def _run(function: Function, lists: Any, elements: Any, chosen: dict[str, Any]) -> Any:
    names = ("point_id", *function.inputs.columns)
    points = arrays_of(function.name, dict(zip(names, lists, strict=True)))
    arguments = {**points, "elements": elements.meshes}
    result, _ = call(function, arguments, *choose(function, chosen))
    rows = pa.array(result["element"], mask=result["element"] < 0)
    return structs(function, {**result, "global_id": elements.global_id.take(rows)})
