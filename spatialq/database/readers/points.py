"""`read_points` and `read_las` in SQL: the functions behind their table macros.

A macro is `FROM query(read_points_sql(...))`. While the query is bound, `read_points_sql` opens the
files, checks them and writes a query for their columns. That query counts through the spans
with a recursive CTE and calls `read_points_span` for one at a time: rows stream, and a LIMIT stops
the reading.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spatialq.data.arrow import ARROW_TYPES, SQL_TYPES
from spatialq.database import instances
from spatialq.database.sql_functions import OTHER_COLUMNS, POINT_COLUMNS
from spatialq.errors import FileError
from spatialq.functions.sql_text import identifier, literal
from spatialq.io.clouds import at_resolution, find_clouds, open_cloud
from spatialq.io.files import warn_about
from spatialq.io.filters import check_bounds, check_columns, inside, unified_schema
from spatialq.io.reproject import Reprojection
from spatialq.io.reprojected import ReprojectedCloud, moved
from spatialq.io.source import PointSource
from spatialq.io.storage import as_path


def read_points_sql(
    caller: str,
    path: str | None,
    bounds: list[float] | None,
    columns: list[str] | None,
    to_crs: str | None,
    resolution: float | None,
) -> str:
    """Write the query that reads the files.

    Raises
    ------
    FileError, CrsError, ValueError
        If a file cannot be read or an argument is wrong.
    """
    sources = find_clouds(caller, path, to_crs, resolution)
    for source in sources:
        warn_about(caller, source)
        instances.current().systems[repr(str(source.path))] = source.crs
    box = check_bounds(caller, bounds)
    schema = unified_schema(caller, sources)
    names = check_columns(caller, columns, schema)
    spans = [len(source.spans(box)) for source in sources]
    plan = {
        "caller": caller,
        "files": [[str(source.path), *source.stamp] for source in sources],
        "spans": spans,
        "columns": names,
        "bounds": bounds,
        "places": _places(schema, names),
        "resolution": resolution,
        "operations": [_operation(source) for source in sources],
    }
    text = literal(json.dumps(plan))
    chosen = ", ".join(f"{_choice(plan, schema, name)} AS {identifier(name)}" for name in names)
    n = max(sum(spans), 1)
    read = f"spatialq_read_points_span({text}"
    return (
        f"WITH RECURSIVE span(i, p) AS (SELECT 0::BIGINT, {read}, 0::BIGINT) UNION ALL "
        f"SELECT i + 1, {read}, i + 1) FROM span WHERE i + 1 < {n}) SELECT {chosen} FROM span"
    )


def _operation(source: PointSource) -> dict[str, Any] | None:
    """Give what transforms the coordinates of a file, if anything does."""
    return asdict(source.operation) if isinstance(source, ReprojectedCloud) else None


def _places(schema: pa.Schema, names: Sequence[str]) -> dict[str, tuple[str, int, int]]:
    """Give each column without a place of its own one: kind, position there, how many values."""
    used = dict.fromkeys(OTHER_COLUMNS, 0)
    places = {}
    for name in names:
        column_type = schema.field(name).type
        if name in POINT_COLUMNS and column_type == ARROW_TYPES[POINT_COLUMNS[name]]:
            continue
        fixed = pa.types.is_fixed_size_list(column_type)
        value, n = (column_type.value_type, column_type.list_size) if fixed else (column_type, 1)
        kind = _kind(value)
        places[name] = (kind, used[kind], n)
        used[kind] += n
    return places


def _kind(value: pa.DataType) -> str:
    """Give the member of `OTHER_COLUMNS` that holds all values of a type."""
    if pa.types.is_string(value):
        return "texts"
    if pa.types.is_floating(value):
        return "floats"
    return "integers" if pa.types.is_signed_integer(value) else "unsigned"


def _choice(plan: dict[str, Any], schema: pa.Schema, name: str) -> str:
    if name not in plan["places"]:
        return f"unnest(p.{name})"
    kind, begin, n = plan["places"][name]
    parts = [f"unnest(p.{kind}[{begin + i + 1}])" for i in range(n)]
    column_type = schema.field(name).type
    if pa.types.is_fixed_size_list(column_type):
        return f"[{', '.join(parts)}]::{SQL_TYPES[column_type.value_type]}[{n}]"
    return f"{parts[0]}::{SQL_TYPES[column_type]}"


def read_points_span(plan: Any, index: Any) -> pa.Array:
    """Read one part of the files that the plan of `read_points_sql` names, a row each.

    Raises
    ------
    FileError
        If a file was changed since the query was bound, or its points are damaged.
    """
    rows = zip(plan.to_pylist(), index.to_pylist(), strict=True)
    structs = [_span(json.loads(text), i) for text, i in rows]
    return pa.concat_arrays(structs)


def _span(plan: dict[str, Any], index: int) -> pa.StructArray:
    first = 0
    files = zip(plan["files"], plan["spans"], plan["operations"], strict=True)
    for (path, *stamp), n_spans, operation in files:
        source = open_cloud(plan["caller"], as_path(path))
        source = at_resolution(plan["caller"], source, plan["resolution"])
        if operation is not None:
            source = moved(plan["caller"], source, Reprojection(**operation))
        if list(source.stamp) != stamp:
            raise FileError.of(plan["caller"], path, "was changed while the query ran")
        if index < n_spans:
            return _struct(plan, *_read(plan, source, index, first))
        index -= n_spans
        first += source.rows
    return _struct(plan, {}, 0)


def _read(
    plan: dict[str, Any], source: PointSource, index: int, first: int
) -> tuple[dict[str, pa.Array], int]:
    """Read one span of a file: the columns that the file has, and the number of rows."""
    names = [name for name in plan["columns"] if name in source.schema.names]
    box = check_bounds(plan["caller"], plan["bounds"])
    span = source.spans(box)[index]
    condition = inside(box)
    if condition is None:
        batch = source.read_span(span, names or ["point_id"])
    else:
        needed = list(dict.fromkeys([*names, "x", "y"]))
        batch = source.read_span(span, needed).filter(condition)
    arrays = {name: batch.column(name) for name in names}
    if "point_id" in arrays and first:
        arrays["point_id"] = pc.add(arrays["point_id"], first)
    if "file_name" in plan["columns"]:
        arrays["file_name"] = pa.repeat(str(source.path), batch.num_rows)
    return arrays, batch.num_rows


def _struct(plan: dict[str, Any], arrays: dict[str, pa.Array], rows: int) -> pa.StructArray:
    """Build the one row of the declared type: NULL for what is not asked for."""
    fields: dict[str, pa.Array] = {}
    for name, kind in POINT_COLUMNS.items():
        if name in arrays and name not in plan["places"]:
            fields[name] = _lists(arrays[name], [0, rows])
        elif name in plan["columns"] and name not in plan["places"]:
            fields[name] = _lists(pa.nulls(rows, ARROW_TYPES[kind]), [0, rows])
        else:
            fields[name] = pa.nulls(1, pa.list_(ARROW_TYPES[kind]))
    for extra, kind in OTHER_COLUMNS.items():
        parts = [
            part
            for name, (place, _, n) in plan["places"].items()
            if place == extra
            for part in _split(arrays.get(name), rows, n, ARROW_TYPES[kind])
        ]
        values = pa.concat_arrays(parts) if parts else pa.nulls(0, ARROW_TYPES[kind])
        inner = _lists(values, [rows * i for i in range(len(parts) + 1)])
        fields[extra] = _lists(inner, [0, len(parts)])
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def _lists(values: pa.Array, offsets: list[int]) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def _split(array: pa.Array | None, rows: int, n: int, value: pa.DataType) -> list[pa.Array]:
    """Turn a column of `n` values a row into `n` columns of one value."""
    if array is None:
        return [pa.nulls(rows, value)] * n
    if not pa.types.is_fixed_size_list(array.type):
        return [array.cast(value)]
    return [pc.list_element(array, i).cast(value) for i in range(n)]
