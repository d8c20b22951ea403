"""The text of queries that call a function, with both transports."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spatialq.database import frames
from spatialq.database.pins import Lookup
from spatialq.database.transport.columns import given_to
from spatialq.database.transport.refusal import FIELD, NUMBER, require_rows, told
from spatialq.database.transport.request import Request, Transport
from spatialq.functions.catalogue import Function
from spatialq.functions.sql_text import identifier, literal, name_parts, parts_of
from spatialq.io.formats import MACROS, find_reader, means_file

POINT_ID = "point_id"
ASKED = '"spatialq request"'
"""A column of the rows of a table, NULL in all of them, and of a row more: there it is text."""


@dataclass(frozen=True)
class Table:
    """A table or file whose columns are looked at, in its rows and in a row more of NULL."""

    rows: str
    """What stands behind FROM."""
    absent: str
    """The columns that it must have, or may have, each as NULL."""
    is_right: str
    """Whether the columns are there and have types that fit."""
    fits: str
    """Whether a row can be used; an error if not."""

    def with_row(self, asked: str = f"'' AS {ASKED}") -> str:
        """Write its rows and one more: it says what is asked for, also of a table without rows."""
        # first, so that a column of the table with its name is the one that DuckDB renames
        rows = f"FROM (SELECT NULL::VARCHAR AS {ASKED}, * FROM {self.rows})"
        return f"({rows} UNION ALL BY NAME SELECT {self.absent}, {asked})"

    def within(self, inside: str) -> "Table":
        """Give the table without the rows that are not inside; all stay if columns are wrong.

        The condition stands below the row more, from where DuckDB takes it into the scan.
        """
        rows = f"(FROM {self.rows} UNION ALL BY NAME SELECT {self.absent} WHERE false)"
        return replace(self, rows=f"(FROM {rows} WHERE NOT {self.is_right} OR ({inside}))")

    def part(self, number: int, check: str = "NULL") -> str:
        """Write the number of the table in its rows; in the row more, what is checked besides."""
        return f"CASE WHEN {self.fits} THEN if({ASKED} IS NULL, {number}::UTINYINT, {check}) END"


@dataclass(frozen=True)
class Source:
    """Rows that a function gets."""

    columns: Mapping[str, str]
    """The function's name for a column, and the expression that gives it."""
    rows: str
    """What stands behind FROM."""
    part: int = 0
    """0 for the first table of the call, 1 for the second."""
    check: str = "NULL"
    """An expression that is NULL, or an error if the table cannot be used."""
    pin: Lookup | None = None
    """What looks for columns that are kept: then there are no rows."""
    stated: Lookup | None = None
    """What looks for values of parameters that the table states: a column `stated`, JSON."""
    frame: Lookup | None = None
    """What finds out the CRS of the coordinates: a column `frame`, JSON."""
    system: Lookup | None = None
    """What finds out the CRS of the geometries of a second table: a column `system`, JSON."""
    table: Table | None = None
    """What the rows are of, if its columns must be looked at."""

    @property
    def checked(self) -> str:
        """What stands behind FROM for the rows alone, or an error if they cannot be used."""
        if self.table is None:
            return self.rows
        part = self.table.part(0)
        return f"(FROM {self.table.with_row()} WHERE {part} IS NOT NULL)"

    def unless_pinned(self, pin: Lookup | None) -> "Source":
        """Give the source whose rows are left out if a pin is found."""
        if pin is None:
            return self
        if self.table is None:
            return replace(self, rows=pin.unless_found(self.rows), pin=pin)
        rows = pin.unless_found(f"(FROM {self.table.rows})")
        return replace(self, table=replace(self.table, rows=rows), pin=pin)

    def within(self, bounds: Sequence[float] | None) -> "Source":
        """Give the source whose rows are left out if x and y are outside of a box."""
        if bounds is None:
            return self
        assert self.table is not None
        xmin, ymin, xmax, ymax = (f"'{float(value)!r}'::DOUBLE" for value in bounds)
        x, y = self.columns["x"], self.columns["y"]
        inside = f"{x} BETWEEN {xmin} AND {xmax} AND {y} BETWEEN {ymin} AND {ymax}"
        return replace(self, table=self.table.within(inside))


def lookups_of(sources: Sequence[Source]) -> str:
    """Write the beginning of a query in which `request_of` and the rows of sources are."""
    parts = [lookup.parts for lookup in _lookups(sources)]
    return f"WITH {', '.join(parts)} " if parts else ""


def names_of(sources: Sequence[Source]) -> list[str]:
    """Give the names of the lookups, which must stand behind FROM where `request_of` is used."""
    return [lookup.name for lookup in _lookups(sources)]


