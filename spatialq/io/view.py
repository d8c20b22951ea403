"""Files as views of DuckDB: lazily read, with only the columns and the box that a query needs.

DuckDB scans a registered `pyarrow.dataset.Dataset` by calling `scanner(columns, filter)`. It
then relies on the filter: rows that do not pass must not come back. Of the dataset only
`schema` and `scanner` are used.
"""

import json
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds  # which imports pandas: whoever needs no view imports `filters`

from spatialq.functions.sql_text import identifier, literal
from spatialq.io import access
from spatialq.io.crs import require_same
from spatialq.io.files import warn_about
from spatialq.io.filters import box_of, check_bounds, check_columns, inside, unified_schema
from spatialq.io.source import ROW_GROUP, Box, Source

if TYPE_CHECKING:
    import duckdb

MAX_WAIT = 0.3
"""Seconds after which rows that passed a filter are no longer held back."""


class View(ds.Dataset):  # type: ignore[misc]
    """One table over one or more sources, to be registered with DuckDB.

    Parameters
    ----------
    reader : str
        The function that the user called, for messages.
    sources : sequence of Source
        At least one. Several must have the same CRS; a column that a source lacks is NULL in
        its rows, `point_id` runs on from source to source, and `file_name` tells them apart.
    bounds : sequence of float, optional
        xmin, ymin, xmax, ymax: only points inside or on the border.
    columns : sequence of str, optional
        Only these columns, in this order.

    Raises
    ------
    CrsError
        If the sources have different CRS.
    FileError
        If a column has types in two sources that do not go together.
    ValueError
        If `bounds` is no box or a column does not exist.
    """

    def __init__(
        self,
        reader: str,
        sources: Sequence[Source],
        *,
        bounds: Sequence[float] | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._reader = reader
        self.sources = tuple(sources)
        self.crs = require_same(reader, ((source.path, source.crs) for source in sources))
        self._bounds = check_bounds(reader, bounds)
        self._all = unified_schema(reader, self.sources)
        names = check_columns(reader, columns, self._all)
        self._shown = pa.schema([self._all.field(name) for name in names])
        self.connection: Callable[[], duckdb.DuckDBPyConnection | None] = _no_connection
        """Gives the connection that reads, and that Ctrl-C interrupts; weak, as it has the view."""

    @property
    def schema(self) -> pa.Schema:
        """The columns that DuckDB sees."""
        return self._shown

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 (the name that DuckDB uses)
        **_: object,
    ) -> "Scan":
        """Begin a scan; nothing is read before its first batch is asked for.

        Raises
        ------
        FileError
            If the connection must not open a file any more.
        """
        with access.asked_by(self._access):
            for source in self.sources:
                access.require(self._reader, source.path)
        names = self._shown.names if columns is None else list(columns)
        schema = pa.schema([self._all.field(name) for name in names])
        hint = _meet(box_of(filter, self._all), self._bounds)
        condition = _both(filter, inside(self._bounds))
        needed = [name for name in self._all.names if name in names or _mentions(condition, name)]
        batches = self._batches(needed, hint, condition)
        return Scan(schema, _interruptible(batches, schema, self.connection))

    def _access(self) -> access.Access:
        """Ask the connection, if the view is registered, which files it may open."""
        if self.connection is _no_connection:
            return access.Access()
        con = self.connection()
        return access.UNKNOWN if con is None else access.Access.of(con)

    def _batches(
        self, needed: Sequence[str], hint: Box | None, condition: pc.Expression | None
    ) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([self._all.field(name) for name in needed])
        first = 0
        for source in self.sources:
            present = [name for name in needed if name in source.schema.names]
            batches = source.batches(present or source.schema.names[:1], hint)
            fitted = (_fit(batch, schema, source, first) for batch in batches)
            yield from fitted if condition is None else _filtered(fitted, condition)
            first += source.rows


def _no_connection() -> None:
    """Stand for the connection of a view that is not registered."""


class Scan:
    """What DuckDB asks of a scanner: the schema and one stream of batches."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self.projected_schema = schema
        self._batches = batches

    def to_reader(self) -> pa.RecordBatchReader:
        """Give the stream."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._batches)


def _interruptible(
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    connection: "Callable[[], duckdb.DuckDBPyConnection | None]",
) -> Iterator[pa.RecordBatch]:
    """Cut the batches to the columns asked for; Ctrl-C interrupts the query, not the stream.

    A generator, as Ctrl-C may arrive while Python enters a function: one that is resumed is
    inside its `try` already.
    """
    try:
        for batch in batches:
            yield batch.select(schema.names)
    except KeyboardInterrupt:
        running = connection()
        if running is None:
            raise
        running.interrupt()
        yield pa.RecordBatch.from_pylist([], schema)


