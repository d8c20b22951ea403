"""Columns and meshes that stay in memory under the name of their table.

A pin is used only where the table has the content that was pinned: the query that uses it reads
the columns and compares a fingerprint of all rows, in its own transaction. So it does not matter
who changed the table and how, or whether the name means another table by now; nor can a name that
is found here be wrong. No metadata of DuckDB says as much: `docs/pins.md` lists what they miss.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from spatialq.data.arrow import arrow_fields
from spatialq.database import instances, sql_functions
from spatialq.database.instances import Pin
from spatialq.database.transport.request import Request
from spatialq.functions.sql_text import NAME, literal, parts_of
from spatialq.planner import devices
from spatialq.runtime import forks

POINTS = ("point_id", "x", "y", "z")
ELEMENTS = "elements"
"""Stands for the columns of elements where points have theirs."""
ELEMENT_COLUMNS = ("global_id", "identity", "mesh.vertices", "mesh.faces")
FULL_NAME = re.compile(rf"(?:{NAME})(?:\.(?:{NAME})){{2}}")
MEMORY = {"cpu": "host", "gpu": "GPU"}
SHARE = 0.5
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


def columns_key(columns: Sequence[str]) -> str:
    """Name a set of columns."""
    return ",".join(columns)


def fingerprint(columns: Sequence[str]) -> str:
    """Write the aggregate that says what rows a table has, in whatever order.

    It is a sum of hashes of rows, 0 for none. A hash of several columns is hashed once more:
    DuckDB combines their hashes by XOR, in which a value that two rows exchange may cancel out.
    Numbers are hashed as kernels get them: the hash of a decimal is that of its digits.
    """
    kinds = {"point_id": "BIGINT", "x": "DOUBLE", "y": "DOUBLE", "z": "DOUBLE"}
    values = (f"{name}::{kinds[name]}" if name in kinds else name for name in columns)
    return f"coalesce(sum(hash(hash({', '.join(values)}))), 0)::VARCHAR"


def _may_be_pinned(table: str, key: str) -> bool:
    """Whether columns are pinned under a name, of whatever table: a guess, made while binding."""
    instances.settle()
    with _lock:
        found = _here().get(table.casefold())
        return found is not None and key in found.contents


def fixed_table(table: str) -> str | None:
    """Write the expression that names a table which cannot change; NULL, or None, if it may.

    It cannot if its name is given in full, which nothing shadows, and its database is attached for
    reading only: what is attached under that name later has another number.
    """
    if FULL_NAME.fullmatch(table) is None:
        return None
    names = zip(("database_name", "schema_name", "table_name"), parts_of(table), strict=True)
    here = " AND ".join(f"lower(t.{column}) = lower({literal(part)})" for column, part in names)
    return (
        "(SELECT any_value(t.database_oid || '/' || t.table_oid) FROM duckdb_tables() AS t "
        "JOIN duckdb_databases() AS d USING (database_oid) "
        f"WHERE d.readonly AND d.type = 'duckdb' AND {here})"
    )


def lookup(
    table: str, key: str, columns: Sequence[str], rows: str, part: int = 0, *, on_gpu: bool
) -> Lookup | None:
    """Write what finds the pin of a table with the content of `rows`; None if there cannot be one.

    What is in a database that cannot be written is not read again.

    Parameters
    ----------
    table : str
        As the function names it.
    key : str
        Which fingerprint counts, see `columns_key`.
    columns : sequence of str
        Expressions, of which it is made.
    rows : str
        What to read.
    part : int
        0 for the first table of the call, 1 for the second.
    on_gpu : bool
        Whether a pin on the GPU may be used, too.
    """
    if not _may_be_pinned(table, key):
        return None
    name = f'"spatialq pin {part}"'
    sought = f"{literal(table)}, {literal(key)}, {literal(on_gpu)}"
    fixed = fixed_table(table)
    if fixed is None:
        found = f"spatialq_pin_of({sought}, count(*), {fingerprint(columns)}, NULL)"
        return Lookup(name, f"{name} AS MATERIALIZED (SELECT {found} AS pin FROM {rows})")
    first = Lookup(
        f'"spatialq fixed {part}"',
        f'"spatialq fixed {part}" AS MATERIALIZED '
        f"(SELECT spatialq_pin_of({sought}, NULL, NULL, {fixed}) AS pin)",
    )
    read = (
        f"SELECT count(*) AS n, {fingerprint(columns)} AS content FROM {first.unless_found(rows)}"
    )
    return Lookup(
        name,
        f"{first.parts}, {name} AS MATERIALIZED (SELECT CASE WHEN {first.name}.pin IS NULL "
        f"THEN spatialq_pin_of({sought}, n, content, NULL) ELSE {first.name}.pin END AS pin "
        f"FROM {first.name}, ({read}))",
    )


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


def pin_of(tables: Any, keys: Any, on_gpu: Any, counts: Any, contents: Any, fixed: Any) -> pa.Array:
    """Give the number of the pin with a name and content; NULL where there is none.

    Without a content, that of a table which cannot change.
    """
    columns = (tables, keys, on_gpu, counts, contents, fixed)
    calls = zip(*(each.to_pylist() for each in columns), strict=True)
    return pa.array([_pin_of(*arguments) for arguments in calls], pa.int64())


def _pin_of(
    table: str,
    key: str,
    on_gpu: bool,  # noqa: FBT001
    count: int | None,
    content: str | None,
    fixed: str | None,
) -> int | None:
    with _lock:
        found = _here().get(table.casefold())
        if found is None or key not in found.contents or (found.device == "gpu" and not on_gpu):
            return None
        if content is None:
            if fixed is None or found.fixed != fixed:
                return None
        elif (found.rows, found.contents[key]) != (count, content):
            found.misses += 1
            return None
        return found.number


def with_pins(texts: Any, numbers: Any) -> pa.Array:
    """Put the numbers of pins, one for each table of the call, into requests."""
    found = []
    for text, pins in zip(texts.to_pylist(), numbers.to_pylist(), strict=True):
        request = json.loads(text)
        request["source"]["pins"] = pins
        found.append(json.dumps(request))
    return pa.array(found, pa.string())


def pins_table(calls: Any) -> pa.Array:
    """List the pins of the instance."""
    with _lock:
        rows = [_row(each) for each in _here().values()]
    return pa.array([rows] * len(calls), pa.list_(pa.struct(arrow_fields(sql_functions.PINS))))


def unpin_table(tables: Any) -> pa.Array:
    """Give up pins, and list them."""
    found = []
    with _lock:
        for table in tables.to_pylist():
            there = _here().pop((table or "").casefold(), None)
            found.append([] if there is None else [_row(there)])
    return pa.array(found, pa.list_(pa.struct(arrow_fields(sql_functions.PINS))))


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
    return int(SHARE * (memory or 0))