def _lookups(sources: Sequence[Source]) -> list[Lookup]:
    lookups = (
        each
        for source in sources
        for each in (source.pin, source.stated, source.frame, source.system)
    )
    return [each for each in lookups if each is not None]


def request_of(request: Request, sources: Sequence[Source]) -> str:
    """Write the expression for the request, with what lookups find: pins, stated values, CRS."""
    found = {}
    for frame in (each.frame for each in sources if each.frame is not None):
        found["frame"] = f"{frame.name}.frame"
    for system in (each.system for each in sources if each.system is not None):
        found["other"] = f"{system.name}.system"
    stated = [f"{each.stated.name}.stated" for each in sources if each.stated is not None]
    if stated:
        found["stated"] = f"to_json([{', '.join(stated)}])::VARCHAR"
    if any(each.pin for each in sources):
        pins = ("NULL" if each.pin is None else f"{each.pin.name}.pin" for each in sources)
        found["pins"] = f"to_json([{', '.join(pins)}]::BIGINT[])::VARCHAR"
    return request.with_found(found)


def table_of(
    function: Function,
    table: str,
    columns: Sequence[str],
    request: Request,
    attributes: Mapping[str, str] = {},
    more: Sequence[str] = (),
    *,
    argument: str = "points",
) -> Source:
    """Say how a function gets the rows of a table or file, its `argument`.

    A column that the table lacks is NULL. Without it the name would mean a column of the function's
    own result, which is beside it in the query.

    Parameters
    ----------
    function : Function
    table : str
    columns : sequence of str
        Those that must be there: `point_id`, and columns of numbers.
    request : Request
    attributes : mapping of str to str
        Those that may be absent, and the expressions that give them.
    more : sequence of str
        Those that must be there for samples to have them.
    argument : str
        What errors call it.
    """
    _require_name(function, table)
    require_rows(f"{function.name}: {argument} must be the name of a table or a file, got ", table)
    names = map(identifier, (*columns, *attributes, *more))
    absent = ", ".join(f"NULL AS {name}" for name in dict.fromkeys(names))
    numbers = [name for name in columns if name != POINT_ID]
    needed = {
        name: f"{function.name}: {table!r} must have a column {name} of numbers" for name in numbers
    }
    whole = ""
    if POINT_ID in columns:
        needed[POINT_ID] = (
            f"{function.name}: {table!r} must have a column {POINT_ID} of numbers; "
            f"{_numbered(table)} makes a view that has one"
        )
        whole = (
            f" AND (typeof({POINT_ID}) IN ('BIGINT', 'INTEGER', 'UINTEGER') OR {POINT_ID} IS NULL "
            f"OR (typeof({POINT_ID}) LIKE '%INT%' AND TRY_CAST({POINT_ID} AS BIGINT) IS NOT NULL))"
        )
    # One struct, of which only the type is looked at, and a short pattern: DuckDB takes a while to
    # plan each expression, and four times as long for a pattern that has the types four times.
    fields = ", ".join(f"'{FIELD} {k}': {identifier(name)}" for k, name in enumerate(needed))
    struct = literal(rf'STRUCT\((?:"[^"]*" (?:{NUMBER})[,)] ?)*')
    is_right = f"regexp_full_match(typeof({{{fields}}}), {struct})"
    absence = "'\"NULL\"'"
    there = "".join(f" AND typeof({identifier(name)}) <> {absence}" for name in more)
    wrong = f"{function.name}: attributes must be columns of {table!r}, got "
    known = told(
        [*needed.values(), *(f"{wrong}{name!r}" for name in more)], list(needed),
        caller=function.name, place=f"{function.name}: {table!r}",
    )  # fmt: skip
    every = [*needed, *more]
    fields = ", ".join(f"'{FIELD} {k}': {identifier(name)}" for k, name in enumerate(every))
    values = ", ".join(f"{identifier(name)}::VARCHAR" for name in needed)
    checked = f"spatialq_checked({ASKED}, {known}, typeof({{{fields}}}), [{values}])"
    expressions = {
        name: f"TRY_CAST({identifier(name)} AS {'BIGINT' if name == POINT_ID else 'DOUBLE'})"
        for name in columns
    }
    return Source(
        {**expressions, **attributes},
        f"(FROM {_named(table)} UNION ALL BY NAME SELECT {absent} WHERE false)",
        frame=frames.lookup(table, is_given=request.options.get("crs") is not None),
        table=Table(_named(table), absent, is_right, f"({is_right}{whole}{there}) OR {checked}"),
    )


def _require_name(function: Function, table: str) -> None:
    """Reject what names neither a table nor a file."""
    try:
        if not means_file(table):
            name_parts(table)
    except ValueError as error:
        message = f"{function.name}: {error}"
        raise ValueError(message) from None


