"""A query: one statement that reads, its rows, and what they select in the scene."""

import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.functions.sql_text import identifier
from spatialq.runtime.arrays import Bools, Ints
from spatialq.serve.limits import Limits, QueryRefusedError
from spatialq.serve.selection import BYTES, MASK, NUMBERS, Gathered, Selection, Values

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

BATCH = 1 << 17
MOST_ELEMENTS = 1_000_000
MOST_CELLS = 20
"""Values of a list that are shown in a cell."""
MOST_TEXT = 10_000
MOST_BYTES = 1 << 28
"""Bytes of an answer."""
POINT, ELEMENT, PLANE = "point_id", "global_id", "plane_id"
ELEMENTS = (ELEMENT, "a_global_id", "b_global_id")
WHOLE_POINTS, WHOLE_ELEMENT = {*"xyz"}, "mesh"
SELECTING = (POINT, *ELEMENTS, PLANE)


@dataclass
class Result:
    """The answer to a query, and what it selects.

    Parameters
    ----------
    answer : dict
        As the page gets it.
    points : mapping of int to Selection
        By cloud.
    """

    answer: dict[str, Any]
    points: dict[int, Selection] = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """A cloud that rows may select.

    Parameters
    ----------
    number : int
    table : str
        In lower case.
    points, greatest : int
        How many there are, and the greatest point_id.
    """

    number: int
    table: str
    points: int
    greatest: int


def one_select(con: "duckdb.DuckDBPyConnection", text: str) -> str:
    """Make sure that a text is one statement that only reads.

    Raises
    ------
    QueryRefusedError
        If it is not.
    """
    import duckdb

    kinds = duckdb.StatementType
    statements = con.extract_statements(text)
    if len(statements) != 1:
        message = f"view: the box takes one statement, got {len(statements)}"
        raise QueryRefusedError(message)
    if statements[0].type not in (kinds.SELECT, kinds.EXPLAIN):
        kind = statements[0].type.name.replace("LOAD", "INSTALL or LOAD")  # DuckDB has one kind
        message = f"view: the box takes a statement that reads, such as SELECT or FROM, got {kind}"
        raise QueryRefusedError(message)
    if statements[0].type == kinds.EXPLAIN and re.search(r"\banalyze\b", text, re.IGNORECASE):
        # what is analysed also runs, and may be any statement
        message = "view: the box takes EXPLAIN, but not EXPLAIN ANALYZE"
        raise QueryRefusedError(message)
    return text


def run(
    con: "duckdb.DuckDBPyConnection",
    key: str,
    text: str,
    targets: Sequence[Target],
    limits: Limits,
    *,
    parameters: Any = None,
    colour: str | None = None,
) -> Result:
    """Run a query, and keep what it selects.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    key : str
        Of the result.
    text : str
        One statement that reads.
    targets : sequence of Target
    limits : Limits
    parameters : list or dict, optional
    colour : str, optional
        The column whose values colour what is selected; by default the first boolean or number
        beside the ids.

    Raises
    ------
    QueryRefusedError, duckdb.Error, SpatialqError
    """
    began = time.perf_counter()
    one_select(con, text)
    target = _target(con, text, targets)
    relation = con.sql(text, params=parameters)
    # an open result would refuse the next query of the connection
    with relation.to_arrow_reader(BATCH) as reader:
        names = reader.schema.names
        # of columns with one name, as of a join, the first counts
        places = {name: names.index(name) for name in names}
        columns = [
            {"name": name, "type": str(kind)}
            for name, kind in zip(relation.columns, relation.types, strict=True)
        ]
        points = places.get(POINT) if target is not None else None
        elements = [name for name in ELEMENTS if name in names]
        is_selecting = points is not None or elements or PLANE in names
        chosen = _coloured(reader.schema, colour) if is_selecting else None
        coloured = None if chosen is None else places[chosen]
        values = None if coloured is None else Values(reader.schema.field(coloured).type)
        gathered = None
        if points is not None and target is not None:
            kind, missing = (np.uint8, 0) if values is None else (np.float32, np.nan)
            gathered = Gathered(target.points, target.greatest, kind, missing)
        ids: dict[str | None, Any] = {}
        planes: dict[int, None] = {}
        rows: list[list[Any]] = []
        count, is_whole = 0, True
        for batch in reader:
            if len(rows) < limits.rows:
                some = batch.slice(0, limits.rows - len(rows))
                cells = [map(cell, some[k].to_pylist()) for k in range(len(names))]
                rows += map(list, zip(*cells, strict=True))
            count += batch.num_rows
            numbers: Any = 1 if values is None else values.numbers(batch[coloured])
            if gathered is not None:
                is_there, found = _integers(batch[points], POINT)
                of_points = numbers
                if not is_there.all():
                    found = found[is_there]
                    of_points = numbers if values is None else numbers[is_there]
                gathered.add(found, of_points)
            for name in elements:
                if len(ids) < MOST_ELEMENTS:
                    each = numbers.tolist() if values is not None else [None] * batch.num_rows
                    ids.update(zip(_texts(batch[places[name]], name), each, strict=True))
            if PLANE in names:
                is_there, found = _integers(batch[places[PLANE]], PLANE)
                planes.update(dict.fromkeys(found[is_there].tolist()))
            if not is_selecting and count > limits.rows:
                is_whole = False
                break
    ids.pop(None, None)
    result = Result({})
    about = {"count": count, "column": chosen}
    legend: Any = None
    if values is not None:
        legend = values.legend()
        about |= {"legend": legend}
    select: dict[str, Any] | None = None
    if is_selecting:
        select = {"points": {}, "elements": None, "planes": None}
        if gathered is not None and target is not None:
            collected, by_id = gathered.collected()
            if values is None:
                selection = Selection(MASK, np.packbits(collected, bitorder="little"), by_id)
            else:
                selection = Selection(BYTES, values.scaled(collected), by_id)
            result.points[target.number] = selection
            select["points"][str(target.number)] = {"kind": selection.kind, **about}
        if elements:
            of_ids = None
            if values is not None and not values.is_empty:  # else they are only selected
                of_ids = values.scaled(np.array(list(ids.values()), np.float32)).tolist()
            of_elements = {"values": of_ids, "legend": None if of_ids is None else legend}
            select["elements"] = {"global_ids": list(ids), **of_elements}
        if PLANE in names:
            select["planes"] = list(planes)
    result.answer = {
        "id": key,
        "columns": columns,
        "rows": rows,
        "count": count if is_whole else None,
        "truncated": count > len(rows),
        "seconds": round(time.perf_counter() - began, 4),
        "select": select,
    }
    return result


