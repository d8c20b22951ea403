"""From which tables and files the coordinates of a query come, as its text tells."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spatialq.data.frame import Frame
from spatialq.database.syntax import (
    Node,
    arguments,
    called,
    is_null,
    last,
    name_of,
    names_of,
    operands,
    parse,
    result_name,
)
from spatialq.errors import CrsError, SpatialqError
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import ElementsInput
from spatialq.functions.sql_text import parts_of
from spatialq.io import crs as crs_text
from spatialq.io.formats import READ_BY_DUCKDB, find_sources, means_file, means_files, open_source
from spatialq.io.parquet_crs import systems_of_parquet
from spatialq.io.source import Layout

AXES = ("x", "y", "z")
PARQUET = ("read_parquet", "parquet_scan")
READERS = ("read_las", "read_points", "read_grid", *PARQUET)
"""Functions whose first argument is a file with coordinates."""
KEEPS_UNIT = frozenset({
    "+", "-", "abs", "any_value", "arg_max", "arg_min", "avg", "ceil", "coalesce", "first", "floor",
    "greatest", "last", "least", "max", "mean", "median", "min", "mode", "quantile_cont",
    "quantile_disc", "round", "trunc",
})  # fmt: skip
"""Functions whose result has the unit of their arguments."""


@dataclass(frozen=True)
class Origin:
    """What a column is made of."""

    subject: str
    """A table or a file."""
    crs: str | None = None
    is_computed: bool = False
    """Whether it is made of coordinates so that nobody knows its unit, such as `z * 0.3048`."""
    is_height: bool = False
    """Whether it has the unit of the heights of the CRS."""


@dataclass(frozen=True)
class Entry:
    """A table or view of the database."""

    path: tuple[str, str, str]
    """Database, schema and name."""
    comment: str | None
    sql: str | None = None
    """Of a view."""

    @property
    def crs(self) -> str | None:
        """The CRS that the comment states."""
        return stated_crs(self.comment)


@dataclass(frozen=True)
class Scope:
    """The names that a query gives itself where it stands."""

    queries: Mapping[str, "tuple[Node, Scope]"] = field(default_factory=dict)

    def within(self, node: Node) -> "Scope":
        """Give the scope within a query, which may define names of its own."""
        scope = self
        for each in node.get("cte_map", {}).get("map", ()):
            name, query = each["key"].casefold(), each["value"]["query_node"]
            scope = Scope({**scope.queries, name: (query, scope)})
        return scope


def stated(comment: str | None) -> dict[str, Any]:
    """Read the comment of a table, a JSON object; another text is its member `comment`."""
    try:
        said = json.loads(comment or "{}")
    except (ValueError, RecursionError):  # not JSON, or nested too deeply
        said = None
    return said if isinstance(said, dict) else {"comment": comment}


def stated_crs(comment: str | None) -> str | None:
    """Read the CRS in the comment of a table, as PROJJSON or a code; None where there is none."""
    crs = stated(comment).get("crs")
    return crs if crs is None or isinstance(crs, str) else json.dumps(crs)


def stated_layout(comment: str | None) -> Layout | None:
    """Read scale and offset of coordinates in the comment of a table; None where there is none."""
    try:
        scales, offsets = (stated(comment)[name] for name in ("scale", "offset"))
        (sx, sy, sz), (ox, oy, oz) = (map(float, each) for each in (scales, offsets))
    except (KeyError, TypeError, ValueError):
        return None
    return Layout((sx, sy, sz), (ox, oy, oz))


def read_crs(subject: str, crs: str) -> str:
    """Turn the CRS that a table or file states into PROJJSON.

    Raises
    ------
    CrsError
        If PROJ cannot read it: the sentence names the table or file.
    """
    try:
        return crs_text.from_text(crs)
    except CrsError as error:
        message = f"{subject}: {error}"
        raise CrsError(message) from error


@dataclass(frozen=True)
class Lineage:
    """Finds where columns come from."""

    place: tuple[str, ...]
    """The current database and schema."""
    entries: Mapping[tuple[str, str, str], Entry]

    def frame(self, name: str, query: str | None) -> Frame:
        """Give the frame of the points or cells of a table, view or name of a query."""
        try:
            return self._frame(name, query)
        except RecursionError:
            return Frame(repr(name), doubt=f"the query of {name!r} is nested too deeply to be read")

    def frame_of_rows(self, query: str) -> Frame:
        """Give the frame of the rows of a query."""
        name = "rows"
        try:
            parsed = parse(query)
            return self._of_axes(name, Scope({name: (parsed[0], Scope())} if parsed else {}))
        except RecursionError:
            return Frame(repr(name), doubt="the query is nested too deeply to be read")

    def _frame(self, name: str, query: str | None) -> Frame:
        scopes = {id(scope): scope for scope in self._scopes(name, query)}
        frames = {self._of_axes(name, scope) for scope in scopes.values()}
        if len(frames) == 1:
            return frames.pop()
        doubt = f"several queries are called {name!r} and differ in their CRS"
        return Frame(repr(name), doubt=doubt)

    def systems(self, query: str) -> list[tuple[str, str]]:
        """List the tables and files with coordinates that a query reads, and their CRS if known."""
        found: dict[str, str] = {}
        for node in parse(query):
            for source, scope in self.sources(node, Scope(), frozenset()):
                for origin in sorted(self._stated(source, scope), key=repr):
                    if origin.crs is not None:
                        found[origin.subject] = origin.crs
        return list(found.items())

    def _stated(self, source: Node, scope: Scope) -> frozenset[Origin]:
        """Where the coordinates come from that a source of a query gives or is asked for."""
        if source["type"] == "BASE_TABLE":
            return self._of_table(source["qualified_name"]["path"], "x", scope, ())
        function = source["function"]
        if read := files_of(function):
            return frozenset().union(*(file_origins(*each) for each in read))
        if called(function) not in catalogue():
            return frozenset()
        for each in function.get("arguments", ()):
            if each.get("name", "").casefold() == "crs" and (crs := name_of(each["expression"])):
                is_read = crs_text.is_readable(crs)  # if not, the function itself will say so
                return frozenset({Origin(f"crs of {called(function)}", crs if is_read else None)})
        names = (name for each in arguments(function) for name in names_of(each))
        found = (
            self._of_table([name] if means_files(name) else parts_of(name), "x", scope, ())
            for name in names
        )
        return frozenset().union(*found)

    def _scopes(self, name: str, query: str | None) -> list[Scope]:
        """Where a query, or a view that it reads, calls a function with the name."""
        nodes = parse(query) if query and self._has_names(query) else []
        found = [
            scope
            for node in nodes
            for source, scope in self.sources(node, Scope(), frozenset())
            if source["type"] == "TABLE_FUNCTION"
            and name in map(name_of, arguments(source["function"]))
        ]
        return found or [*(Scope().within(node) for node in nodes), Scope()][:1]

    def _has_names(self, query: str) -> bool:
        """Whether the query, or a view that it may read, gives names to queries."""
        texts = (query, *(each.sql or "" for each in self.entries.values()))
        return any(re.search(r"\bwith\b", text, re.IGNORECASE) for text in texts)

    def sources(
        self, node: Any, scope: Scope, seen: frozenset[Entry]
    ) -> Iterator[tuple[Node, Scope]]:
        """Give the tables and table functions within a query and within the views that it reads.

        A name that is no table's may be that of a file.
        """
        if isinstance(node, list):
            for each in node:
                yield from self.sources(each, scope, seen)
        if not isinstance(node, dict):
            return
        inner = scope.within(node)
        if node.get("type") == "TABLE_FUNCTION":
            yield node, inner
        if node.get("type") == "BASE_TABLE":
            path = node["qualified_name"]["path"]
            entry = None if _is_own(path, inner) else self.entry(path)
            if not _is_own(path, inner):
                yield node, inner
                if entry is not None and entry.sql is not None and entry not in seen:
                    yield from self.sources(parse(entry.sql), Scope(), seen | {entry})
        for name, value in node.items():
            if name == "cte_map":
                for each in value.get("map", ()):
                    query, outer = inner.queries[each["key"].casefold()]
                    yield from self.sources(query, outer, seen)
            else:
                yield from self.sources(value, inner, seen)

    def _of_axes(self, name: str, scope: Scope) -> Frame:
        path = parts_of(name)
        is_file = not _is_own(path, scope) and self.entry(path) is None and means_file(name)
        path = [name] if is_file else path
        by_axis = {axis: self._of_table(path, axis, scope, ()) for axis in AXES}
        origins = [origin for found in by_axis.values() for origin in sorted(found, key=repr)]
        known = [(each.subject, each.crs) for each in origins if each.crs is not None]
        try:
            crs = _one_crs(known)
        except CrsError as error:
            return Frame(repr(name), conflict=str(error).removeprefix(": "))
        is_mixed = crs is not None and crs_text.has_two_units(crs)
        computed = [
            axis
            for axis, found in by_axis.items()
            if any(
                each.is_computed or (is_mixed and each.crs and each.is_height != (axis == "z"))
                for each in found
            )
        ]
        if crs is None or not computed:
            from spatialq.io.clouds import what_reprojects

            return Frame(repr(name), crs, remedy=what_reprojects(name) if is_file else "")
        several = " and ".join(computed)
        doubt = f"the unit of {several} of {name!r} cannot be told, as {several} "
        doubt += f"{'is' if len(computed) == 1 else 'are'} computed"
        return Frame(repr(name), doubt=doubt)

    def entry(self, path: Sequence[str]) -> Entry | None:
        """Find a table or view as DuckDB does."""
        parts = tuple(part.casefold() for part in path)
        database, schema = (part.casefold() for part in self.place)
        match parts:
            case (name,):
                places = [("temp", "main", name), (database, schema, name)]
            case (first, name):
                places = [(database, first, name), (first, "main", name)]
            case _:
                places = [parts[-3:]]  # type: ignore[list-item]
        return next((self.entries[each] for each in places if each in self.entries), None)

    def _of_table(
        self, path: Sequence[str], column: str, scope: Scope, seen: tuple[Any, ...]
    ) -> frozenset[Origin]:
        """Where a column of a table, view or name of a query comes from."""
        if _is_own(path, scope):
            name = path[0].casefold()
            query, outer = scope.queries[name]
            if id(query) in seen:  # a recursive query, which alone sees itself
                return frozenset()
            if query["type"] == "RECURSIVE_CTE_NODE":
                outer = Scope({**outer.queries, name: (query, outer)})
            return self._of_query(query, column, outer, (*seen, id(query)))
        entry = self.entry(path)
        subject = f"table {path[-1]}"
        if entry is None:
            name = ".".join(path)
            origins = file_origins(name) if means_files(name) else {Origin(subject)}
            return frozenset(_of_axis(each.subject, each.crs, column) for each in origins)
        if entry.crs is not None:
            return frozenset({_of_axis(subject, entry.crs, column)})
        nodes = parse(entry.sql) if entry.sql else []
        if not nodes or entry in seen:
            return frozenset({Origin(subject)})
        return self._of_query(nodes[0], column, Scope(), (*seen, entry))

    def _of_query(
        self, node: Node, column: str, scope: Scope, seen: tuple[Any, ...]
    ) -> frozenset[Origin]:
        """Where a column of the result of a query comes from."""
        scope = scope.within(node)
        children = (*node.get("children", ()), node.get("left"), node.get("right"))
        branches = [each for each in children if each]
        if branches:
            by_name = node.get("setop_type") == "UNION_BY_NAME"
            place = None if by_name else _place(branches[0], column)
            return frozenset().union(
                *(self._of_branch(each, place, column, scope, seen) for each in branches)
            )
        if "child" in node:
            return self._of_query(node["child"], column, scope, seen)
        source = node.get("from_table", {})
        for each in node.get("select_list", ()):
            if each["class"] == "STAR":
                starred = self._of_star(each, source, column, scope, seen)
                if starred is not None:
                    return starred
            elif result_name(each) == column.casefold():
                return self._of_expression(each, source, scope, seen)
        return frozenset({Origin(f"column {column}", is_computed=True)})

    def _of_branch(
        self, node: Node, place: int | None, column: str, scope: Scope, seen: tuple[Any, ...]
    ) -> frozenset[Origin]:
        """Where a column of a part of a UNION comes from: by its place, where that is known."""
        results = [] if place is None else node.get("select_list", [])[: place + 1]
        if place is None or len(results) <= place or any(e["class"] == "STAR" for e in results):
            return self._of_query(node, column, scope, seen)
        source = node.get("from_table", {})
        return self._of_expression(results[-1], source, scope.within(node), seen)

    def _of_star(
        self, star: Node, source: Node, column: str, scope: Scope, seen: tuple[Any, ...]
    ) -> frozenset[Origin] | None:
        """Where a column comes from that a star may have; None if it has not."""
        wanted = column.casefold()
        if wanted in (last(each) for each in star.get("exclude_list", ())):
            return None
        for each in star.get("replace_list", ()):
            if each["key"].casefold() == wanted:
                return self._of_expression(each["value"], source, scope, seen)
        for each in star.get("rename_list", ()):
            if each["value"].casefold() == wanted:
                column = each["key"]["column"]
        return self._of_source(source, column, star.get("relation_name"), scope, seen)

    def _of_source(
        self, source: Node, column: str, alias: str | None, scope: Scope, seen: tuple[Any, ...]
    ) -> frozenset[Origin] | None:
        """Where a column of what stands behind FROM comes from; None if nothing has the alias."""
        kind = source.get("type")
        if kind == "JOIN":
            sides = [
                self._of_source(source[side], column, alias, scope, seen)
                for side in ("left", "right")
            ]
            # a column without a table is in one of them: in that whose coordinates are known
            there = [each for each in sides if each is not None]
            with_crs = [each for each in there if any(o.crs for o in each)]
            return frozenset().union(*(with_crs or there)) if there else None
        names = [source.get("alias") or "", *source.get("qualified_name", {}).get("path", ())[-1:]]
        if kind == "TABLE_FUNCTION":
            names.append(called(source["function"]))
        if alias and alias.casefold() not in (name.casefold() for name in names):
            return None
        if source.get("column_name_alias"):
            return frozenset({Origin(names[0])})
        match kind:
            case "BASE_TABLE":
                return self._of_table(source["qualified_name"]["path"], column, scope, seen)
            case "SUBQUERY":
                return self._of_query(source["subquery"]["node"], column, scope, seen)
            case "TABLE_FUNCTION":
                return self._of_call(source["function"], column, scope, seen)
        return frozenset({Origin(f"column {column}")})

    def _of_call(
        self, function: Node, column: str, scope: Scope, seen: tuple[Any, ...]
    ) -> frozenset[Origin]:
        """Where a column of the result of a table function comes from."""
        name, (first, *_) = called(function), (*arguments(function), None)
        is_axis = column.casefold() in AXES
        if is_axis and (read := files_of(function)):
            origins = frozenset().union(*(file_origins(*each) for each in read))
            return frozenset(_of_axis(each.subject, each.crs, column) for each in origins)
        known = catalogue().get(name)
        tables = [] if first is None else names_of(first)
        gives = name == "query_table" or (
            known is not None
            and is_axis
            and column in known.output.columns
            and not isinstance(known.inputs, ElementsInput)
        )
        if tables and gives:
            of_files = name != "query_table"
            paths = ([t] if of_files and means_files(t) else parts_of(t) for t in tables)
            found = (self._of_table(path, column, scope, seen) for path in paths)
            return frozenset().union(*found)
        return frozenset({Origin(f"function {name}")})

    def _of_expression(
        self, node: Node, source: Node, scope: Scope, seen: tuple[Any, ...]
    ) -> frozenset[Origin]:
        """Where the value of an expression comes from; nowhere if it is a constant."""
        match node["class"]:
            case "CONSTANT":
                return frozenset()
            case "COLUMN_REF":
                *alias, column = node["column_names"]
                found = self._of_source(source, column, alias[-1] if alias else None, scope, seen)
                if found is not None:
                    return found
            case "CAST":
                return self._of_expression(node["child"], source, scope, seen)
        made = frozenset().union(
            *(self._of_expression(each, source, scope, seen) for each in operands(node))
        )
        if _keeps_unit(node):
            return made
        is_computed = any(each.crs or each.is_computed for each in made)
        return frozenset({Origin("an expression", is_computed=is_computed)})


def _of_axis(subject: str, crs: str | None, column: str) -> Origin:
    """Say that a column is one of a table or file whose x, y and z have a CRS."""
    name = column.casefold()
    return Origin(subject, crs if name in AXES else None, is_height=name == "z")


def _place(node: Node, column: str) -> int | None:
    """Find the place of a column among the results of a query; None where a star comes before."""
    for place, each in enumerate(node.get("select_list", ())):
        if each["class"] == "STAR":
            return None
        if result_name(each) == column.casefold():
            return place
    return None


def _keeps_unit(node: Node) -> bool:
    """Whether an expression has the unit of its operands.

    A product with another column or function is taken for a rotation, one with a number for a
    conversion.
    """
    if node["class"] not in ("FUNCTION", "WINDOW"):
        return False
    is_product = called(node) == "*" and all(e["class"] != "CONSTANT" for e in arguments(node))
    return is_product or called(node) in KEEPS_UNIT


def _is_own(path: Sequence[str], scope: Scope) -> bool:
    return len(path) == 1 and path[0].casefold() in scope.queries


def files_of(function: Node) -> list[tuple[str, str, str | None]]:
    """Give the files or patterns that a reader reads, the reader, and the CRS it reprojects to.

    None at all if it is no reader of rows. Of a CRS that is computed, the text is empty.
    """
    first, *_ = (*arguments(function), None)
    if first is None or called(function) not in READERS:
        return []
    to_crs = next(
        (
            each["expression"]
            for each in function.get("arguments", ())
            if each.get("name", "").casefold() == "to_crs" and not is_null(each["expression"])
        ),
        None,
    )
    target = None if to_crs is None else name_of(to_crs) or ""
    return [(path, called(function), target) for path in names_of(first)]


def file_origins(
    path: str, reader: str | None = None, to_crs: str | None = None
) -> frozenset[Origin]:
    """Give the CRS of a file or pattern; of a name that is no file's, that it is not known.

    Files of a pattern that the reader itself does not compare may have several.
    """
    if to_crs is not None:
        return frozenset({Origin(path, to_crs if crs_text.is_readable(to_crs) else None)})
    from spatialq.io.clouds import READS_LAS, open_cloud

    unknown = frozenset({Origin(path)})
    if reader in PARQUET or (reader is None and path.lower().endswith(".parquet")):
        found = systems_of_parquet("query", path)
        stated = (
            Origin(file, crs) for crs, file in found.items() if crs and crs_text.is_readable(crs)
        )
        return frozenset(stated) or unknown
    if reader is None and (not means_files(path) or path.lower().endswith(READ_BY_DUCKDB)):
        return frozenset({Origin(f"table {path}")})
    try:
        (first, *_) = find_sources("query", path, "points")
        is_las = reader == READS_LAS
        source = open_cloud(READS_LAS, first) if is_las else open_source("query", first)
        return frozenset({Origin(path, source.crs)})
    except SpatialqError:  # the reader itself will say so
        return unknown


def _one_crs(known: Sequence[tuple[str, str]]) -> str | None:
    """Give the CRS that all have; None where there is none."""
    read = [(subject, read_crs(subject, crs)) for subject, crs in dict.fromkeys(known)]
    return crs_text.require_same("", read)
