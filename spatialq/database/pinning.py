"""Puts columns and meshes into the memory of pins: `spatialq_pin` and its Python form."""

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from spatialq.database import instances
from spatialq.database.instances import Pin
from spatialq.database.pins import (
    ELEMENTS,
    POINTS,
    add,
    make_room,
    rows_of,
    state_of,
)
from spatialq.database.sql_functions import attributes
from spatialq.database.transport.arrow import each_list
from spatialq.database.transport.elements import ROW, each_table, in_order, indexed, set_of
from spatialq.database.transport.points import arrays_of, whole
from spatialq.database.transport.table_rows import NO_MESH
from spatialq.functions.sql_text import literal
from spatialq.planner import devices
from spatialq.runtime import buffers, cuda


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
    instances.of(con)
    wanted = None if columns is None else list(columns)
    given = f"{literal(table)}, columns := {literal(wanted)}, device := {literal(device)}"
    found = con.execute(f"FROM spatialq_pin({given})")
    names = [each[0] for each in found.description]
    return dict(zip(names, found.fetchall()[0], strict=True))


def unpin(con: duckdb.DuckDBPyConnection, table: str) -> bool:
    """Give up what is pinned under a name; tell whether there was anything.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    table : str
    """
    instances.close_unused()
    return bool(con.execute(f"FROM spatialq_unpin({literal(table)})").fetchall())


def pin_sql(table: str | None, columns: list[str] | None, device: str | None) -> str:
    """Write the query that pins a table: of points, or of elements where it has a column mesh.

    Raises
    ------
    ValueError
        If an argument is wrong.
    """
    if not table:
        got = "NULL" if table is None else "''"
        message = f"spatialq_pin: table must be the name of a table, got {got}"
        raise ValueError(message)
    if device not in ("cpu", "gpu"):
        message = f"spatialq_pin: device must be 'cpu' or 'gpu', got {literal(device)}"
        raise ValueError(message)
    known = attributes()
    for name in columns or ():
        if name not in POINTS and name not in known:
            there = ", ".join([*POINTS, *known])
            message = f"spatialq_pin: columns must be some of {there}, got {name!r}"
            raise ValueError(message)
    wanted = [name for name in known if columns is None or name in columns]
    absent = ", ".join(f"NULL AS {name}" for name in (*POINTS, *known, "global_id", "mesh"))
    lists = [
        f"list({whole('spatialq_pin', 'point_id', 'BIGINT')})",
        *(f"list({name}::DOUBLE)" for name in "xyz"),
    ]
    lists += [_attribute(name, kind) if name in wanted else "NULL" for name, kind in known.items()]
    nameless = f"spatialq_pin: table must be the name of a table or view, got {table!r}"
    state = f"coalesce({state_of(table)}, error({literal(nameless)}))"
    place = f"{literal(table)}, {state}, {literal(device)}"
    missing = " ".join(
        f"WHEN typeof(any_value({name})) = '\"NULL\"' THEN "
        f"error({literal(f'spatialq_pin: {table!r} must have a column {name}, or mesh')})"
        for name in POINTS
    )
    return (
        "WITH spatialq_source AS NOT MATERIALIZED "
        f"(FROM query_table({literal(table)}) UNION ALL BY NAME SELECT {absent} WHERE false), "
        # points have no mesh, which must not be said of them
        "spatialq_meshes AS NOT MATERIALIZED "
        f"(SELECT * REPLACE (coalesce(mesh, {NO_MESH}) AS mesh) FROM spatialq_source), "
        "spatialq_pinned AS ("
        f"SELECT spatialq_pin_points({place}, {literal(wanted)}, {', '.join(lists)}) AS pin "
        "FROM spatialq_source HAVING CASE WHEN typeof(any_value(mesh)) <> '\"NULL\"' THEN false "
        f"{missing} ELSE true END UNION ALL "
        f"SELECT spatialq_pin_elements({place}, list({ROW})) AS pin "
        f"FROM {in_order('spatialq_pin: table_name', 'spatialq_meshes')} HAVING "
        "(SELECT typeof(any_value(mesh)) <> '\"NULL\"' FROM spatialq_source)) "
        "SELECT unnest(pin, max_depth := 2) FROM spatialq_pinned"
    )


