"""Queries as named steps, and the one SQL statement that such steps are.

The query builder and QL4BIM scripts make steps and nothing else, so that both give what a person
would write by hand: a `WITH` of named parts that refer to each other.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from spatialq.database.model_tables import beside_objects
from spatialq.errors import QueryError
from spatialq.functions.sql_text import identifier, literal, name_parts

PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
INDENT = "    "


@dataclass(frozen=True, eq=False)
class Table:
    """A table, view or macro's result that is there already: it is named, not defined."""

    name: str
    """As SQL has it, in quotes where it must be: see `written`."""

    @property
    def own_name(self) -> str:
        """The name without quotes, schema and catalog."""
        return name_parts(self.name)[-1]


@dataclass(frozen=True)
class Quoted:
    """The name of a step as a text, as table macros take it: `touches('walls', 'slabs')`."""

    step: "Step | Table"
    path: str | None = None
    """The file, or pattern, that the step reads and nothing else: it stands in its place."""


@dataclass(frozen=True)
class Sql:
    """A text of SQL that names steps, whatever they will be called."""

    pieces: tuple[Any, ...]

    def __add__(self, other: "Sql | str") -> "Sql":
        return Sql((*self.pieces, *(other.pieces if isinstance(other, Sql) else (other,))))


def sql(*pieces: Any) -> Sql:
    """Join texts and steps; a step stands for its name, `Quoted` for its name as a text."""
    flat: list[Any] = []
    for piece in pieces:
        flat.extend(piece.pieces if isinstance(piece, Sql) else (piece,))
    return Sql(tuple(flat))


@dataclass(frozen=True)
class OpenSql(Sql):
    """A condition such as `a OR b`, which stands in parentheses beside others."""


@dataclass(frozen=True, eq=False)
class Step:
    """One SELECT over tables and other steps.

    Parameters
    ----------
    name : str
        What it should be called; a number is added where another step is called so.
    source : Sql
        What stands behind FROM.
    columns : Sql, optional
        What stands behind SELECT; by default all columns.
    where : tuple of Sql
        Conditions, all of which hold; `OpenSql` where one must not run into another.
    group, order : Sql, optional
        What stands behind GROUP BY, QUALIFY and ORDER BY.
    qualify : Sql, optional
    limit : int, optional
    is_distinct : bool
    beside : Step or Table, optional
        The objects of a building model to which the rows belong: the step is called as
        `model_tables.beside_objects` names it, with `name` as the name of the table.
    needs : tuple of Step
        Steps that the text names by what they are called, not by itself.
    storeys : tuple of str
        Storeys of a file which the conditions name; whether it has them shows when it is read.
    """

    name: str
    source: Sql
    columns: Sql | None = None
    where: tuple[Sql, ...] = ()
    group: Sql | None = None
    qualify: Sql | None = None
    order: Sql | None = None
    limit: int | None = None
    is_distinct: bool = False
    beside: "Step | Table | None" = None
    needs: "tuple[Step | Table, ...]" = ()
    storeys: tuple[str, ...] = ()

    def changed(self, **clauses: Any) -> "Step":
        """Give the step with other clauses."""
        return replace(self, **clauses)

    @property
    def is_plain(self) -> bool:
        """Whether it has a source and no other clause."""
        return [word for word, _ in self.clauses()] == ["FROM"]

    def clauses(self) -> Iterator[tuple[str, Sql]]:
        """Give keyword and text of each clause, in the order of SQL."""
        if self.columns is not None or self.is_distinct:
            yield "SELECT DISTINCT" if self.is_distinct else "SELECT", self.columns or sql("*")
        yield "FROM", self.source
        for k, condition in enumerate(together(self.where)):
            yield "AND" if k else "WHERE", condition
        if self.group is not None:
            yield "GROUP BY", self.group
        if self.qualify is not None:
            yield "QUALIFY", self.qualify
        if self.order is not None:
            yield "ORDER BY", self.order
        if self.limit is not None:
            yield "LIMIT", sql(str(self.limit))


def together(conditions: tuple[Sql, ...]) -> tuple[Sql, ...]:
    """Give conditions as they stand beside each other: of several, open ones in parentheses."""
    if len(conditions) == 1:
        return conditions
    return tuple(sql("(", one, ")") if isinstance(one, OpenSql) else one for one in conditions)


def write(step: Step | Table, *, taken: Collection[str] = ()) -> str:
    """Write the statement that gives the rows of a step, with all steps that it needs before it.

    Parameters
    ----------
    step : Step or Table
    taken : collection of str, lower case
        Names that no step may have.
    """
    if isinstance(step, Table):
        return f"FROM {step.name}"
    needed = in_order(step, is_written=True)
    names = _names(needed, step, taken)
    parts = [
        f"{names[part]} AS (\n{INDENT}{_select(part, names, INDENT)}\n)"
        for part in needed
        if isinstance(part, Step) and part is not step
    ]
    head = f"WITH {', '.join(parts)}\n" if parts else ""
    return head + _select(step, names)


