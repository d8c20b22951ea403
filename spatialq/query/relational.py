"""The verbs of every query: conditions, columns, order, groups, joins.

Each verb gives a new query and binds it, so that DuckDB's answer to a wrong name comes at the line
that has it. Consecutive verbs become clauses of one SELECT where that means the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from spatialq.errors import QueryError
from spatialq.io.formats import SLASHES, means_files
from spatialq.query.binding import columns_of, statement_of
from spatialq.query.expressions import (
    condition,
    expression,
    has_fields,
    is_positional,
    ordered,
    selected,
)
from spatialq.query.models import Model
from spatialq.query.outputs import Outputs
from spatialq.query.pinned import Pins
from spatialq.query.sentences import near, said_by
from spatialq.query.steps import Sql, Step, Table, plain, sql, together, write, written
from spatialq.query.values import require_text, value

if TYPE_CHECKING:
    import duckdb

MAX_ROWS = 2**62
"""That LIMIT can have."""
Kind = TypeVar("Kind", bound="Query")
How = Literal["inner", "left", "right", "full", "semi", "anti"]
JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN",
         "semi": "SEMI JOIN", "anti": "ANTI JOIN"}  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """A table macro that reads files, with its arguments."""

    function: str
    path: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def with_arguments(self, **arguments: Any) -> "Reader":
        """Give the reader with arguments more."""
        return replace(self, arguments={**self.arguments, **arguments})

    def text(self) -> Sql:
        """Write the call."""
        named = "".join(
            f", {name} := {value(self.function, name, given)}"
            for name, given in self.arguments.items()
        )
        return sql(f"{self.function}({value(self.function, 'path', self.path)}{named})")


@dataclass(frozen=True)
class Origin:
    """Where rows are from, as far as later methods ask for it."""

    reader: Reader | None = None
    """What reads the file that they are from."""
    model: Model | None = None
    """The tables of the model that elements or objects are of."""
    sides: "tuple[Query, ...]" = ()
    """Of pairs, the elements a and b that they were made of."""
    cloud: Step | Table | None = None
    """Of points with columns that functions gave, the points that these were called on."""
    pins: Pins = ()


class Query(Outputs):
    """Rows of a database that are described and not yet computed.

    A query never changes: each method gives another one. Conditions and expressions are SQL.
    """

    KIND: ClassVar[str] = "rows"
    """What error sentences call such rows."""
    NEEDS: ClassVar[tuple[str, ...]] = ()
    """The columns that make rows of this kind."""
    KINDS: ClassVar[list[type["Query"]]] = []
    """All kinds of rows; the first whose columns are there counts."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.NEEDS and cls.NEEDS is not cls.__base__.NEEDS:  # type: ignore[union-attr]
            Query.KINDS.append(cls)

    def __init__(
        self,
        con: "duckdb.DuckDBPyConnection",
        step: Step | Table,
        columns: dict[str, str],
        origin: "Origin | None" = None,
    ) -> None:
        super().__init__(con, step, columns)
        self._origin = origin or Origin()

    @property
    def _pins(self) -> Pins:
        return self._origin.pins

    @property
    def _is_pinned(self) -> bool:
        """Whether these rows are to be pinned: their step stays as it is then."""
        return any(step is self._step for step, _ in self._pins)

    # -- relational verbs

    def where(self, *conditions: str) -> Self:
        """Keep the rows for which all conditions hold.

        Parameters
        ----------
        *conditions : str
            Expressions of SQL over the columns, such as ``"height > 2"``.

        Raises
        ------
        QueryError
            If a text is no condition, or names a column that is not there.
        """
        return self._where("where", [condition("where", each) for each in conditions])

    def select(self, *columns: str) -> "Query":
        """Keep some columns, or expressions of them.

        Parameters
        ----------
        *columns : str
            Names or expressions of SQL, such as ``"x"`` or ``"z * 0.3048 AS z_metres"``.

        Returns
        -------
        Query
            Of the kind that its columns make; `as_kind` tells type checkers which.

        Raises
        ------
        QueryError
            If a text is no expression, or names a column that is not there.
        """
        if not columns:
            message = "select: name at least one column"
            raise QueryError(message)
        texts, names = [], []
        for text, plainly in (selected("select", each) for each in columns):
            texts.append(text)
            names.append(plainly)
        step = self._own(
            lambda s: (
                s.columns is None
                and s.group is None
                and not s.is_distinct
                and (None not in names or (s.order is None and s.limit is None))
            )
        )
        return self._made("select", step.changed(columns=sql(", ".join(texts))))

    def with_columns(self, **expressions: str) -> Self:
        """Add columns, or replace those of the same names.

        Parameters
        ----------
        **expressions : str
            Name of a column = an expression of SQL over the columns that are there.

        Raises
        ------
        QueryError
            If a text is no expression, or names a column that is not there.
        """
        there = {name.lower() for name in self._columns}
        texts = {name: expression("with_columns", each) for name, each in expressions.items()}
        new = [
            f"{text} AS {plain(name)}" for name, text in texts.items() if name.lower() not in there
        ]
        old = [f"{text} AS {plain(name)}" for name, text in texts.items() if name.lower() in there]
        every = f"* REPLACE ({', '.join(old)})" if old else "*"
        step = self._own(
            lambda s: s.columns is None and not (s.group or s.order or s.limit or s.is_distinct)
        )
        return self._same("with_columns", step.changed(columns=sql(", ".join([every, *new]))))

    def order(self, *terms: str) -> Self:
        """Sort the rows.

        Parameters
        ----------
        *terms : str
            Columns or expressions, such as ``"height DESC"``; those before count more.

        Raises
        ------
        QueryError
            If a text is no such term, or names a column that is not there.
        """
        if not terms:
            message = "order: name at least one term"
            raise QueryError(message)
        found = [ordered("order", each) for each in terms]
        # a computed column without a name is no name behind ORDER BY of the same SELECT
        known = {each.lower() for each in self._columns if each.isidentifier()}
        are_columns = known.issuperset(each.lower() for _, names in found for each in names or [""])
        step = self._own(
            lambda s: (
                s.limit is None
                and (s.columns is None or (are_columns and not _has_fields(s.columns)))
            )
        )
        sorted_ = step.changed(order=sql(", ".join(text for text, _ in found)))
        if any(names is None and is_positional(text) for text, names in found):
            sorted_ = Step(sorted_.name, sql(sorted_))  # other columns would be other positions
        return self._same("order", sorted_)

    def limit(self, n: int) -> Self:
        """Keep the first rows.

        Parameters
        ----------
        n : int, >= 0
            How many.
        """
        number = n if not hasattr(n, "tolist") else n.tolist()  # NumPy's
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_ROWS:
            message = f"limit: n must be a whole number >= 0 and <= 2**62, got {n!r}"
            raise QueryError(message)
        step = self._own(lambda _: True)
        fewer = number if step.limit is None else min(number, step.limit)
        return self._same("limit", step.changed(limit=fewer))

    def distinct(self) -> Self:
        """Keep one of rows that are equal in all columns."""
        step = self._own(lambda s: s.order is None and s.limit is None)
        return self._same("distinct", step.changed(is_distinct=True))

    def aggregate(self, *aggregates: str, group: str | Sequence[str] = ()) -> "Query":
        """Aggregate the rows, in groups or all of them.

        Parameters
        ----------
        *aggregates : str
            Such as ``"count(*) AS n"`` or ``"max(height)"``.
        group : str or sequence of str
            Columns or expressions, of whose values each combination is a group.

        Returns
        -------
        Query
            One row for each group, with the columns of `group` first.

        Raises
        ------
        QueryError
            If a text is no expression, or names a column that is not there.
        """
        groups = [group] if isinstance(group, str) else list(group)
        keys = [selected("aggregate", each)[0] for each in groups]
        texts = [*keys, *(selected("aggregate", each)[0] for each in aggregates)]
        if not aggregates:
            message = "aggregate: name at least one aggregate, such as 'count(*) AS n'"
            raise QueryError(message)
        step = self._own(
            lambda s: (
                s.columns is None
                and not (s.group or s.order or s.limit or s.is_distinct or s.qualify)
            )
        )
        # ALL would group by what is no aggregate, too
        known = (
            self._made("aggregate", step.changed(columns=sql(", ".join(keys)))) if keys else None
        )
        places = ", ".join(str(k + 1) for k in range(len(known.columns))) if known else "()"
        made = step.changed(columns=sql(", ".join(texts)))
        self._made("aggregate", made.changed(group=sql(places)))
        return self._made("aggregate", made.changed(group=sql("ALL") if groups else None))

    def join(self, other: "Query | str", on: str | Sequence[str], *, how: How = "inner") -> Self:
        """Join the rows with others.

        Parameters
        ----------
        other : Query or str
            Rows, or the name of a table.
        on : str or sequence of str
            A column that both have, several of them, or a condition. In a condition the two are
            called by the names that the query's SQL gives them; simpler is ``a`` for these rows
            and ``b`` for the others, such as ``"a.global_id = b.a"``.
        how : str
            'inner', 'left', 'right' or 'full'; 'semi' keeps these rows where there is one of the
            others, 'anti' where there is none.

        Returns
        -------
        Query
            These columns, then those of the others. Of the latter one whose name is there already
            gets the ending ``_right``, and is among the last.

        Raises
        ------
        QueryError
            If a name or a condition is wrong, or the two are of different connections.
        """
        if how not in JOINS:
            message = f"join: how must be {', '.join(map(repr, JOINS))}, got {how!r}"
            raise QueryError(message)
        right = self._rows_of("join", "other", other)
        shared = self._shared(right, on)
        if shared and not _are_called_alike(self._step, right._step):
            right_name = sql(right._step)
            tables = sql(self._step, f" {JOINS[how]} ", right_name)
        else:
            right_name = sql("b")
            tables = sql(self._step, f" AS a {JOINS[how]} ", right._step, " AS b")
        if shared:
            source = sql(tables, f" USING ({', '.join(map(plain, shared))})")
        else:
            texts = [condition("join", each) for each in ([on] if isinstance(on, str) else on)]
            source = sql(tables, " ON ", *listed(together(tuple(texts)), " AND "))
        there = {name.lower() for name in self._columns} - {name.lower() for name in shared}
        twice = [
            name for name in right._columns if name.lower() in there and how not in ("semi", "anti")
        ]
        columns = None
        if twice:
            left_out = listed([sql(right_name, f".{plain(name)}") for name in twice])
            renamed = [sql(right_name, f".{plain(n)} AS {plain(n + '_right')}") for n in twice]
            columns = sql("* EXCLUDE (", *left_out, "), ", *listed(renamed))
        return self._same("join", Step(self._step_name(), source, columns=columns))

    def union(self, other: "Query | str") -> Self:
        """Add the rows of another query: columns go by their names, and a missing one is NULL.

        Parameters
        ----------
        other : Query or str
            Rows, or the name of a table.

        Raises
        ------
        QueryError
            If there is no such table, or the two are of different connections.
        """
        right = self._rows_of("union", "other", other)
        source = sql("(FROM ", self._step, " UNION ALL BY NAME FROM ", right._step, ")")
        model = self._origin.model
        if model is not None and not model.is_same(right._origin.model):
            model = None
        origin = Origin(model=model, pins=self._origin.pins)
        return self._same("union", Step(self._step_name(), source), origin=origin)

    def alias(self, name: str) -> Self:
        """Give the rows a name, which the SQL of later queries has.

        Parameters
        ----------
        name : str
            Such as 'walls'.
        """
        step = self._own(lambda _: True).changed(name=require_text("alias", "name", name))
        return self._same("alias", step)

    def as_kind(self, kind: type[Kind]) -> Kind:
        """Take the rows for rows of a kind, which type checkers cannot know after `select`.

        Parameters
        ----------
        kind : class
            Such as `spatialq.Points`.

        Raises
        ------
        QueryError
            If the rows have not its columns.
        """
        if isinstance(self, kind):
            return self
        missing = self._missing(kind)
        if missing:
            message = (
                f"as_kind: these rows are no {kind.KIND}: missing columns: {', '.join(missing)}"
            )
            raise QueryError(message)
        return kind(self._con, self._step, self._columns, self._origin)

    # -- how queries are made

    def _own(self, may_fold: "Any") -> Step:
        """Give the last step if clauses may be added to it, else a new one over it."""
        if isinstance(self._step, Step) and not self._is_pinned and may_fold(self._step):
            return self._step
        return Step(self._step_name(), sql(self._step))

    def _where(self, verb: str, conditions: list[Sql]) -> Self:
        step = self._own(
            lambda s: s.columns is None and not (s.group or s.qualify or s.limit is not None)
        )
        return self._same(verb, step.changed(where=(*step.where, *conditions)))

    def _step_name(self) -> str:
        """Name a step over these rows; after a table, which has its name, a number follows."""
        return self._step.own_name if isinstance(self._step, Table) else self._step.name

    def _made(self, verb: str, step: Step | Table, *, origin: "Origin | None" = None) -> "Query":
        """Bind a step, and make a query of the kind that its columns are."""
        with said_by(verb, self._columns):
            found = columns_of(self._con, statement_of(self._con, step))
        return make(self._con, step, found, origin or replace(self._origin, cloud=None))

    def _same(self, verb: str, step: Step | Table, *, origin: "Origin | None" = None) -> Self:
        """Bind a step whose rows are of the same kind."""
        return self._made(verb, step, origin=origin)  # type: ignore[return-value]

    def _rows_of(
        self, verb: str, argument: str, given: object, kind: "type[Query] | None" = None
    ) -> "Query":
        """Give the query that is an argument: a query itself, or the name of a table.

        Raises
        ------
        QueryError
            If it is neither, of another connection, or not of the kind that is wanted.
        """
        found = self._query_of(verb, argument, given)
        if kind is not None and (missing := found._missing(kind)):
            message = (
                f"{verb}: {argument} must be {kind.KIND}, which have the columns "
                f"{', '.join(kind.NEEDS)}; missing columns: {', '.join(missing)}"
            )
            raise QueryError(message)
        return found

    def _missing(self, kind: type["Query"]) -> list[str]:
        """List the columns that are wanting for rows of a kind."""
        there = {name.lower() for name in self._columns}
        return [name for name in kind.NEEDS if name not in there]

    def _query_of(self, verb: str, argument: str, given: object) -> "Query":
        if isinstance(given, str):
            if '"' not in given and (means_files(given) or any(each in given for each in SLASHES)):
                message = (
                    f"{verb}: {argument} must be a query or the name of a table, got the file "
                    f"{given!r}: read it with spatialq.read_points, read_ifc or read_vector"
                )
                raise QueryError(message)
            step = Table(written(given, verb))
            with said_by(verb):
                return make(self._con, step, columns_of(self._con, write(step)))
        if not isinstance(given, Query):
            message = (
                f"{verb}: {argument} must be a query or the name of a table, "
                f"got {type(given).__name__}"
            )
            raise QueryError(message)
        if given._con is not self._con:
            message = f"{verb}: {argument} is of another connection"
            raise QueryError(message)
        return given

    def _shared(self, right: "Query", on: str | Sequence[str]) -> list[str]:
        """Give the columns to join by, none if `on` is a condition."""
        names = [on] if isinstance(on, str) else list(on)
        if not names:
            message = "join: on must be a column, several, or a condition, got none"
            raise QueryError(message)
        there = {name.lower(): name for name in self._columns}, {n.lower() for n in right._columns}
        if all(name.lower() in there[0].keys() & there[1] for name in names):
            return [there[0][name.lower()] for name in names]
        for name in names:
            _, plainly = selected("join", name)
            if plainly is not None and name.lower() in there[0].keys() & there[1]:
                message = f"join: on must be columns or conditions, not both; {name!r} is a column"
                raise QueryError(message)
            if plainly is not None:
                side, where = (
                    (right, "the others") if name.lower() in there[0] else (self, "these rows")
                )
                message = f"join: no column {name!r} in {where}; {near(name, side._columns)}"
                raise QueryError(message)
        return []

    if not TYPE_CHECKING:

        def __iter__(self) -> Any:
            message = "a query has rows when it runs: fetchall() gives them, count() their number"
            raise TypeError(message)

        def __getattr__(self, name: str) -> Any:
            owners = [kind for kind in Query.KINDS if name in dir(kind) and name[0] != "_"]
            if owners:
                message = " ".join(
                    f"{name} is a method of {kind.KIND}, which have the columns "
                    f"{', '.join(kind.NEEDS)};"
                    for kind in owners
                )
                missing = min(map(self._missing, owners), key=len)
                message = f"{message} missing columns: {', '.join(missing)}"
                raise AttributeError(message)
            known = [each for each in dir(type(self)) if each[0] != "_" and each.islower()]
            message = f"a query has no method {name!r}; {near(name, known)}"
            raise AttributeError(message)


def make(
    con: "duckdb.DuckDBPyConnection",
    step: Step | Table,
    columns: dict[str, str],
    origin: Origin | None = None,
) -> Query:
    """Make a query of the kind that its columns are."""
    there = {name.lower() for name in columns}
    kinds = (kind for kind in Query.KINDS if there.issuperset(kind.NEEDS))
    return next(kinds, Query)(con, step, columns, origin)


def listed(texts: Sequence[Sql], between: str = ", ") -> list[Sql | str]:
    """Put commas between texts, or something else."""
    return [part for k, text in enumerate(texts) for part in ((between, text) if k else (text,))]


def _are_called_alike(a: Step | Table, b: Step | Table) -> bool:
    """Whether two would have the same name in a statement: those of tables are given."""
    are_tables = isinstance(a, Table) and isinstance(b, Table)
    return a is b or (are_tables and a.own_name.lower() == b.own_name.lower())  # type: ignore[union-attr]


def _has_fields(columns: Sql) -> bool:
    (text, *steps) = columns.pieces
    return not steps and has_fields(text)