def arrow(con: "duckdb.DuckDBPyConnection", text: str, *, parameters: Any = None) -> "pa.Buffer":
    """Give all rows of a query as a stream of Arrow.

    Raises
    ------
    QueryRefusedError, duckdb.Error
    """
    import pyarrow as pa

    one_select(con, text)
    reader = con.sql(text, params=parameters).to_arrow_reader()
    sink = pa.BufferOutputStream()
    with reader, pa.ipc.new_stream(sink, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            require_short(sink.tell())
    return sink.getvalue()


def require_short(size: int) -> None:
    """Make sure that an answer of so many bytes can be given.

    Raises
    ------
    QueryRefusedError
        If it is too long.
    """
    if size > MOST_BYTES:
        message = f"view: an answer may have {MOST_BYTES >> 20} MiB; ask for fewer rows"
        raise QueryRefusedError(message)


def column(
    con: "duckdb.DuckDBPyConnection", table: str, name: str, target: Target, texts: Sequence[str]
) -> Selection:
    """Give a column of a cloud as float32 by point_id, NaN for NULL.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    table : str
        As SQL.
    name : str
    target : Target
    texts : sequence of str
        Values of a column of text; each has its position as its number.
    """
    value = f"TRY_CAST({identifier(name)} AS FLOAT)"
    parameters = None
    if texts:
        value = f"(list_position(?, {identifier(name)}) - 1)::FLOAT"
        parameters = [list(texts)]
    gathered = Gathered(target.points, target.greatest, np.float32, np.nan)
    query = f"SELECT point_id::BIGINT AS point_id, {value} AS value FROM {table}"
    for batch in con.sql(query, params=parameters).to_arrow_reader(BATCH):
        gathered.add(batch["point_id"].to_numpy(), batch["value"].to_numpy(zero_copy_only=False))
    return Selection(NUMBERS, *gathered.collected())


def _target(
    con: "duckdb.DuckDBPyConnection", text: str, targets: Sequence[Target]
) -> Target | None:
    """Choose the cloud whose points a query selects: that of its tables, or the first."""
    if len(targets) < 2:
        return targets[0] if targets else None
    named = {name.lower() for name in con.get_table_names(text)}
    return next((each for each in targets if each.table in named), targets[0])


def _coloured(schema: "pa.Schema", wanted: str | None) -> str | None:
    """Choose the column that colours: the one wanted, or the first of numbers beside the ids."""
    import pyarrow.types as types

    if wanted is not None:
        if wanted not in schema.names:
            message = f"view: colour must be a column of the result, got {wanted!r}"
            raise QueryRefusedError(message)
        return wanted
    if set(schema.names) >= WHOLE_POINTS or WHOLE_ELEMENT in schema.names:
        return None  # rows as they are: the question is which
    for each in schema:
        kind = each.type
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        if each.name not in SELECTING and (is_number or types.is_boolean(kind)):
            return str(each.name)
    return None


def _texts(values: "pa.Array", name: str) -> list[str | None]:
    """Give values as texts."""
    import pyarrow as pa

    try:
        found: list[str | None] = values.cast(pa.string()).to_pylist()
    except pa.ArrowException:
        message = f"view: {name} of the result must be text, got {values.type}"
        raise QueryRefusedError(message) from None
    return found


def _integers(values: "pa.Array", name: str) -> tuple[Bools, Ints]:
    """Say which values are there, and give them as whole numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        whole = values.cast(pa.int64())
    except pa.ArrowException as error:
        message = f"view: {name} of the result must be whole numbers, got {values.type}: {error}"
        raise QueryRefusedError(message) from None
    is_there = pc.is_valid(whole).to_numpy(zero_copy_only=False)
    return is_there, whole.fill_null(0).to_numpy()


def cell(value: Any) -> Any:
    """Give a value as JSON has it; long lists are only counted."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return value if len(value) <= MOST_TEXT else f"{value[:MOST_TEXT]}…"
    if isinstance(value, Mapping):
        return {str(name): cell(each) for name, each in value.items()}
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, list | tuple):
        if len(value) > MOST_CELLS:
            return f"{len(value)} values"
        return [cell(each) for each in value]
    return str(value)


def to_json(value: Any) -> bytes:
    """Write an answer; a lone surrogate of a broken file is no UTF-8."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace")


def sentence(error: BaseException) -> str:
    """Give an error of DuckDB in its first lines, without where it was raised."""
    return " ".join(str(error).split("\n\n")[0].split()) or type(error).__name__
