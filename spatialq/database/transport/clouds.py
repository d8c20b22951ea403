"""From a table of points that carry colours, or from files of them, to a kernel and back.

As for `read_las`: the query is written while it is bound. A table's columns come as lists, NULL
where it has none of that name; files go straight into arrays, without a row a point.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.database.loading import means_file
from spatialq.database.sql_function import SqlFunction
from spatialq.database.transport.arrow import choose, list_of_structs, structs
from spatialq.errors import FileError
from spatialq.execution.call import call
from spatialq.functions.declaration import NUMPY_TYPES, Udf, whole_numbers
from spatialq.functions.sql_text import literal
from spatialq.io.crs import require_same
from spatialq.io.files import find_files, is_pattern, require_file, warn_about
from spatialq.io.las.source import LAS, LasSource, open_las
from spatialq.io.source import Progress

MOST_ROWS = 2**31 - 1
"""Of a table: a function gets lists with offsets of 32 bits."""


def kernel_functions(udf: Udf) -> tuple[SqlFunction, ...]:
    """Make the SQL functions of a function of points that carry something.

    `<name>_sql` writes the query: of a table it calls `<name>_udf` (see `transport.arrow`), of
    files `<name>_files`, which gets their names, and options as JSON.
    """

    def query(points: Any, options: Any) -> Any:
        calls = zip(points.to_pylist(), options.to_pylist(), strict=True)
        return pa.array([_query(udf, *arguments) for arguments in calls], pa.string())

    def answer(plans: Any) -> Any:
        return list_of_structs([_of_files(udf, **json.loads(plan)) for plan in plans.to_pylist()])

    columns = ", ".join(f"{name} {kind}" for name, kind in udf.returns.items())
    return (
        SqlFunction(f"{udf.name}_sql", ("VARCHAR", "VARCHAR"), "VARCHAR", query, volatile=False),
        SqlFunction(f"{udf.name}_files", ("VARCHAR",), f"STRUCT({columns})[]", answer),
    )


def _query(udf: Udf, points: str | None, text: str) -> str:
    if not points:
        got = "NULL" if points is None else "''"
        message = f"{udf.name}: points must be the name of a table or a file, got {got}"
        raise ValueError(message)
    options, device = choose(udf, json.loads(text))
    if means_file(points):
        rows = f"{udf.name}_files({literal(_plan(udf, points, text))})"
        return f"SELECT unnest({rows}, max_depth := 2)"
    chosen = {**asdict(options), "device": device}
    lists = [
        f"list({_whole(udf, 'point_id', 'BIGINT')})",
        *(f"list({name}::DOUBLE)" for name in udf.columns),
        *(f"list({_whole(udf, name, kind)})" for name, kind in udf.carries.items()),
        f"{{{', '.join(f'{name}: {literal(value)}' for name, value in chosen.items())}}}",
    ]
    absent = ", ".join(f"NULL AS {name}" for name in ("point_id", *udf.columns, *udf.carries))
    return (
        f"SELECT unnest({udf.name}_udf({', '.join(lists)}), max_depth := 2) FROM "
        f"(FROM query_table({literal(points)}) UNION ALL BY NAME SELECT {absent} WHERE false) "
        f"HAVING {_is_cloud(udf, points)}"
    )


def _is_cloud(udf: Udf, points: str) -> str:
    """Write what must be true of a table: a column that it lacks has no type."""
    rows = f"{udf.name}: points must be at most {MOST_ROWS} in a table (in files more), got "
    cases = [f"WHEN count(*) > {MOST_ROWS} THEN error({literal(rows)} || count(*))"]
    for name in ("point_id", *udf.columns):
        sentence = literal(f"{udf.name}: {points!r} must have a column {name}")
        cases.append(f"WHEN typeof(any_value({name})) = '\"NULL\"' THEN error({sentence})")
    return f"CASE {' '.join(cases)} ELSE true END"


def _whole(udf: Udf, name: str, kind: str) -> str:
    """Write a column as numbers of its type: a cast would round, and say no more than "range"."""
    limits = np.iinfo(NUMPY_TYPES[kind])
    sentence = f"{udf.name}: {name} must be {whole_numbers(kind)}"
    value = f"{name}::VARCHAR || ' of type ' || typeof({name})"
    return (
        f"CASE WHEN typeof({name}) = '{kind}' OR {name} IS NULL THEN {name}::{kind} "
        f"WHEN typeof({name}) NOT SIMILAR TO 'U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?' "
        f"THEN error({literal(f'{sentence} of a type such as {kind}, got ')} || {value}) "
        f"WHEN TRY_CAST({name} AS HUGEINT) BETWEEN {limits.min} AND {limits.max} "
        f"THEN {name}::{kind} ELSE error({literal(f'{sentence}, got ')} || {value}) END"
    )


def _plan(udf: Udf, points: str, options: str) -> str:
    """Look at the files, of which only the headers are read, and write what `_of_files` gets."""
    if not is_pattern(points) and Path(points).suffix.lower() not in LAS:
        reason = f"is no point cloud: its name must end in {' or '.join(LAS)}"
        raise FileError.of(udf.name, points, reason)
    paths = find_files(udf.name, points)
    for path in paths:
        require_file(udf.name, path)
    clouds = [open_las(path) for path in paths]
    for cloud in clouds:
        warn_about(udf.name, cloud)
    require_same(udf.name, [(cloud.path, cloud.crs) for cloud in clouds])
    files = [[str(cloud.path), *cloud.stamp] for cloud in clouds]
    return json.dumps({"files": files, "options": options})


def _of_files(udf: Udf, files: list[list[Any]], options: str) -> Any:
    """Run the kernel on all points of the files, whose ids run on from file to file."""
    clouds = []
    for path, *stamp in files:
        clouds.append(open_las(path))
        if list(clouds[-1].stamp) != stamp:
            raise FileError.of(udf.name, path, "was changed while the query ran")
    columns = read_clouds(udf, clouds)
    result, _ = call(udf, columns, *choose(udf, json.loads(options)))
    return structs(udf, result)


def batches_of_clouds(
    udf: Udf, clouds: Sequence[LasSource], tick: Progress | None = None
) -> Iterator[dict[str, Any]]:
    """Read all points of files, some at a time; a column that a file lacks is None."""
    for cloud in clouds:
        there = [name for name in (*udf.columns, *udf.carries) if name in cloud.schema.names]
        done = 0
        for batch in cloud.batches(there):
            found = {name: batch[name].to_numpy(zero_copy_only=False) for name in there}
            yield {**dict.fromkeys(udf.carries), **found}
            done += batch.num_rows
            if tick is not None:
                tick(cloud.path, done, cloud.rows)


def read_clouds(
    udf: Udf, clouds: Sequence[LasSource], tick: Progress | None = None
) -> dict[str, Any]:
    """Read all points of files, whose ids run on from file to file, as a kernel takes them.

    A column that it carries is masked where a file has none of that name, None where all lack it.
    """
    n = sum(cloud.rows for cloud in clouds)
    columns: dict[str, Any] = {name: np.empty(n) for name in udf.columns}
    for name, kind in udf.carries.items():
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
