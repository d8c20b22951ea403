"""`read_grid` in SQL: the functions behind the table macro of `sql/read_grid.sql`.

As for `read_las`: the query is written while it is bound, and reads span by span.
"""

import json
from typing import Any

import pyarrow as pa

from spatialq.database import instances
from spatialq.functions.sql_text import literal
from spatialq.io.files import find_files, warn_about
from spatialq.io.filters import check_bounds, inside
from spatialq.io.grid.grids import find_grids, plan_of, planned
from spatialq.io.grid.source import READER, SCHEMA


def read_grid_sql(
    path: str | None,
    nodata: float | None,
    band: int | None,
    bounds: list[float] | None,
    crs: str | None,
    to_crs: str | None,
    resolution: float | None,
) -> str:
    """Write the query that reads the grids.

    Raises
    ------
    FileError, CrsError, ValueError
        If a file cannot be read or an argument is wrong.
    """
    if band is None:
        message = f"{READER}: band must not be NULL"
        raise ValueError(message)
    box = check_bounds(READER, bounds)
    options: dict[str, Any] = {"nodata": nodata, "band": band, "crs": crs}
    warped: dict[str, Any] = {"to_crs": to_crs, "resolution": resolution}
    sources = find_grids(READER, find_files(READER, path), **warped, **options)
    queries = []
    for source in sources:
        warn_about(READER, source)
        instances.current().systems[repr(str(source.path))] = source.crs
        plan = {"grid": plan_of(source), "bounds": bounds}
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
    source = planned(plan["grid"])
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
