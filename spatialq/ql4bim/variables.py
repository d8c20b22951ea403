"""What the variables of a script are: sets of objects, relations, clouds and planes."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from lark import Token

from spatialq.database.model_tables import beside_elements
from spatialq.errors import ScriptError
from spatialq.functions.sql_text import is_quoted, literal, name_parts
from spatialq.ql4bim.syntax import Constant, Reference
from spatialq.ql4bim.text import Place
from spatialq.query.steps import Sql, Step, Table, plain, sql

Kind = Literal["set", "relation", "cloud", "planes"]
KEYS: dict[Kind, str] = {"set": "global_id", "cloud": "point_id", "planes": "plane_id"}
"""The columns that name the rows of a variable; relations have them in theirs."""
PATTERN = re.compile(r"[*?\[]")
"""What a path has that may name several files."""


def unchanged(condition: Sql | None) -> Sql | None:
    """Leave a condition as it is."""
    return condition


def no_requirement(form: str, constant: Constant) -> None:
    """Ask nothing of the data."""


@dataclass(frozen=True)
class Value:
    """A value of a row in each form that it can be compared in, None where it has none.

    Parameters
    ----------
    text, number, truth : Sql or None
    is_truth_text : bool
        Whether truth is 'true' or 'false'.
    may_be_list : bool
        Whether the text may be a JSON list of texts, as of enumerated values.
    metres : Sql or None
        The number where it is a length, in metres.
    radians : Sql or None
    common : Sql or None
        The number in a unit that is the same for all files, where `number` is in the file's.
    within : callable
        Writes what is around a condition on the value.
    require : callable
        Notes what the data must be like if the value is compared with a constant in a form.
    """

    text: Sql | None = None
    number: Sql | None = None
    truth: Sql | None = None
    metres: Sql | None = None
    radians: Sql | None = None
    common: Sql | None = None
    is_truth_text: bool = True
    may_be_list: bool = False
    within: Callable[[Sql | None], Sql | None] = unchanged
    require: Callable[[str, Constant], None] = no_requirement

    @property
    def kind(self) -> str:
        """What it is, in words."""
        if self.number is not None:
            return "number"
        return "text" if self.text is not None else "truth value"


def as_text(column: Sql) -> Value:
    """Give the forms of a column of texts."""
    return Value(text=column)


def as_number(column: Sql) -> Value:
    """Give the forms of a column of numbers, which are metres if they are lengths."""
    return Value(number=column, metres=column)


def as_truth(column: Sql) -> Value:
    """Give the forms of a column of truth values, which are texts."""
    return Value(text=column, truth=column)


@dataclass(frozen=True)
class Model:
    """A building model: a file, or the tables that `load` made of one.

    Parameters
    ----------
    path : str
        The file, or the name of the table of elements.
    is_file : bool
    """

    path: str
    is_file: bool

    def table(self, name: str) -> Sql:
        """Write a table of the model, such as its `relations`."""
        if self.is_file:
            reader = "read_ifc" if name == "elements" else f"read_ifc_{name}"
            return sql(f"{reader}({literal(self.path)})")
        return sql(table_named(beside_elements(self.path, name)))

    @property
    def may_be_several(self) -> bool:
        """Whether it may be several files, with units of their own."""
        return not self.is_file or PATTERN.search(self.path) is not None


def table_named(name: str) -> Table:
    """Give the table of a name in a script: with quotes as SQL has it, or with dots alone."""
    parts = name_parts(name) if is_quoted(name) else name.split(".")
    return Table(".".join(map(plain, parts)))


class Caller(Protocol):
    """The call that an attribute or a condition stands in, for errors and what it knows."""

    def error(self, place: Place, reason: str) -> ScriptError:
        """Make an error at a place."""

    def said(self, reason: str) -> str:
        """Say of which call a reason is."""

    def column(self, relation: "Variable", token: Token) -> "Column":
        """Look up a column of a relation."""

    def domain(self, column: "Column", place: Place) -> "Variable":
        """Give the rows that a column names."""

    def quoted_path(self, constant: Constant) -> Reference:
        """Read a property in quotes."""

    def require(self, place: Place, wrong: Sql) -> None:
        """Note what only the data can tell: see `requirements.Requirement`."""


@dataclass(frozen=True)
class Column:
    """A column of a relation.

    Parameters
    ----------
    name : str
    domain : Variable, optional
        What its values name, by GlobalId or number: among these the attributes of a row's object
        are looked up. Without one it is a column of values.
    value : callable
        Gives the forms that its values can be compared in, where it has no domain.
    """

    name: str
    domain: "Variable | None" = None
    value: Callable[[Sql], Value] = as_number


@dataclass(frozen=True, eq=False)
class Variable:
    """What a name stands for.

    Parameters
    ----------
    kind : {'set', 'relation', 'cloud', 'planes'}
    step : Step or Table
        Its rows. Those of a set are objects, each once.
    columns : tuple of Column
        Of a relation.
    models : tuple of Model
        Where the objects of a set are from.
    ifc_class : str, optional
        What all objects of a set are, if that is known.
    """

    kind: Kind
    step: Step | Table
    columns: tuple[Column, ...] = ()
    models: tuple[Model, ...] = ()
    ifc_class: str | None = None

    @property
    def key(self) -> str:
        """The column that names a row."""
        return KEYS[self.kind]

    @property
    def may_be_several(self) -> bool:
        """Whether the objects may be from several files."""
        return len(self.models) > 1 or any(model.may_be_several for model in self.models)

    def beside(self, table: str) -> Sql:
        """Write a table of the models that the objects are from."""
        return beside(self.models, table)


def beside(models: tuple[Model, ...], table: str) -> Sql:
    """Write a table of some models."""
    first, *others = (model.table(table) for model in models)
    if not others:
        return first
    more = (piece for each in others for piece in (" UNION ALL FROM ", each))
    return sql("(FROM ", first, *more, ")")


def all_models(variables: Sequence[Variable]) -> tuple[Model, ...]:
    """Give the models of several sets, each once."""
    return tuple(dict.fromkeys(model for each in variables for model in each.models))
