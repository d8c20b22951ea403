"""`read_grid` in SQL: the functions behind the table macro of `sql/read_grid.sql`.

As for `read_las`: the query is written while it is bound, and reads span by span.
"""

import json
from typing import Any

import pyarrow as pa

from spatialq.functions.sql_text import literal
from spatialq.io.crs import require_same
from spatialq.io.files import find_files, open_once, warn_about
from spatialq.io.grid.source import READER, SCHEMA, GridSource
from spatialq.io.view import check_bounds, inside


def read_grid_sql(path: Any, nodata: Any, band: Any, bounds: Any) -> pa.Array:
    """Write the query that reads the grids.

    Raises
    ------
    FileError, CrsError, ValueError
        If a file cannot be read or an argument is wrong.
    """
    rows = zip(*(column.to_pylist() for column in (path, nodata, band, bounds)), strict=True)
    return pa.array([_query(*row) for row in rows], pa.string())


def _query(
    path: str | None, nodata: float | None, band: int | None, bounds: list[float] | None
) -> str:
    if band is None:
        message = f"{READER}: band must not be NULL"
        raise ValueError(message)
    box = check_bounds(READER, bounds)
    options = {"nodata": nodata, "band": band}
    sources = [open_once(GridSource, file, **options) for file in find_files(READER, path)]
    require_same(READER, ((source.path, source.crs) for source in sources))
    queries = []
    for source in sources:
        warn_about(READER, source)
        plan = {"path": str(source.path), "options": options, "bounds": bounds}
        text = literal(json.dumps(plan))
        n = max(len(source.spans(box)), 1)
        column = f", {literal(str(source.path))} AS file_name" if len(sources) > 1 else ""
        queries.append(
            f"(WITH RECURSIVE span(i, p) AS (SELECT 0::BIGINT, spatialq_read_grid_span({text}, 0) "
            f"UNION ALL SELECT i + 1, spatialq_read_grid_span({text}, i + 1) FROM span "
            f"WHERE i + 1 < {n}) "
            f"SELECT unnest(p.x) AS x, unnest(p.y) AS y, unnest(p.z) AS z{column} FROM span)"
        )
    return " UNION ALL ".join(queries)


def read_grid_span(plans: Any, index: Any) -> pa.Array:
    """Read one run of rows of the grid that the plan names, a row each.

    Raises
    ------
    FileError
        If the data are damaged.
    """
    rows = zip(plans.to_pylist(), index.to_pylist(), strict=True)
    return pa.concat_arrays([_span(json.loads(text), i) for text, i in rows])


def _span(plan: dict[str, Any], index: int) -> pa.StructArray:
    source = open_once(GridSource, plan["path"], **plan["options"])
    box = check_bounds(READER, plan["bounds"])
    spans = source.spans(box)
    rows = pa.RecordBatch.from_pylist([], SCHEMA)
    if index < len(spans):
        rows = source.read_span(spans[index], SCHEMA.names)
        condition = inside(box)
        rows = rows if condition is None else rows.filter(condition)
    offsets = pa.array([0, rows.num_rows], pa.int32())
    return pa.StructArray.from_arrays(
        [pa.ListArray.from_arrays(offsets, column) for column in rows.columns], SCHEMA.names
    )