def in_order(last: Step | Table, *, is_written: bool = False) -> list[Step | Table]:
    """List what a step needs, each after what it needs itself; without recursion.

    Where it `is written`, without the steps in whose place their file stands.
    """
    found: dict[Step | Table, None] = {}
    waiting: list[tuple[Step | Table, bool]] = [(last, False)]
    while waiting:
        step, is_done = waiting.pop()
        if step in found:
            continue
        if is_done or isinstance(step, Table):
            found[step] = None
            continue
        waiting.append((step, True))
        waiting.extend((each, False) for each in reversed([*needs(step, is_written=is_written)]))
    return list(found)


def naming(step: Step, others: Mapping[Any, Step | Table]) -> Step:
    """Give a step that names other steps instead of those that it needs."""

    def changed(text: Sql | None) -> Sql | None:
        return text and replace(text, pieces=tuple(map(piece_of, text.pieces)))

    def piece_of(piece: Any) -> Any:
        if isinstance(piece, Quoted):
            other = others.get(piece.step, piece.step)
            return piece if other is piece.step else replace(piece, step=other, path=None)
        return piece if isinstance(piece, str) else others.get(piece, piece)

    clauses = ("source", "columns", "group", "qualify", "order")
    return step.changed(
        **{name: changed(getattr(step, name)) for name in clauses},
        where=tuple(map(changed, step.where)),
        beside=step.beside and others.get(step.beside, step.beside),
        needs=tuple(others.get(each, each) for each in step.needs),
    )


def with_tables(last: Step | Table, tables: Mapping[Step | Table, Table]) -> Step | Table:
    """Give a step as it is where tables stand for some of the steps that it needs."""
    made: dict[Step | Table, Step | Table] = dict(tables)
    for step in in_order(last):
        if isinstance(step, Table) or step in made:
            made.setdefault(step, step)
            continue
        made[step] = naming(step, made)
    return made[last]


def needs(step: Step, *, is_written: bool = False) -> Iterator[Step | Table]:
    """Give the steps and tables that a step names itself, as often as it names them.

    Where it `is written`, without the steps in whose place their file stands.
    """
    if step.beside is not None:
        yield step.beside
    for _, text in step.clauses():
        for piece in text.pieces:
            if isinstance(piece, Quoted):
                if piece.path is None or not is_written:
                    yield piece.step
            elif not isinstance(piece, str):
                yield piece
    yield from step.needs


def _names(
    needed: list[Step | Table], last: Step, others: Collection[str]
) -> Mapping[Step | Table, str]:
    """Give each step a name of its own, in any case of letters, that is no table's."""
    taken = {each.own_name.lower() for each in needed if isinstance(each, Table)}
    taken |= {*others}
    numbers: dict[str, int] = {}
    names: dict[Step | Table, str] = {}
    for step in needed:
        if isinstance(step, Table):
            names[step] = step.name
        elif step.beside is not None:
            names[step] = written(beside_objects(names[step.beside], step.name))
        elif step is not last:
            name, number = step.name, numbers.get(step.name, 1)
            while name.lower() in taken:
                number += 1
                name = f"{step.name}_{number}"
            taken.add(name.lower())
            numbers[step.name] = number
            names[step] = plain(name)
    return names


def written(name: str, verb: str = "table") -> str:
    """Write the name of a table, which may have quotes or a schema already, as SQL has it.

    Raises
    ------
    QueryError
        If it is no name, but another piece of SQL; `verb` is the method that got it.
    """
    try:
        return ".".join(map(plain, name_parts(name)))
    except ValueError as error:
        message = f"{verb}: {error}"
        raise QueryError(message) from None


@lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """Write an identifier without quotes where it needs none."""
    import duckdb

    is_plain = PLAIN.fullmatch(name) and duckdb.tokenize(name)[0][1] == duckdb.token_type.identifier
    return name if is_plain else identifier(name)


def _select(step: Step, names: Mapping[Step | Table, str], indent: str = "") -> str:
    # only clauses are indented: a line break may be within a text in quotes
    clauses = (f"{word} {_text(text, names)}" for word, text in step.clauses())
    return f"\n{indent}".join(clauses)


def _text(text: Sql, names: Mapping[Step | Table, str]) -> str:
    def write_piece(piece: Any) -> str:
        if isinstance(piece, str):
            return piece
        if isinstance(piece, Quoted):
            return literal(names[piece.step] if piece.path is None else piece.path)
        return names[piece]

    return "".join(map(write_piece, text.pieces))
