"""The planner's answers as SQL functions; `sql/spatialq_*.sql` makes tables of them."""

from typing import Any

from spatialq.database import call_log, instances
from spatialq.database.native import loading
from spatialq.database.sql_functions import LOG
from spatialq.database.transport.request import Transport
from spatialq.functions.catalogue import find
from spatialq.functions.declaration import Size
from spatialq.functions.sql_text import literal
from spatialq.planner import devices, log
from spatialq.planner.plan import plan_call, require_device

MAX_ROWS = 10**15


def devices_table(transport: Transport, _: None) -> list[dict[str, Any]]:
    """List the devices, and the extension by which rows reach them."""
    rows: list[dict[str, Any]] = [
        {
            "device": info.device,
            "number": info.number if info.device == "gpu" and info.memory_bytes else None,
            "name": info.name,
            "cores": info.cores,
            "memory_bytes": info.memory_bytes,
            "free_bytes": info.room,
            "usable": not info.problem,
            "problem": info.problem or None,
        }
        for info in devices.devices()
    ]
    problem = None
    if transport == "lists":
        reason = loading.problem() or instances.current().without_extension
        problem = f"{reason}; rows go as lists, which is slower"
    rows.append(
        {
            "device": "extension",
            "name": "spatialq",
            "usable": transport == "native",
            "problem": problem,
        }
    )
    return rows


def log_table(_: None) -> list[dict[str, Any]]:
    """List the last calls of kernels, those of earlier processes in the database first."""
    here = [log.values(entry) for entry in log.entries()]
    last = [*call_log.earlier(), *here][-log.CALLS_KEPT :]
    return [dict(zip(LOG, row, strict=True)) for row in last]


def plan_table(name: str | None, rows: int | None, wanted: str | None) -> list[dict[str, Any]]:
    """List the devices that a call with default parameters could go to."""
    if name is None or wanted is None:
        argument = "function" if name is None else "device"
        message = f"spatialq_plan: {argument} must not be NULL"
        raise ValueError(message)
    function = find("spatialq_plan", name)
    if rows is None or not 0 <= rows <= MAX_ROWS:
        message = (
            f"spatialq_plan: row_count must be >= 0 and <= {MAX_ROWS:.0e}, got {literal(rows)}"
        )
        raise ValueError(message)
    require_device("spatialq_plan", wanted)
    plan = plan_call([function], Size(rows), function.choose({}), wanted, "lists")
    return [
        {
            "device": candidate.device,
            "number": candidate.gpus[0] if candidate.gpus else None,
            "chosen": plan.is_chosen(candidate),
            "estimated_seconds": candidate.seconds,
            "memory_bytes": candidate.memory_bytes,
            "reason": plan.reason
            if plan.is_chosen(candidate)
            else candidate.problem
            or candidate.doubt
            or "slower by the estimate, not asked for, or with less free memory",
        }
        for candidate in plan.candidates
    ]
