"""Columns and meshes that stay in memory under the name of their table.

A pin is used only where the table has the content that was pinned: the query that uses it reads
the columns and compares a fingerprint of all rows, in its own transaction. So it does not matter
who changed the table and how, or whether the name means another table by now; nor can a name that
is found here be wrong. No metadata of DuckDB says as much: `docs/pins.md` lists what they miss.
"""

import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa

from spatialq.data.arrow import arrow_fields
from spatialq.database import instances, sql_functions
from spatialq.functions.catalogue import Function, catalogue
from spatialq.functions.declaration import PointsInput
from spatialq.functions.sql_text import identifier, literal
from spatialq.planner import devices
from spatialq.runtime import cuda

POINTS = ("point_id", "x", "y", "z")
ELEMENTS = "elements"
"""Stands for the columns of elements where points have theirs."""
CHECK = '"spatialq pin"'
"""The part of a query that looks for a pin; its column `pin` is NULL where there is none."""
MEMORY = {"cpu": "host", "gpu": "GPU"}
SHARE = 0.5
"""Of the memory of a device that pins may take, unless `pin_budget` says otherwise."""

_lock = threading.RLock()
_numbers = itertools.count(1)
_pins: "dict[int, Pin]" = {}
_budgets: dict[str, int | None] = {"cpu": None, "gpu": None}


@dataclass
class Pin:
    """What is kept of one table."""

    instance: int
    name: str
    device: str
    """Where it is kept: 'cpu' or 'gpu'."""
    columns: tuple[str, ...]
    rows: int
    nbytes: int
    contents: Mapping[str, str]
    """Fingerprints of the table: by columns, as `columns_key` writes them."""
    kept: Any
    """Of points, the arrays by column; of elements, what `transport.elements` makes of them."""
    number: int = field(default_factory=lambda: next(_numbers))
    uses: int = 0
    misses: int = 0
    """Queries that found another content under the name."""
    pinned_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def arrays(self, function: Function) -> dict[str, Any]:
        """Give what the kernel of a function of points gets: point_id, x, y, z and attributes."""
        return {name: self.kept.get(name) for name in columns_of(function)}


# -- in Python


def pin(
    con: duckdb.DuckDBPyConnection,
    table: str,
    columns: Sequence[str] | None = None,
    device: str = "cpu",
) -> dict[str, Any]:
    """Keep the columns of a table in memory, for the functions that are called on it afterwards.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        With the functions of spatialq on it.
    table : str
        Name of a table or view of points or of elements, as functions will name it. What was
        pinned under this name is given up.
    columns : sequence of str, optional
        Of points: the attributes to keep beside point_id, x, y and z; by default all that a
        function of points has a use for.
    device : 'cpu' or 'gpu'
        Where to keep them: in the memory of the host, or of the GPU. Elements are kept on the host.

    Returns
    -------
    dict
        The row of `spatialq_pins()`.

    Raises
    ------
    duckdb.Error
        If the table cannot be pinned, or the budget is not enough; see `pin_budget`.

    Examples
    --------
    >>> spatialq.pin(con, "points", device="gpu")  # doctest: +SKIP
    """
    instances.close_unused()
    instances.of(con)
    wanted = "NULL" if columns is None else literal(list(columns))
    return _only_row(
        con, f"FROM spatialq_pin({literal(table)}, columns := {wanted}, device := {literal(device)})"
    )


def unpin(con: duckdb.DuckDBPyConnection, table: str) -> bool:
    """Give up what is pinned under a name; tell whether there was anything.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    table : str
    """
    instances.close_unused()
    return bool(con.execute(f"FROM spatialq_unpin({literal(table)})").fetchall())


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
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            message = f"pin_budget: {name} must be a number of bytes >= 0, got {value!r}"
            raise ValueError(message)
    with _lock:
        _budgets["cpu"] = _budgets["cpu"] if host is None else host
        _budgets["gpu"] = _budgets["gpu"] if gpu is None else gpu
    return {"host": _budget("cpu"), "gpu": _budget("gpu")}


