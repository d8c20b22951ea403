"""`write_ground` as an SQL function; `sql/write_ground.sql` makes a table of it."""

from typing import Any

import pyarrow as pa

from spatialq.database.sql_function import SqlFunction
from spatialq.workflows.ground import write_ground

OPTIONS = (
    "STRUCT(resolution DOUBLE, method VARCHAR, ground_only BOOLEAN, crs VARCHAR, "
    "object_width DOUBLE, max_distance DOUBLE, device VARCHAR)"
)
RESULT = pa.struct(
    {
        "points": pa.int64(),
        "ground_points": pa.int64(),
        "noise_points": pa.int64(),
        "device": pa.string(),
        "outputs": pa.list_(pa.string()),
    }
)


def _write_ground(paths: Any, outputs: Any, options: Any) -> Any:
    calls = zip(paths.to_pylist(), outputs.to_pylist(), options.to_pylist(), strict=True)
    rows = []
    for path, targets, chosen in calls:
        arguments = {"path": path, "outputs": targets, **chosen}
        for name, value in arguments.items():
            if (value is None and name != "crs") or (name == "outputs" and None in value):
                message = f"write_ground: {name} must not be NULL"
                raise ValueError(message)
        rows.append(write_ground(path, targets, **chosen))
    # a list, since unnesting a bare struct would call the function once for each of its fields
    return pa.array([[row] for row in rows], pa.list_(RESULT))


SQL_FUNCTIONS = (
    SqlFunction(
        "write_ground_udf",
        ("VARCHAR", "VARCHAR[]", OPTIONS),
        "STRUCT(points BIGINT, ground_points BIGINT, noise_points BIGINT, device VARCHAR, "
        "outputs VARCHAR[])[]",
        _write_ground,
    ),
)