def _fit(batch: pa.RecordBatch, schema: pa.Schema, source: Source, first: int) -> pa.RecordBatch:
    """Give a source's batch the columns and types of the view."""
    arrays = []
    for field in schema:
        if field.name == "file_name" and "file_name" not in source.schema.names:
            array = pa.repeat(pa.scalar(str(source.path), field.type), batch.num_rows)
        elif field.name not in batch.schema.names:
            array = pa.nulls(batch.num_rows, field.type)
        else:
            array = batch.column(field.name)
            if field.name == "point_id" and first:
                array = pc.add(array, first)
            if array.type != field.type:
                array = array.cast(field.type)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _filtered(
    batches: Iterator[pa.RecordBatch], condition: pc.Expression
) -> Iterator[pa.RecordBatch]:
    """Keep the rows that pass, in batches of whole row groups again.

    Where that takes long, what is there comes early: DuckDB looks whether the query was
    interrupted only when it gets rows.
    """
    kept: list[pa.RecordBatch] = []
    n = 0
    given = monotonic()
    for batch in batches:
        kept.append(batch.filter(condition))
        n += kept[-1].num_rows
        whole = n - n % ROW_GROUP
        if not whole and n and monotonic() - given > MAX_WAIT:
            whole = n
        if whole:
            joined = pa.concat_batches(kept)
            yield joined.slice(0, whole)
            kept, n, given = [joined.slice(whole)], n - whole, monotonic()
    if n:
        yield pa.concat_batches(kept)


def layout_of(sources: Sequence[Source]) -> dict[str, Any]:
    """Give scale and offset as the comment of a table or view has them, if all have the same."""
    layouts = {getattr(source, "layout", None) for source in sources}
    layout = layouts.pop()
    if layouts or layout is None:
        return {}
    return {"scale": list(layout.scales), "offset": list(layout.offsets)}


def _mentions(condition: pc.Expression | None, name: str) -> bool:
    """Whether the condition may need the column; one too many costs time, one too few fails."""
    if condition is None:
        return False
    text = str(condition)
    return name in text and (not name.isidentifier() or bool(re.search(rf"\b{name}\b", text)))


def _both(first: pc.Expression | None, second: pc.Expression | None) -> pc.Expression | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second


def _meet(a: Box | None, b: Box | None) -> Box | None:
    if a is None or b is None:
        return b if a is None else a
    return tuple(map(max, a[:3], b[:3])) + tuple(map(min, a[3:], b[3:]))  # type: ignore[return-value]


def table_name(path: Path) -> str:
    """Derive a name that SQL needs no quotes for: letters, digits and underscores."""
    name = re.sub(r"\W+", "_", path.name.split(".")[0], flags=re.ASCII).strip("_").lower()
    return name if name and not name[0].isdigit() else f"t_{name}".rstrip("_")


def register(
    con: "duckdb.DuckDBPyConnection",
    reader: str,
    sources: Sequence[Source],
    *,
    name: str | None = None,
    bounds: Sequence[float] | None = None,
    columns: Sequence[str] | None = None,
) -> "duckdb.DuckDBPyRelation":
    """Register sources as one view; by default under the name of the file or its folder.

    An earlier view of that name is replaced. The connection keeps the view until it is closed.

    Raises
    ------
    CrsError, FileError, ValueError
        As `View`; also if a table has that name, as the view would hide it.
    """
    view = View(reader, sources, bounds=bounds, columns=columns)
    for source in sources:
        warn_about(reader, source)
    first = sources[0].path
    chosen = name or table_name(first if len(sources) == 1 else first.resolve().parent)
    with con.cursor() as cursor:  # keeps a pending result of the connection
        tables = cursor.execute("SELECT lower(table_name) FROM duckdb_tables()").fetchall()
    if (chosen.lower(),) in tables:
        message = f"{reader}: name: there is a table '{chosen}' already; choose another name"
        raise ValueError(message)
    view.connection = weakref.ref(con)  # weak, since the connection holds the view
    con.register(chosen, view)
    said = {"crs": sources[0].crs and json.loads(sources[0].crs), **layout_of(sources)}
    if any(said.values()):  # functions and outputs look for it there
        comment = literal(json.dumps({name: value for name, value in said.items() if value}))
        con.sql(f"COMMENT ON VIEW temp.main.{identifier(chosen)} IS {comment}")
    return con.view(chosen)
