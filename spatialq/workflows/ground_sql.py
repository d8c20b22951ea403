"""`write_ground` in SQL: what `sql/write_ground.sql` calls."""

import json
from typing import Any

import pyarrow as pa

from spatialq.data.arrow import arrow_fields
from spatialq.functions.declaration import parameters_of
from spatialq.runtime import budget
from spatialq.udfs.write_ground import PARAMETERS, RESULT, Options
from spatialq.workflows.ground import write_ground

ROW = pa.struct(arrow_fields(RESULT))
MAY_BE_NULL = {"memory", *(each.name for each in parameters_of(Options) if each.is_optional)}


def write_ground_rows(paths: Any, outputs: Any, options: Any) -> Any:
    """Write the files of each row.

    Raises
    ------
    ValueError
        If an argument is NULL that must have a value.
    """
    calls = zip(paths.to_pylist(), outputs.to_pylist(), options.to_pylist(), strict=True)
    rows = []
    for path, targets, chosen in calls:
        chosen = json.loads(chosen)
        arguments = {"path": path, "outputs": targets, **chosen}
        for name, value in arguments.items():
            is_null = value is None and name not in MAY_BE_NULL
            if is_null or (name == "outputs" and None in value):
                message = f"write_ground: {name} must not be NULL"
                raise ValueError(message)
        for each in PARAMETERS:
            try:
                each.convert(chosen[each.name])
            except TypeError as error:
                message = f"write_ground: {each.name} must be {error}, got {chosen[each.name]!r}"
                raise ValueError(message) from None
        with budget.within("write_ground", chosen.pop("memory")):
            rows.append(write_ground(path, targets, **chosen))
    return pa.array([[row] for row in rows], pa.list_(ROW))
