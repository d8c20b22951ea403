"""The SQL box: read-only statements under limits, and what their rows select in the scene."""

import math
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import SpatialqError
from spatialq.functions.sql_text import identifier
from spatialq.runtime.memory import resident

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from numpy.typing import NDArray

MASK, BYTES = "mask", "bytes"
RAMP = "viridis"
BATCH = 1 << 17
STEPS = 254
"""Bytes of values: 1 is the least, 255 the greatest; 0 stands for no value and for no row."""
MOST_CATEGORIES = 32
"""Distinct whole numbers that are categories; more are a range."""
MOST_ELEMENTS = 1_000_000
MOST_CELLS = 20
"""Values of a list that are shown in a cell."""
MOST_TEXT = 10_000
WATCH = 0.05
"""Seconds between two looks at the time and the memory of a query."""
DENSE = 8
"""Ids up to so many times the number of points have an array by id; above, they are searched."""
COLOURS = (
    (31, 119, 180), (255, 127, 14), (44, 160, 44), (214, 39, 40), (148, 103, 189), (140, 86, 75),
    (227, 119, 194), (127, 127, 127), (188, 189, 34), (23, 190, 207),
)  # fmt: skip
"""Of categories, in turn: those of Tableau 10."""
FALSE, TRUE = (120, 120, 120), (230, 110, 40)
POINT, ELEMENT, PLANE = "point_id", "global_id", "plane_id"
ELEMENTS = (ELEMENT, "a_global_id", "b_global_id")
WHOLE_POINTS, WHOLE_ELEMENT = {*"xyz"}, "mesh"
SELECTING = (POINT, *ELEMENTS, PLANE)


class QueryRefusedError(SpatialqError, ValueError):
    """A query that the box does not run, or that went beyond its limits."""


@dataclass(frozen=True)
class Limits:
    """What a query may take.

    Parameters
    ----------
    seconds : float
    memory : int
        Bytes.
    rows : int
        Rows of the answer.
    """

    seconds: float = 10.0
    memory: int = 1 << 30
    rows: int = 1000

    def said(self) -> dict[str, Any]:
        """Say it as the page takes it."""
        return {"seconds": self.seconds, "memory": f"{self.memory >> 20} MiB", "rows": self.rows}


@dataclass
class Selection:
    """A value for each point of a cloud by its id.

    Parameters
    ----------
    values : array
        By id; where `ids` are there, in their order.
    ids : int64[k], optional
        Ascending.
    """

    values: "NDArray[Any]"
    ids: "NDArray[np.int64] | None" = None

    def of(self, wanted: "NDArray[np.int64]", missing: Any) -> "NDArray[Any]":
        """Give the values of some points."""
        if self.ids is None:
            is_there = wanted < len(self.values)
            found = np.full(len(wanted), missing, self.values.dtype)
            found[is_there] = self.values[wanted[is_there]]
            return found
        if not len(self.ids):
            return np.full(len(wanted), missing, self.values.dtype)
        at = np.minimum(np.searchsorted(self.ids, wanted), len(self.ids) - 1)
        return np.where(self.ids[at] == wanted, self.values[at], missing).astype(self.values.dtype)


class _Gathered:
    """Collects a value for each point, batch by batch; of several rows of a point the last counts.

    Parameters
    ----------
    points, greatest : int
        Number of points of the cloud, and their greatest id.
    dtype : dtype
    missing : value
        Of points without a row.
    """

    def __init__(self, points: int, greatest: int, dtype: Any, missing: Any) -> None:
        is_dense = greatest < DENSE * points
        self._dense = np.full(greatest + 1, missing, dtype) if is_dense else None
        self._ids: list[NDArray[np.int64]] = []
        self._values: list[NDArray[Any]] = []
        self._greatest, self._dtype = greatest, dtype

    def add(self, ids: "NDArray[np.int64]", values: Any) -> None:
        """Take some rows."""
        is_there = (ids >= 0) & (ids <= self._greatest)
        if not is_there.all():
            ids = ids[is_there]
            values = values[is_there] if np.ndim(values) else values
        if self._dense is not None:
            self._dense[ids] = values
            return
        self._ids.append(ids)
        self._values.append(np.broadcast_to(values, ids.shape).astype(self._dtype))

    def selection(self) -> Selection:
        """Give all of it."""
        if self._dense is not None:
            return Selection(self._dense)
        ids = np.concatenate([np.empty(0, np.int64), *self._ids])
        values = np.concatenate([np.empty(0, self._dtype), *self._values])
        last, where = np.unique(ids[::-1], return_index=True)
        return Selection(values[::-1][where], last)


