"""Snapshots of columns and meshes that stay in memory under the name of their table.

A pin is what was pinned, until the table is pinned again. A call uses it where the table has as
many rows and the name means the same table, see `state_of`; otherwise it collects the columns. No
figure that DuckDB gives without reading the columns says that values were updated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spatialq.data.arrow import arrow_fields
from spatialq.database import instances, sql_functions
from spatialq.database.instances import Pin
from spatialq.database.transport.request import Request
from spatialq.functions.sql_text import identifier, literal, parts_of
from spatialq.planner import devices
from spatialq.runtime import forks

POINTS = ("point_id", "x", "y", "z")
ELEMENTS = ("global_id", "mesh")
MEMORY = {"cpu": "host", "gpu": "GPU"}
SHARE_OF_MEMORY = 0.5
"""Of the memory of a device that pins may take, unless `pin_budget` says otherwise."""

_lock = forks.rlock()
_budgets: dict[str, int | None] = {"cpu": None, "gpu": None}


@dataclass(frozen=True)
class Lookup:
    """What a query needs to look for the pin of a table.

    The number is joined, not asked for by a scalar subquery: in a correlated subquery DuckDB would
    then run all that gets it for each outer row.
    """

    name: str
    """Of a common table expression: its one row has a column `pin`, NULL where there is none.
    That for `Source.stated` has a column of this name instead."""
    parts: str
    """The common table expressions, of which that is the last."""

    def unless_found(self, rows: str) -> str:
        """Write a source that has the rows if there is no pin; they are not read otherwise."""
        return f"(SELECT t.* FROM {rows} AS t, (SELECT 1 FROM {self.name} WHERE pin IS NULL))"


# -- in Python


def pin_budget(*, host: int | None = None, gpu: int | None = None) -> dict[str, int]:
    """Set how much memory all pins of the process may take, and tell how much they may.

    Parameters
    ----------
    host, gpu : int, bytes, >= 0, optional
        By default half of the memory of each. Pins that are there already stay.

    Returns
    -------
    dict
        `host` and `gpu`, bytes; 0 where there is no GPU.
    """
    for name, value in (("host", host), ("gpu", gpu)):
        if value is not None and (type(value) is not int or value < 0):
            message = f"pin_budget: {name} must be a number of bytes >= 0, got {value!r}"
            raise ValueError(message)
    with _lock:
        _budgets["cpu"] = _budgets["cpu"] if host is None else host
        _budgets["gpu"] = _budgets["gpu"] if gpu is None else gpu
    return {"host": _budget("cpu"), "gpu": _budget("gpu")}


# -- what queries are made of


def state_of(table: str) -> str:
    """Write the expression for what tells one state of a table from another, by metadata alone.

    That is the number of rows, their type, where names are looked up, which tables and views have
    the name, and the statements that would create them; NULL if there are none, as of a variable
    of Python. A common table expression that hides a table has no row ids: there `rowid` means the
    column beside.
    """
    parts = parts_of(table)
    rows = ".".join(map(identifier, parts))
    name = f"lower({literal(parts[-1])})"
    return (
        f"concat_ws(' ', (SELECT count(*) FROM {rows}), "
        "typeof((SELECT {id: id, row: row} FROM (SELECT NULL AS rowid, rowid AS id, "
        f'"spatialq row" AS row FROM {rows} AS "spatialq row" LIMIT 0))), '
        "current_database(), current_setting('search_path'), '') || "
        "(SELECT list(known ORDER BY known)::VARCHAR "
        "FROM (SELECT concat_ws(' ', database_oid, table_oid, sql) AS known FROM duckdb_tables() "
        f"WHERE lower(table_name) = {name} UNION ALL "
        "SELECT concat_ws(' ', database_oid, view_oid, sql) FROM duckdb_views() "
        f"WHERE lower(view_name) = {name}))"
    )


def lookup(table: str, columns: Sequence[str], part: int = 0, *, on_gpu: bool) -> Lookup | None:
    """Write what finds the pin of a table, in the transaction of the call; None if there is none.

    Parameters
    ----------
    table : str
        As the function names it.
    columns : sequence of str
        What the function takes.
    part : int
        0 for the first table of the call, 1 for the second.
    on_gpu : bool
        Whether a pin on the GPU may be used, too.
    """
    instances.settle()
    if _find(table, columns) is None:
        return None
    name = f'"spatialq pin {part}"'
    sought = f"{literal(table)}, {literal(list(columns))}, {literal(on_gpu)}, {state_of(table)}"
    return Lookup(name, f"{name} AS MATERIALIZED (SELECT spatialq_pin_of({sought}) AS pin)")


def of_request(request: Request, part: int, function: str) -> Pin | None:
    """Give the pin that a query has found for a table of its call, or None.

    Raises
    ------
    ValueError
        If it was given up while the query ran.
    """
    number = request.source.get("pins", [None, None])[part]
    if number is None:
        return None
    with _lock:
        found = next((each for each in _here().values() if each.number == number), None)
        if found is not None:
            found.uses += 1
            return found
    message = f"{function}: the pinned columns were given up while the query ran: run it again"
    raise ValueError(message)


# -- the SQL functions


def pin_of(
    table: str,
    columns: Sequence[str],
    on_gpu: bool,  # noqa: FBT001
    state: str,
) -> int | None:
    """Give the number of the pin of a name, and of the state that its table has; None without."""
    with _lock:
        found = _find(table, columns)
        if found is None or (found.device == "gpu" and not on_gpu):
            return None
        if found.state != state:
            found.misses += 1
            return None
        return found.number


def pins_table(_: None) -> list[dict[str, Any]]:
    """List the pins of the instance."""
    with _lock:
        return [_row(each) for each in _here().values()]


def unpin_table(table: str | None) -> list[dict[str, Any]]:
    """Give up the pin of a name, and list it."""
    with _lock:
        there = _here().pop((table or "").casefold(), None)
    return [] if there is None else [_row(there)]


# -- the registry


def _row(pin: Pin) -> dict[str, Any]:
    return {
        "table_name": pin.name,
        "device": pin.device,
        "row_count": pin.rows,
        "columns": list(pin.columns),
        "bytes": pin.nbytes,
        "uses": pin.uses,
        "misses": pin.misses,
        "pinned_at": pin.pinned_at.replace(tzinfo=None),  # DuckDB needs pytz for zones
    }


def rows_of(pins: Sequence[Pin]) -> pa.Array:
    """Give the rows of pins in `spatialq_pins()`, as structs."""
    return pa.array([_row(each) for each in pins], pa.struct(arrow_fields(sql_functions.PINS)))


def _here() -> dict[str, Pin]:
    return instances.current().pins


def _find(table: str, columns: Sequence[str]) -> Pin | None:
    """Find the pin of a name, if it serves a function that takes the columns."""
    found = _here().get(table.casefold())
    return found if found is not None and found.serves.issuperset(columns) else None


def add(pin: Pin) -> Pin:
    """Let queries find a pin."""
    with _lock:
        _here()[pin.name.casefold()] = pin
    return pin


def make_room(table: str, device: str, nbytes: int) -> None:
    """Give up what has the name already, and see that the budget is enough.

    Raises
    ------
    ValueError
        If it is not, or there is no such device.
    """
    if device == "gpu":
        problem = next(info.problem for info in devices.devices() if info.device == "gpu")
        if problem:
            message = f"spatialq_pin: device 'gpu' cannot be used: {problem}"
            raise ValueError(message)
    with _lock:
        _here().pop(table.casefold(), None)
        others = [each for each in instances.all_pins() if each.device == device]
        budget = _budget(device)
        if sum(each.nbytes for each in others) + nbytes <= budget:
            return
        held = ", ".join(f"{each.name!r} holds {each.nbytes}" for each in others)
        message = (
            f"spatialq_pin: {table!r} takes {nbytes} bytes of {MEMORY[device]} memory, but the "
            f"budget of all pins is {budget}{' of which ' + held if held else ''}: unpin some, or "
            "set another by spatialq.pin_budget"
        )
        raise ValueError(message)


def _budget(device: str) -> int:
    given = _budgets[device]
    if given is not None:
        return given
    memory = next((i.memory_bytes for i in devices.devices() if i.device == device), 0)
    return int(SHARE_OF_MEMORY * (memory or 0))