def _only_row(con: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    found = con.execute(query)
    names = [each[0] for each in found.description]
    return dict(zip(names, found.fetchall()[0], strict=True))


# -- what queries are made of


def columns_of(function: Function) -> tuple[str, ...]:
    """Name the columns that a function of points looks at."""
    inputs = function.inputs
    return (*POINTS, *(inputs.attributes if isinstance(inputs, PointsInput) else ()))


def attributes() -> dict[str, str]:
    """Give the attributes that any function of points looks at, with their SQL types."""
    found: dict[str, str] = {}
    for function in catalogue().values():
        if isinstance(function.inputs, PointsInput):
            found |= function.inputs.attributes
    return found


def columns_key(columns: Sequence[str]) -> str:
    """Name a set of columns."""
    return ",".join(columns)


def fingerprint(columns: Sequence[str]) -> str:
    """Write the aggregate that says what rows a table has, in whatever order.

    It is a sum of hashes of rows, 0 for none. A hash of several columns is hashed once more:
    DuckDB combines their hashes by XOR, in which a value that two rows exchange may cancel out.
    """
    return f"coalesce(sum(hash(hash({', '.join(columns)}))), 0)::VARCHAR"


def may_be_pinned(table: str) -> bool:
    """Whether anything is pinned under a name, in any instance: a guess, made while binding."""
    with _lock:
        return any(each.name.casefold() == table.casefold() for each in _pins.values())


def check(table: str, key: str, columns: Sequence[str], source: str, *, on_gpu: bool) -> str:
    """Write the query that finds the pin of a table with the content that `source` has.

    Parameters
    ----------
    table : str
        As the function names it.
    key : str
        Which fingerprint counts, see `columns_key`.
    columns : sequence of str
        Expressions, of which it is made.
    source : str
        What to read.
    on_gpu : bool
        Whether a pin on the GPU may be used, too.
    """
    return (
        f"SELECT spatialq_pin_of(spatialq_instance(0), {literal(table)}, {literal(key)}, "
        f"{literal(on_gpu)}, count(*), {fingerprint(columns)}) AS pin FROM {source}"
    )


def unless_pinned(source: str, check: str = CHECK) -> str:
    """Write a source that has its rows if there is no pin; it is not read otherwise."""
    return f"(SELECT t.* FROM {source} AS t, (SELECT 1 FROM {check} WHERE pin IS NULL))"


def find(number: int, function: str) -> Pin:
    """Give a pin that a query has found.

    Raises
    ------
    ValueError
        If it was given up while the query ran.
    """
    with _lock:
        found = _pins.get(number)
    if found is None:
        message = f"{function}: the pinned columns were given up while the query ran: run it again"
        raise ValueError(message)
    return found


# -- the SQL functions


def pin_sql(tables: Any, columns: Any, wanted: Any) -> pa.Array:
    """Write the query that pins a table: of points, or of elements where it has a column mesh.

    Raises
    ------
    ValueError
        If an argument is wrong.
    """
    calls = zip(*(each.to_pylist() for each in (tables, columns, wanted)), strict=True)
    return pa.array([_pin_sql(*arguments) for arguments in calls], pa.string())


def _pin_sql(table: str | None, columns: list[str] | None, device: str | None) -> str:
    if not table:
        got = "NULL" if table is None else "''"
        message = f"spatialq_pin: table must be the name of a table, got {got}"
        raise ValueError(message)
    if device not in ("cpu", "gpu"):
        message = f"spatialq_pin: device must be 'cpu' or 'gpu', got {device!r}"
        raise ValueError(message)
    known = attributes()
    for name in columns or ():
        if name not in POINTS and name not in known:
            there = ", ".join([*POINTS, *known])
            message = f"spatialq_pin: columns must be some of {there}, got {name!r}"
            raise ValueError(message)
    wanted = [name for name in known if columns is None or name in columns]
    absent = ", ".join(f"NULL AS {name}" for name in (*POINTS, *known, "global_id", "mesh"))
    lists = ["list(point_id::BIGINT)", *(f"list({name}::DOUBLE)" for name in "xyz")]
    lists += [_attribute(name, kind) if name in wanted else "NULL" for name, kind in known.items()]
    contents = [
        fingerprint(key.split(",")) if {*key.split(",")} <= {*POINTS, *wanted} else "NULL"
        for key in _keys()
    ]
    place = f"spatialq_instance(0), {literal(table)}, {literal(device)}"
    missing = " ".join(
        f"WHEN typeof(any_value({name})) = '\"NULL\"' THEN "
        f"error({literal(f'spatialq_pin: {table!r} must have a column {name}, or mesh')})"
        for name in POINTS
    )
    row = "{global_id: global_id, identity: identity, mesh: mesh}"
    return (
        "WITH spatialq_source AS NOT MATERIALIZED "
        f"(FROM query_table({literal(table)}) UNION ALL BY NAME SELECT {absent} WHERE false), "
        "spatialq_pinned AS ("
        f"SELECT spatialq_pin_points({place}, {', '.join(lists)}, [{', '.join(contents)}]) AS pin "
        "FROM spatialq_source HAVING CASE WHEN typeof(any_value(mesh)) <> '\"NULL\"' THEN false "
        f"{missing} ELSE true END UNION ALL "
        f"SELECT spatialq_pin_elements({place}, list({row}), {fingerprint(ELEMENT_COLUMNS)}) "
        "FROM spatial_elements('spatialq_source') HAVING "
        "(SELECT typeof(any_value(mesh)) <> '\"NULL\"' FROM spatialq_source)) "
        "SELECT unnest(pin, max_depth := 2) FROM spatialq_pinned"
    )


ELEMENT_COLUMNS = ("global_id", "identity", "mesh.vertices", "mesh.faces")


def _attribute(name: str, kind: str) -> str:
    """Write a column that a table may lack: then it has no type."""
    return f"CASE WHEN typeof(any_value({name})) = '\"NULL\"' THEN NULL ELSE list({name}::{kind}) END"


def _keys() -> list[str]:
    """Name the sets of columns that functions of points look at."""
    of_points = (f for f in catalogue().values() if isinstance(f.inputs, PointsInput))
    return sorted({columns_key(columns_of(function)) for function in of_points})


def pin_points(numbers: Any, tables: Any, wanted: Any, *columns: Any) -> pa.Array:
    """Keep the columns of a table of points."""
    from spatialq.database.transport.arrow import each_list
    from spatialq.database.transport.points import arrays_of

    *lists, contents = columns
    known = attributes()
    places = zip(numbers.to_pylist(), tables.to_pylist(), wanted.to_pylist(), strict=True)
    rows = zip(places, zip(*map(each_list, lists), strict=True), contents.to_pylist(), strict=True)
    found = []
    for (number, table, device), given, prints in rows:
        there = dict(zip((*POINTS, *known), given, strict=True))
        n = len(there["x"])
        arrays = arrays_of(
            "spatialq_pin",
            {name: values for name, values in there.items() if name in POINTS or len(values) or not n},
            known,
        )
        found.append(_keep_points(number, table, device, arrays, dict(zip(_keys(), prints, strict=True))))
    return _table(found)


def _keep_points(
    number: int, table: str, device: str, arrays: dict[str, Any], contents: dict[str, str | None]
) -> Pin:
    import numpy as np

    # the GPU has no masked arrays: columns of which some values are NULL are left out there
    left_out = {
        name for name, values in arrays.items() if device == "gpu" and np.ma.isMaskedArray(values)
    }
    arrays = {name: values for name, values in arrays.items() if name not in left_out}
    there = {name: values for name, values in arrays.items() if values is not None}
    nbytes = sum(_nbytes(values) for values in there.values())
    _make_room(number, table, device, nbytes)
    if device == "gpu":
        gpu = cuda.device()
        with gpu.use():
            kept = dict(zip(there, gpu.upload([*map(_contiguous, there.values())]), strict=True))
    else:
        kept = {name: _copy(values) for name, values in there.items()}
    known = {
        key: content
        for key, content in contents.items()
        if content is not None and not left_out & {*key.split(",")}
    }
    pin = Pin(number, table, device, tuple(there), len(arrays["x"]), nbytes, known, kept)
    return _add(pin)


def _contiguous(values: Any) -> Any:
    import numpy as np

    return np.ascontiguousarray(values)


def _nbytes(values: Any) -> int:
    import numpy as np

    mask = np.ma.getmaskarray(values).nbytes if np.ma.isMaskedArray(values) else 0
    return int(values.nbytes + mask)


def _copy(values: Any) -> Any:
    """Copy an array into memory of ours; what kernels get is read-only."""
    import numpy as np

    if np.ma.isMaskedArray(values):
        return np.ma.MaskedArray(_copy(np.ma.getdata(values)), np.ma.getmaskarray(values).copy())
    there = _empty(values.shape, values.dtype)
    np.copyto(there, values)
    there.flags.writeable = False
    return there


def _empty(shape: Any, dtype: Any) -> Any:
    """Allocate memory that stays."""
    import numpy as np

    return np.empty(shape, dtype)


def pin_elements(numbers: Any, tables: Any, wanted: Any, elements: Any, contents: Any) -> pa.Array:
    """Keep the meshes of a table of elements, with their R-tree and what they are as solids."""
    from spatialq.database.transport.elements import each_set, kept_set

    places = zip(numbers.to_pylist(), tables.to_pylist(), wanted.to_pylist(), strict=True)
    sets = each_set("spatialq_pin", "table", elements)
    found = []
    for (number, table, device), each, content in zip(
        places, sets, contents.to_pylist(), strict=True
    ):
        if device != "cpu":
            message = f"spatialq_pin: elements are kept on the host, got device {device!r}"
            raise ValueError(message)
        _make_room(number, table, device, each.nbytes)
        kept = kept_set(each)
        rows = len(each.meshes)
        nbytes = kept.nbytes + kept.meshes.index_bytes
        columns = ("global_id", "mesh")
        pin = Pin(number, table, device, columns, rows, nbytes, {ELEMENTS: content}, kept)
        found.append(_add(pin))
    return _table(found)


def pin_of(
    numbers: Any, tables: Any, keys: Any, on_gpu: Any, counts: Any, contents: Any
) -> pa.Array:
    """Give the number of the pin with a name and content; NULL where there is none."""
    columns = (numbers, tables, keys, on_gpu, counts, contents)
    calls = zip(*(each.to_pylist() for each in columns), strict=True)
    return pa.array([_pin_of(*arguments) for arguments in calls], pa.int64())


def _pin_of(  # noqa: PLR0913
    number: int, table: str, key: str, on_gpu: bool, count: int, content: str  # noqa: FBT001
) -> int | None:
    with _lock:
        found = _named(number, table)
        if found is None or key not in found.contents or (found.device == "gpu" and not on_gpu):
            return None
        if (found.rows, found.contents[key]) != (count, content):
            found.misses += 1
            return None
        found.uses += 1
        return found.number


def pins_table(numbers: Any) -> pa.Array:
    """List the pins of an instance."""
    with _lock:
        tables = [
            [_row(each) for each in _pins.values() if each.instance == number]
            for number in numbers.to_pylist()
        ]
    return pa.array(tables, pa.list_(pa.struct(arrow_fields(sql_functions.PINS))))


def unpin_table(numbers: Any, tables: Any) -> pa.Array:
    """Give up pins, and list them."""
    found = []
    with _lock:
        for number, table in zip(numbers.to_pylist(), tables.to_pylist(), strict=True):
            there = _named(number, table or "")
            found.append([_row(_pins.pop(there.number))] if there is not None else [])
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


def _table(pins: Sequence[Pin]) -> pa.Array:
    return pa.array([_row(each) for each in pins], pa.struct(arrow_fields(sql_functions.PINS)))


def _named(number: int, table: str) -> Pin | None:
    wanted = number, table.casefold()
    found = (each for each in _pins.values() if (each.instance, each.name.casefold()) == wanted)
    return next(found, None)


def _add(pin: Pin) -> Pin:
    with _lock:
        _pins[pin.number] = pin
    return pin


def _make_room(number: int, table: str, device: str, nbytes: int) -> None:
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
        there = _named(number, table)
        if there is not None:
            del _pins[there.number]
        others = [each for each in _pins.values() if each.device == device]
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


def _forget(number: int) -> None:
    with _lock:
        for each in [each for each in _pins.values() if each.instance == number]:
            del _pins[each.number]


instances.on_close(_forget)