def _named(table: str) -> str:
    """Write what reads a table or file; DuckDB takes 'a.laz' for the table laz of the schema a."""
    reader = find_reader(table)
    if reader is not None and means_file(table):
        return f"{MACROS[reader.kind]}({literal(table)})"
    return f"query_table({literal(table)})"


def _numbered(table: str) -> str:
    """Write what numbers the rows of a table from 0, in their order; a view keeps the CRS."""
    rows = literal(table) if means_file(table) else table
    own = re.sub(r"\W+", "_", parts_of(table)[-1]).strip("_")
    columns = "row_number() OVER () - 1 AS point_id, *"
    return f"CREATE VIEW {own}_numbered AS SELECT {columns} FROM {rows}"


def call_of(
    function: Function,
    transport: Transport,
    request: Request,
    sources: Sequence[Source],
    lists: str,
) -> str:
    """Write the query that gives the rows of a result.

    Parameters
    ----------
    function : Function
    transport : 'native' or 'lists'
    request : Request
    sources : sequence of Source
        The rows that the function gets.
    lists : str
        The query where rows go as lists.
    """
    if transport == "lists":
        return lists
    types = given_to(function)
    asked = f"{request_of(request, sources)} AS {ASKED}"
    if names_of(sources):
        asked += f" FROM {', '.join(names_of(sources))}"
    checks = [each.check for each in sources if each.check != "NULL"]
    check = f"coalesce({', '.join(checks)})::UTINYINT" if checks else "NULL"
    branches = []
    if not sources or sources[0].table is None:
        # one row more, without a part: it says what is asked for, also where there are no others
        empty = ", ".join(f"NULL::{kind} AS {name}" for name, kind in types.items())
        branches.append(
            f"SELECT {ASKED} AS request, {check}::UTINYINT AS part, {empty} FROM (SELECT {asked})"
        )
    for each in sources:
        values = ", ".join(
            f"{each.columns.get(name, f'NULL::{kind}')} AS {name}" for name, kind in types.items()
        )
        if each.table is None:
            branches.append(f"SELECT NULL, {each.part}::UTINYINT, {values} FROM {each.rows}")
        elif branches:
            part, rows = each.table.part(each.part), each.table.with_row()
            branches.append(f"SELECT NULL, {part}, {values} FROM {rows}")
        else:
            part, rows = each.table.part(each.part, check), each.table.with_row(asked)
            branches.append(f"SELECT {ASKED} AS request, {part} AS part, {values} FROM {rows}")
    # The outer join makes the rows wait for their input: it is not moved, as inner joins are, and
    # neither left out, since for all that the optimiser knows its condition may be false.
    return (
        f"SELECT r.* EXCLUDE (ready) FROM spatialq_{function.name}_rows({request.token}) AS r "
        f"LEFT JOIN ({lookups_of(sources)}SELECT spatialq_{function.name}_collect(request, part, "
        f"{', '.join(types)}) AS n FROM ({' UNION ALL '.join(branches)})) AS q ON q.n >= 0 "
        "WHERE r.ready"
    )


def with_columns(query: str, rows: str, more: Sequence[str]) -> str:
    """Write the query whose samples have more columns of the points, which their ids name.

    Parameters
    ----------
    query : str
        Of nodes with `samples`.
    rows : str
        What stands behind FROM for the points, with `point_id`.
    more : sequence of str
        Names of columns.
    """
    if not more:
        return query
    fields = ", ".join(f"{name} := p.{name}" for name in map(identifier, more))
    names = ", ".join(map(identifier, more))
    return (
        "WITH spatialq_nodes AS MATERIALIZED "
        f"(SELECT *, row_number() OVER () AS spatialq_row FROM ({query})), "
        "spatialq_samples AS (SELECT spatialq_row, unnest(samples) AS spatialq_sample, "
        "generate_subscripts(samples, 1) AS spatialq_at FROM spatialq_nodes), "
        "spatialq_lists AS (SELECT s.spatialq_row, "
        f"list(struct_insert(s.spatialq_sample, {fields}) ORDER BY s.spatialq_at) AS spatialq_list "
        f"FROM spatialq_samples AS s LEFT JOIN (SELECT point_id, {names} FROM {rows}) AS p "
        "ON p.point_id = s.spatialq_sample.point_id GROUP BY s.spatialq_row) "
        "SELECT n.* EXCLUDE (spatialq_row) REPLACE (l.spatialq_list AS samples) "
        "FROM spatialq_nodes AS n LEFT JOIN spatialq_lists AS l USING (spatialq_row) "
        "ORDER BY n.spatialq_row"
    )
