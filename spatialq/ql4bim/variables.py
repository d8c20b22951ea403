"""What the variables of a script are: sets of objects, relations, clouds and planes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from lark import Token

from spatialq.database.model_tables import beside_elements
from spatialq.errors import ScriptError
from spatialq.functions.sql_text import literal
from spatialq.ql4bim.syntax import Constant, Reference
from spatialq.ql4bim.text import Place
from spatialq.query.steps import Sql, Step, Table, plain, sql

Kind = Literal["set", "relation", "cloud", "planes"]
KEYS: dict[Kind, str] = {"set": "global_id", "cloud": "point_id", "planes": "plane_id"}
"""The columns that name the rows of a variable; relations have them in theirs."""


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
        return sql(Table(".".join(map(plain, beside_elements(self.path, name).split(".")))))


class Caller(Protocol):
    """The call that an attribute or a condition stands in, for errors and what it knows."""

    def error(self, place: Place, reason: str) -> ScriptError:
        """Make an error at a place."""

    def column(self, relation: "Variable", token: Token) -> "Column":
        """Look up a column of a relation."""

    def domain(self, column: "Column", place: Place) -> "Variable":
        """Give the rows that a column names."""

    def quoted_path(self, constant: Constant) -> Reference:
        """Read a property in quotes."""

    def require_property(self, objects: "Variable", pset: Token | None, prop: Token) -> None:
        """Note that some object must have a property."""


@dataclass(frozen=True)
class Column:
    """A column of a relation.

    Parameters
    ----------
    name : str
    domain : Variable, optional
        What its values name, by GlobalId or number: among these the attributes of a row's object
        are looked up. Without one it is a column of values.
    is_text : bool
        Whether values are texts; others are numbers.
    """

    name: str
    domain: "Variable | None" = None
    is_text: bool = False


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

    def beside(self, table: str) -> Sql:
        """Write a table of the models that the objects are from."""
        first, *others = (model.table(table) for model in self.models)
        if not others:
            return first
        more = (piece for each in others for piece in (" UNION ALL FROM ", each))
        return sql("(FROM ", first, *more, ")")


def all_models(variables: Sequence[Variable]) -> tuple[Model, ...]:
    """Give the models of several sets, each once."""
    return tuple(dict.fromkeys(model for each in variables for model in each.models))
