"""`read_las` in SQL: the functions behind the table macro of `sql/read_las.sql`.

The macro is `FROM query(read_las_sql(...))`. While the query is bound, `read_las_sql` opens the
files, checks them and writes a query for their columns. That query counts through the spans
with a recursive CTE and calls `read_las_span` for one at a time: rows stream, a LIMIT stops
the reading, and no state is kept between the calls.
"""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spatialq.data.arrow import ARROW_TYPES, SQL_TYPES
from spatialq.database.sql_functions import LAS_COLUMNS, LAS_EXTRA
from spatialq.errors import FileError
from spatialq.functions.sql_text import identifier, literal
from spatialq.io.crs import require_same
from spatialq.io.files import find_files, warn_about
from spatialq.io.las.header import READER
from spatialq.io.las.source import LasSource, open_las
from spatialq.io.view import check_bounds, check_columns, inside, unified_schema


def read_las_sql(path: Any, bounds: Any, columns: Any) -> pa.Array:
    """Write the query that reads the files.

    Raises
    ------
    FileError, CrsError, ValueError
        If a file cannot be read or an argument is wrong.
    """
    rows = zip(path.to_pylist(), bounds.to_pylist(), columns.to_pylist(), strict=True)
    return pa.array([_query(*row) for row in rows], pa.string())


def _query(path: str | None, bounds: list[float] | None, columns: list[str] | None) -> str:
    sources = [open_las(file) for file in find_files(READER, path)]
    for source in sources:
        warn_about(READER, source)
    box = check_bounds(READER, bounds)
    require_same(READER, ((source.path, source.crs) for source in sources))
    schema = unified_schema(READER, sources)
    names = check_columns(READER, columns, schema)
    spans = [len(source.spans(box)) for source in sources]
    plan = {
        "files": [[str(source.path), *source.stamp] for source in sources],
        "spans": spans,
        "columns": names,
        "bounds": bounds,
        "places": _places(schema, names),
    }
    text = literal(json.dumps(plan))
    chosen = ", ".join(f"{_choice(plan, schema, name)} AS {identifier(name)}" for name in names)
    n = max(sum(spans), 1)
    return (
        f"WITH RECURSIVE span(i, p) AS (SELECT 0::BIGINT, spatialq_read_las_span({text}, 0::BIGINT)"
        f" UNION ALL SELECT i + 1, spatialq_read_las_span({text}, i + 1) FROM span "
        f"WHERE i + 1 < {n}) SELECT {chosen} FROM span"
    )


def _places(schema: pa.Schema, names: Sequence[str]) -> dict[str, tuple[str, int, int]]:
    """Give each extra bytes column its place: kind of number, position there, how many values."""
    used = dict.fromkeys(LAS_EXTRA, 0)
    places = {}
    for name in names:
        column_type = schema.field(name).type
        if name in LAS_COLUMNS and column_type == ARROW_TYPES[LAS_COLUMNS[name]]:
            continue
        fixed = pa.types.is_fixed_size_list(column_type)
        value, n = (column_type.value_type, column_type.list_size) if fixed else (column_type, 1)
        if pa.types.is_floating(value):
            kind = "floats"
        else:
            kind = "integers" if pa.types.is_signed_integer(value) else "unsigned"
        places[name] = (kind, used[kind], n)
        used[kind] += n
    return places


def _choice(plan: dict[str, Any], schema: pa.Schema, name: str) -> str:
    if name not in plan["places"]:
        return f"unnest(p.{name})"
    kind, begin, n = plan["places"][name]
    parts = [f"unnest(p.{kind}[{begin + i + 1}])" for i in range(n)]
    column_type = schema.field(name).type
    if pa.types.is_fixed_size_list(column_type):
        return f"[{', '.join(parts)}]::{SQL_TYPES[column_type.value_type]}[{n}]"
    return f"{parts[0]}::{SQL_TYPES[column_type]}"


def read_las_span(plan: Any, index: Any) -> pa.Array:
    """Read one part of the files that the plan of `read_las_sql` names, a row each.

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
    for (path, *stamp), n_spans in zip(plan["files"], plan["spans"], strict=True):
        source = open_las(path)
        if list(source.stamp) != stamp:
            raise FileError.of(READER, path, "was changed while the query ran")
        if index < n_spans:
            return _struct(plan, *_read(plan, source, index, first))
        index -= n_spans
        first += source.rows
    return _struct(plan, {}, 0)


def _read(
    plan: dict[str, Any], source: LasSource, index: int, first: int
) -> tuple[dict[str, pa.Array], int]:
    """Read one span of a file: the columns that the file has, and the number of rows."""
    names = [name for name in plan["columns"] if name in source.schema.names]
    box = check_bounds(READER, plan["bounds"])
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
    for name, kind in LAS_COLUMNS.items():
        if name in arrays and name not in plan["places"]:
            fields[name] = _lists(arrays[name], [0, rows])
        elif name in plan["columns"] and name not in plan["places"]:
            fields[name] = _lists(pa.nulls(rows, ARROW_TYPES[kind]), [0, rows])
        else:
            fields[name] = pa.nulls(1, pa.list_(ARROW_TYPES[kind]))
    for extra, kind in LAS_EXTRA.items():
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