def _attribute(name: str, kind: str) -> str:
    """Write a column that a table may lack: then it has no type."""
    is_absent = f"typeof(any_value({name})) = '\"NULL\"'"
    return f"CASE WHEN {is_absent} THEN NULL ELSE list({whole('spatialq_pin', name, kind)}) END"


def pin_points(tables: Any, states: Any, places: Any, wanted: Any, *columns: Any) -> pa.Array:
    """Keep the columns of a table of points."""
    known = attributes()
    rows = zip(*(each.to_pylist() for each in (tables, states, places, wanted)), strict=True)
    found = []
    for row, lists in zip(rows, zip(*map(each_list, columns), strict=True), strict=True):
        there = dict(zip((*POINTS, *known), lists, strict=True))
        # an attribute that the table lacks, or that is not wanted, has no values
        there = {name: each for name, each in there.items() if name in POINTS or len(each)}
        found.append(_keep_points(*row, arrays=arrays_of("spatialq_pin", there, known)))
    return rows_of(found)


def _keep_points(
    table: str, state: str, device: str, wanted: Sequence[str], *, arrays: dict[str, Any]
) -> Pin:
    # the GPU has no masked arrays: columns of which some values are NULL are left out there
    left_out = {
        name for name, values in arrays.items() if device == "gpu" and np.ma.isMaskedArray(values)
    }
    there = {
        name: arrays[name]
        for name in (*POINTS, *attributes())
        if name not in left_out and arrays.get(name) is not None
    }
    nbytes = sum(_nbytes(values) for values in there.values())
    make_room(table, device, nbytes)
    if device == "gpu":
        gpu = cuda.device()
        values = [np.ascontiguousarray(each) for each in there.values()]
        with gpu.use():
            kept = dict(zip(there, gpu.upload(values), strict=True))
    else:
        kept = {name: _copy(values) for name, values in there.items()}
    serves = frozenset((*POINTS, *wanted)) - left_out
    return add(Pin(table, device, tuple(there), len(arrays["x"]), nbytes, state, serves, kept))


def _nbytes(values: Any) -> int:
    mask = np.ma.getmaskarray(values).nbytes if np.ma.isMaskedArray(values) else 0
    return int(values.nbytes + mask)


def _copy(values: Any) -> Any:
    """Copy an array into memory of ours; what kernels get is read-only."""
    if np.ma.isMaskedArray(values):
        return np.ma.MaskedArray(_copy(np.ma.getdata(values)), np.ma.getmaskarray(values).copy())
    there = buffers.empty(values.shape, values.dtype, page_locked=not devices.gpu().problem)
    np.copyto(there, values)
    there.flags.writeable = False
    return there


def pin_elements(tables: Any, states: Any, places: Any, elements: Any) -> pa.Array:
    """Keep the meshes of a table of elements, with their R-tree and what they are as solids."""
    rows = zip(*(each.to_pylist() for each in (tables, states, places)), strict=True)
    found = []
    for (table, state, device), columns in zip(rows, each_table(elements), strict=True):
        if device != "cpu":
            message = f"spatialq_pin: elements are kept on the host, got device {device!r}"
            raise ValueError(message)
        given = set_of("spatialq_pin: table", columns)
        make_room(table, device, given.nbytes)
        kept = indexed(given)
        make_room(table, device, kept.nbytes)  # now with the index
        count, serves = len(kept.meshes), frozenset(ELEMENTS)
        found.append(add(Pin(table, device, ELEMENTS, count, kept.nbytes, state, serves, kept)))
    return rows_of(found)