@dataclass
class Result:
    """The answer to a query, and what it selects.

    Parameters
    ----------
    answer : dict
        As the page gets it.
    points : mapping of int to (str, Selection)
        By cloud: 'mask' or 'bytes', and the values.
    """

    answer: dict[str, Any]
    points: dict[int, tuple[str, Selection]] = field(default_factory=dict)

    def bytes_of(self, cloud: int, ids: "NDArray[np.int64]") -> bytes | None:
        """Give the bits or bytes of some points in their order; None for other clouds."""
        if cloud not in self.points:
            return None
        kind, selection = self.points[cloud]
        values = selection.of(ids, 0)
        return (
            np.packbits(values, bitorder="little").tobytes() if kind == MASK else values.tobytes()
        )


class Pool:
    """Connections for queries: as many as may run at once.

    Parameters
    ----------
    connections : sequence of duckdb.DuckDBPyConnection
        Whose settings are locked.
    limits : Limits
    """

    def __init__(self, connections: "Sequence[duckdb.DuckDBPyConnection]", limits: Limits) -> None:
        self.limits, self.size = limits, len(connections)
        self._free: SimpleQueue[duckdb.DuckDBPyConnection] = SimpleQueue()
        for each in connections:
            self._free.put(each)

    @contextmanager
    def connection(self) -> "Iterator[duckdb.DuckDBPyConnection]":
        """Lend a connection within the block, which is interrupted beyond the limits.

        Raises
        ------
        QueryRefusedError
            If the block took too long or too much memory, or no connection is free in time.
        """
        import duckdb

        limits = self.limits
        try:
            con = self._free.get(timeout=limits.seconds)
        except Empty:
            message = "view: other queries are running; try again when they have ended"
            raise QueryRefusedError(message) from None
        done, reasons = threading.Event(), []
        begin, before = time.monotonic(), resident().bytes

        def watch() -> None:
            while not done.wait(WATCH):
                if time.monotonic() - begin > limits.seconds:
                    reasons.append(f"took longer than {limits.seconds:g} s")
                elif resident().bytes - before > 2 * limits.memory:
                    reasons.append(f"took more than {limits.memory >> 20} MiB of memory")
                if reasons:
                    con.interrupt()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield con
        except (Exception, KeyboardInterrupt) as error:  # kernels end as after Ctrl-C
            if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
                reasons.append(f"took more than {limits.memory >> 20} MiB of memory")
            elif isinstance(error, duckdb.InterruptException | KeyboardInterrupt):
                reasons.append("was interrupted")
            if not reasons:
                raise
            message = f"view: the query {reasons[0]}; ask for fewer rows, or a simpler question"
            raise QueryRefusedError(message) from None
        finally:
            done.set()
            watcher.join()
            self._free.put(con)


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
        kind = statements[0].type.name
        message = f"view: the box takes a statement that reads, such as SELECT or FROM, got {kind}"
        raise QueryRefusedError(message)
    if statements[0].type == kinds.EXPLAIN and re.search(r"\banalyze\b", text, re.IGNORECASE):
        # what is analysed also runs, and may be any statement
        message = "view: the box takes EXPLAIN, but not EXPLAIN ANALYZE"
        raise QueryRefusedError(message)
    return text


@dataclass(frozen=True)
class Target:
    """A cloud that rows may select.

    Parameters
    ----------
    number : int
    tables : frozenset of str
        Names of its table, in lower case.
    points, greatest : int
        How many there are, and the greatest point_id.
    """

    number: int
    tables: frozenset[str]
    points: int
    greatest: int


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
        values = None if coloured is None else _Values(reader.schema.field(coloured).type)
        gathered = None
        if points is not None and target is not None:
            kind, missing = (np.uint8, 0) if values is None else (np.float32, np.nan)
            gathered = _Gathered(target.points, target.greatest, kind, missing)
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
                gathered.add(found[is_there], numbers if values is None else numbers[is_there])
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
            selection, way = gathered.selection(), MASK
            if values is not None:
                way, selection.values = BYTES, values.scaled(selection.values)
            result.points[target.number] = way, selection
            select["points"][str(target.number)] = {"kind": way, **about}
        if elements:
            of_ids = None
            if values is not None:
                of_ids = values.scaled(np.array(list(ids.values()), np.float32)).tolist()
            select["elements"] = {"global_ids": list(ids), "values": of_ids, "legend": legend}
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
    gathered = _Gathered(target.points, target.greatest, np.float32, np.nan)
    query = f"SELECT point_id::BIGINT AS point_id, {value} AS value FROM {table}"
    for batch in con.sql(query, params=parameters).to_arrow_reader(BATCH):
        gathered.add(batch["point_id"].to_numpy(), batch["value"].to_numpy(zero_copy_only=False))
    return gathered.selection()


