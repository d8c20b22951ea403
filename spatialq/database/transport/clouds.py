"""From a table of points with attributes, or from files of them, to a kernel and back.

As for `read_las`: the query is written while it is bound. A table's columns come as lists, NULL
where it has none of that name; files go straight into arrays, without one row per point.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.data.columns import NUMPY_TYPES, whole_numbers
from spatialq.database.loading import means_file
from spatialq.database.transport.arrow import choose, list_of_structs, structs
from spatialq.database.transport.points import attributes_of, of_table
from spatialq.errors import FileError
from spatialq.execution.call import call
from spatialq.functions.catalogue import Function
from spatialq.functions.sql_text import literal
from spatialq.io.crs import require_same
from spatialq.io.files import find_files, is_pattern, require_file, warn_about
from spatialq.io.las.source import LasSource, open_las
from spatialq.io.source import LAS, Progress

MAX_ROWS = 2**31 - 1
"""Of a table: a function gets lists with offsets of 32 bits."""


def query(function: Function, points: Any, options: Any) -> Any:
    """Write the query: of a table it calls `<name>_udf`, of files `<name>_files`.

    Parameters travel as JSON.
    """
    calls = zip(points.to_pylist(), options.to_pylist(), strict=True)
    return pa.array([_query(function, *arguments) for arguments in calls], pa.string())


def of_files(function: Function, plans: Any) -> Any:
    """Run the kernel once a row, on all points of files."""
    found = [_of_files(function, **json.loads(plan)) for plan in plans.to_pylist()]
    return list_of_structs(found)


def _query(function: Function, points: str | None, text: str) -> str:
    if not points:
        got = "NULL" if points is None else "''"
        message = f"{function.name}: points must be the name of a table or a file, got {got}"
        raise ValueError(message)
    options, device = choose(function, json.loads(text))
    if means_file(points):
        rows = f"{function.name}_files({literal(_plan(function, points, text))})"
        return f"SELECT unnest({rows}, max_depth := 2)"
    lists = [
        f"list({whole(function.name, 'point_id', 'BIGINT')})",
        *(f"list({name}::DOUBLE)" for name in function.inputs.columns),
        *(
            f"list({whole(function.name, name, kind)})"
            for name, kind in attributes_of(function).items()
        ),
    ]
    absent = ", ".join(
        f"NULL AS {name}"
        for name in ("point_id", *function.inputs.columns, *attributes_of(function))
    )
    source = f"(FROM query_table({literal(points)}) UNION ALL BY NAME SELECT {absent} WHERE false)"
    return of_table(
        function, points, source, lists, options, device, having=_is_cloud(function, points)
    )


def _is_cloud(function: Function, points: str) -> str:
    """Write what must be true of a table: a column that it lacks has no type."""
    rows = f"{function.name}: points must be at most {MAX_ROWS} in a table (in files more), got "
    cases = [f"WHEN count(*) > {MAX_ROWS} THEN error({literal(rows)} || count(*))"]
    for name in ("point_id", *function.inputs.columns):
        sentence = literal(f"{function.name}: {points!r} must have a column {name}")
        cases.append(f"WHEN typeof(any_value({name})) = '\"NULL\"' THEN error({sentence})")
    return f"CASE {' '.join(cases)} ELSE true END"


def whole(caller: str, name: str, kind: str) -> str:
    """Write a column as numbers of its type: a cast would round, and say no more than "range"."""
    limits = np.iinfo(NUMPY_TYPES[kind])
    sentence = f"{caller}: {name} must be {whole_numbers(kind)}"
    value = f"{name}::VARCHAR || ' of type ' || typeof({name})"
    return (
        f"CASE WHEN typeof({name}) = '{kind}' OR {name} IS NULL THEN {name}::{kind} "
        f"WHEN typeof({name}) NOT SIMILAR TO 'U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?' "
        f"THEN error({literal(f'{sentence} of a type such as {kind}, got ')} || {value}) "
        f"WHEN TRY_CAST({name} AS HUGEINT) BETWEEN {limits.min} AND {limits.max} "
        f"THEN {name}::{kind} ELSE error({literal(f'{sentence}, got ')} || {value}) END"
    )


def _plan(function: Function, points: str, options: str) -> str:
    """Look at the files, of which only the headers are read, and write what `_of_files` gets."""
    if not is_pattern(points) and Path(points).suffix.lower() not in LAS:
        reason = f"is no point cloud: its name must end in {' or '.join(LAS)}"
        raise FileError.of(function.name, points, reason)
    paths = find_files(function.name, points)
    for path in paths:
        require_file(function.name, path)
    clouds = [open_las(path) for path in paths]
    for cloud in clouds:
        warn_about(function.name, cloud)
    require_same(function.name, [(cloud.path, cloud.crs) for cloud in clouds])
    files = [[str(cloud.path), *cloud.stamp] for cloud in clouds]
    return json.dumps({"files": files, "options": options})


def _of_files(function: Function, files: list[list[Any]], options: str) -> Any:
    """Run the kernel on all points of the files, whose ids run on from file to file."""
    clouds = []
    for path, *stamp in files:
        clouds.append(open_las(path))
        if list(clouds[-1].stamp) != stamp:
            raise FileError.of(function.name, path, "was changed while the query ran")
    columns = read_clouds(function, clouds)
    result, _ = call(function, columns, *choose(function, json.loads(options)))
    return structs(function, result)


def batches_of_clouds(
    function: Function, clouds: Sequence[LasSource], tick: Progress | None = None
) -> Iterator[dict[str, Any]]:
    """Read all points of files, some at a time; a column that a file lacks is None."""
    for cloud in clouds:
        there = [
            name
            for name in (*function.inputs.columns, *attributes_of(function))
            if name in cloud.schema.names
        ]
        done = 0
        for batch in cloud.batches(there):
            found = {name: batch[name].to_numpy(zero_copy_only=False) for name in there}
            yield {**dict.fromkeys(attributes_of(function)), **found}
            done += batch.num_rows
            if tick is not None:
                tick(cloud.path, done, cloud.rows)


def read_clouds(
    function: Function, clouds: Sequence[LasSource], tick: Progress | None = None
) -> dict[str, Any]:
    """Read all points of files, whose ids run on from file to file, as a kernel takes them.

    An attribute is masked where a file has none of that name, and None where all files lack it.
    """
    n = sum(cloud.rows for cloud in clouds)
    columns: dict[str, Any] = {name: np.empty(n) for name in function.inputs.columns}
    for name, kind in attributes_of(function).items():
        there = [name in cloud.schema.names for cloud in clouds]
        columns[name] = np.empty(n, NUMPY_TYPES[kind]) if any(there) else None
        if any(there) and not all(there):
            lost = np.repeat(np.logical_not(there), [cloud.rows for cloud in clouds])
            columns[name] = np.ma.MaskedArray(columns[name], lost)
    first = 0
    for cloud in clouds:
        part = slice(first, first + cloud.rows)
        arrays = {
            name: np.ma.getdata(values)[part]
            for name, values in columns.items()
            if name in cloud.schema.names
        }
        cloud.read_into(arrays, tick)
        first += cloud.rows
    return {**columns, "point_id": np.arange(n)}
