"""The planner's answers as SQL functions; `sql/spatialq_*.sql` makes tables of them."""

from typing import Any

import pyarrow as pa

from spatialq.database.sql_function import SqlFunction
from spatialq.functions.declaration import find
from spatialq.functions.sql_text import identifier
from spatialq.planner import devices, log
from spatialq.planner import plan as route

MAX_ROWS = 10**15
DEVICES = pa.struct(
    {
        "device": pa.string(),
        "name": pa.string(),
        "cores": pa.int32(),
        "memory_bytes": pa.int64(),
        "usable": pa.bool_(),
        "problem": pa.string(),
    }
)
LOG = pa.struct(
    {
        "at": pa.timestamp("us"),
        "function": pa.string(),
        "row_count": pa.int64(),
        "device": pa.string(),
        "reason": pa.string(),
        "estimated_seconds": pa.float64(),
        "seconds": pa.float64(),
        "error": pa.string(),
    }
)
PLAN = pa.struct(
    {
        "device": pa.string(),
        "chosen": pa.bool_(),
        "estimated_seconds": pa.float64(),
        "memory_bytes": pa.int64(),
        "reason": pa.string(),
    }
)


def _devices(calls: Any) -> Any:
    rows = [
        {
            "device": info.device,
            "name": info.name,
            "cores": info.cores,
            "memory_bytes": info.memory_bytes,
            "usable": not info.problem,
            "problem": info.problem or None,
        }
        for info in devices.devices()
    ]
    return pa.array([rows] * len(calls), pa.list_(DEVICES))


def _log(calls: Any) -> Any:
    rows = [
        {
            "at": entry.at.replace(tzinfo=None),  # DuckDB needs pytz for zones
            "function": entry.function,
            "row_count": entry.rows,
            "device": entry.device,
            "reason": entry.reason,
            "estimated_seconds": entry.estimated_seconds,
            "seconds": entry.seconds,
            "error": entry.error,
        }
        for entry in log.entries()
    ]
    return pa.array([rows] * len(calls), pa.list_(LOG))


def _plan(names: Any, row_counts: Any, wishes: Any) -> Any:
    tables = []
    for name, rows, wish in zip(
        names.to_pylist(), row_counts.to_pylist(), wishes.to_pylist(), strict=True
    ):
        udf = find("spatialq_plan", str(name))
        if rows is None or not 0 <= rows <= MAX_ROWS:
            message = f"spatialq_plan: row_count must be >= 0 and <= {MAX_ROWS:.0e}, got {rows}"
            raise ValueError(message)
        plan = route.plan(udf, rows, udf.options(), wish)
        tables.append(
            [
                {
                    "device": option.device,
                    "chosen": option.device == plan.device,
                    "estimated_seconds": option.seconds,
                    "memory_bytes": option.memory_bytes,
                    "reason": plan.reason
                    if option.device == plan.device
                    else option.problem or "slower by the estimate, or not asked for",
                }
                for option in plan.options
            ]
        )
    return pa.array(tables, pa.list_(PLAN))


def _list_of(struct: pa.StructType) -> str:
    types = {
        pa.string(): "VARCHAR",
        pa.bool_(): "BOOLEAN",
        pa.int32(): "INTEGER",
        pa.int64(): "BIGINT",
        pa.float64(): "DOUBLE",
        pa.timestamp("us"): "TIMESTAMP",
    }
    fields = (f"{identifier(field.name)} {types[field.type]}" for field in struct)
    return f"STRUCT({', '.join(fields)})[]"


SQL_FUNCTIONS = (
    SqlFunction("spatialq_devices_udf", ("INTEGER",), _list_of(DEVICES), _devices),
    SqlFunction("spatialq_log_udf", ("INTEGER",), _list_of(LOG), _log),
    SqlFunction("spatialq_plan_udf", ("VARCHAR", "BIGINT", "VARCHAR"), _list_of(PLAN), _plan),
)