def _target(
    con: "duckdb.DuckDBPyConnection", text: str, targets: Sequence[Target]
) -> Target | None:
    """Choose the cloud whose points a query selects: that of its tables, or the first."""
    if len(targets) < 2:
        return targets[0] if targets else None
    named = {name.lower() for name in con.get_table_names(text)}
    return next((each for each in targets if each.tables & named), targets[0])


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


def _integers(values: "pa.Array", name: str) -> "tuple[NDArray[np.bool_], NDArray[np.int64]]":
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


class _Values:
    """The numbers of a column that colours, and the legend: a range or categories.

    Parameters
    ----------
    kind : pyarrow.DataType
    """

    def __init__(self, kind: "pa.DataType") -> None:
        import pyarrow.types as types

        self._is_boolean, self._is_whole = types.is_boolean(kind), types.is_integer(kind)
        self._is_number = self._is_whole or types.is_floating(kind) or types.is_decimal(kind)
        self._known: dict[Any, int] = {}
        self._low, self._high = math.inf, -math.inf
        self._distinct: set[float] | None = set() if self._is_whole else None

    def numbers(self, values: "pa.Array") -> "NDArray[np.float32]":
        """Give numbers of a batch: texts have those of their categories; NaN for NULL."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._is_boolean or self._is_number:
            kind = values.cast(pa.uint8()) if self._is_boolean else values
            found = kind.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            finite = found[np.isfinite(found)]
            if finite.size:
                self._low = min(self._low, float(finite.min()))
                self._high = max(self._high, float(finite.max()))
            if self._distinct is not None:
                self._distinct |= set(
                    pc.unique(values.drop_null()).to_pylist()[: MOST_CATEGORIES + 1]
                )
                if len(self._distinct) > MOST_CATEGORIES:
                    self._distinct = None
            single: NDArray[np.float32] = found.astype(np.float32)
            return single
        try:
            coded = values.cast(pa.string()).dictionary_encode()
        except pa.ArrowException:
            message = f"view: colour must be a column of numbers or texts, got {values.type}"
            raise QueryRefusedError(message) from None
        codes = [
            self._known.setdefault(each, min(len(self._known), STEPS))
            for each in coded.dictionary.to_pylist()
        ]
        at = coded.indices.cast(pa.float32()).to_numpy(zero_copy_only=False)
        found = np.full(len(at), np.nan, np.float32)
        is_there = np.isfinite(at)
        found[is_there] = np.array(codes, np.float32)[at[is_there].astype(np.int64)]
        return found

    @property
    def _categories(self) -> list[Any] | None:
        """The values that are categories, in their order; None of a range."""
        if self._is_boolean:
            return [False, True]
        if self._is_number:
            return None if self._distinct is None else sorted(self._distinct)
        return list(self._known)[: STEPS + 1]

    def legend(self) -> Any:
        """Say what bytes mean: a range with its ramp, or categories in the order of the bytes."""
        categories = self._categories
        if categories is None:
            is_known = self._low <= self._high
            ends = (self._low, self._high) if is_known else (None, None)
            return {"min": ends[0], "max": ends[1], "ramp": RAMP}
        colours = (FALSE, TRUE) if self._is_boolean else COLOURS
        return [
            {"value": value, "colour": list(colours[k % len(colours)]), "label": str(value)}
            for k, value in enumerate(categories)
        ]

    def scaled(self, numbers: "NDArray[np.float32]") -> "NDArray[np.uint8]":
        """Give a byte for each number: 0 where there is none, else 1 to 255."""
        is_there = np.isfinite(numbers)
        found = np.zeros(len(numbers), np.uint8)
        categories = self._categories
        if categories is None:
            extent = (self._high - self._low) or 1.0
            share = (numbers[is_there].astype(np.float64) - self._low) / extent
            found[is_there] = 1 + np.rint(STEPS * np.clip(share, 0, 1)).astype(np.uint8)
        elif self._is_whole:
            known = np.array(categories, np.float32)
            found[is_there] = 1 + np.searchsorted(known, numbers[is_there])
        else:
            found[is_there] = 1 + numbers[is_there].astype(np.uint8)
        return found


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
