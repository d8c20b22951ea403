"""One call of an operator while it is compiled: what its arguments are, and what it must give."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

from lark import Token

from spatialq.database.macros import macros
from spatialq.errors import ScriptError
from spatialq.functions.macros import Argument
from spatialq.functions.sql_text import literal
from spatialq.io.ifc.columns import OBJECTS, PROPERTIES, RELATIONS
from spatialq.io.ifc.schemas import near_names
from spatialq.ql4bim.conditions import Conditions, in_unit
from spatialq.ql4bim.meshes import Bodies
from spatialq.ql4bim.requirements import Requirement
from spatialq.ql4bim.syntax import (
    CONDITIONS,
    Call,
    Comparison,
    Constant,
    Expression,
    Formal,
    Reference,
    references,
)
from spatialq.ql4bim.text import Place
from spatialq.ql4bim.variables import Column, Kind, Model, Variable
from spatialq.query.steps import Quoted, Sql, Step, plain, sql


@dataclass(frozen=True)
class Picked:
    """What is picked of a variable: a column of it, an attribute, or an attribute of a column."""

    variable: Variable
    column: Column | None
    path: tuple[Token, ...]
    token: Token


ALIASES = ("rel", "prop", "unit", "obj", "one", "other", "timing", "control")
"""What tables are called within a step."""
PART = re.compile(r"(\w+) AS (?:MATERIALIZED )?\(\s*(?:FROM|SELECT|WITH)")
"""A part of a statement with its name."""


def step_name(name: str) -> str:
    """Say what the step of a variable should be called, so that nothing within hides it."""
    return f"{name}_" if name.lower() in taken() else str(name)


@cache
def taken() -> frozenset[str]:
    """Give the names that something else has within steps, and parts of macros.

    A macro looks for a table by its name, where a part of its own hides one that is called so.
    """
    parts = {name.lower() for each in macros("lists") for name in PART.findall(each.statement)}
    return frozenset({*ALIASES, *OBJECTS, *RELATIONS, *PROPERTIES, *parts})


Operand = Variable | Picked | Constant


@dataclass(frozen=True)
class Operator:
    """One operator.

    Parameters
    ----------
    name : str
    shorts : tuple of str
        Its other names, the short one first.
    make : callable
        Makes the variable that a call of it gives.
    shapes : str
        Its arguments.
    gives : str
    doc : str
        One sentence.
    example : str
        A statement; `m` is a model, `w` and `s` are sets, `r[a|b]` is a relation, `c` a cloud.
    macro : (str, str), optional
        The folder of the function and the macro that it calls: its named arguments are keywords.
    without : tuple of str
        Named arguments of the macro that are no keywords.
    filters : bool
        Whether its arguments are conditions.
    """

    name: str
    shorts: tuple[str, ...]
    make: "Callable[[OperatorCall], Variable]"
    shapes: str
    gives: str
    doc: str
    example: str
    macro: tuple[str, str] | None = None
    without: tuple[str, ...] = ()
    filters: bool = False

    @property
    def step_name(self) -> str:
        """What a step of it is called where the script does not name it."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()

    def keywords(self) -> tuple[Argument, ...]:
        """List its keyword arguments: those that its macro has by name."""
        return named_arguments(*self.macro, self.without) if self.macro else ()


@cache
def named_arguments(folder: str, macro: str, without: tuple[str, ...] = ()) -> tuple[Argument, ...]:
    """List the arguments of a macro that have a default, as keywords of an operator."""
    from spatialq.functions.generator import macros_of

    (found,) = (each for each in macros_of(folder) if each.name == macro)
    hidden = ("b", "relations", *without)
    return tuple(
        each for each in found.arguments if each.default is not None and each.name not in hidden
    )


class Scope(Protocol):
    """What a call asks of the script that it stands in."""

    imports: dict[Model, Variable]

    def error(self, place: Place, reason: str) -> ScriptError:
        """Make an error at a place."""

    def variable(self, token: Token) -> Variable:
        """Look up a variable."""

    def call(self, call: Call, target: Formal | None) -> Variable:
        """Compile a call within this one."""

    def whole(self, models: tuple[Model, ...]) -> Variable:
        """Give all objects of some models."""

    def path_of(self, use: "OperatorCall", path: str) -> str:
        """Give the file that an ImportModel reads."""

    def export(self, objects: Variable, path: str, place: Place) -> None:
        """Note that a set is to be written."""

    def require(self, requirement: Requirement) -> None:
        """Note what only the data can tell."""


@dataclass
class OperatorCall:
    """One call of an operator.

    Parameters
    ----------
    compiler : Scope
    operator : Operator
    call : Call
    target : Formal or None
        What the result is called; None where the call is an argument of another one.
    """

    compiler: Scope
    operator: Operator
    call: Call
    target: Formal | None
    operands: list[Operand] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)
    keywords: dict[str, tuple[Token, Expression]] = field(default_factory=dict)

    def error(self, place: Place, reason: str) -> ScriptError:
        """Make an error of this call."""
        return self.compiler.error(place, self.said(reason))

    def said(self, reason: str) -> str:
        """Say of which call a reason is."""
        return f"{self.operator.name}: {reason}"

    @property
    def name(self) -> str:
        """What its step should be called."""
        return step_name(self.variable)

    @property
    def variable(self) -> str:
        """What its result is called."""
        return self.operator.step_name if self.target is None else str(self.target.name)

    # arguments

    def read_arguments(self) -> None:
        """Find out what the arguments are."""
        for each in self.call.arguments:
            if self._is_keyword(each):
                assert isinstance(each, Comparison)
                assert isinstance(each.left, Reference)
                name = each.left.token
                if name in self.keywords:
                    raise self.error(name, f"{name} is given twice")
                self.keywords[str(name)] = (name, each.right)
            elif isinstance(each, CONDITIONS):
                if not self.operator.filters:
                    raise self.error(each.token, "takes no condition; AttributeFilter has them")
                self.conditions.append(each)
            else:
                self._read_operand(each)

    def _is_keyword(self, each: Expression) -> bool:
        return (
            isinstance(each, Comparison)
            and each.sign == "="
            and isinstance(each.left, Reference)
            and each.left.variable is not None
            and each.left.column is None
            and not each.left.path
            and not self.operator.filters
        )

    def _read_operand(self, each: Expression) -> None:
        operand: Operand
        if isinstance(each, Constant):
            operand = each
        elif isinstance(each, Call):
            operand = self.compiler.call(each, None)
        else:
            assert isinstance(each, Reference)
            operand = self._referred(each)
        self.operands.append(operand)
        self.tokens.append(each.token)

    def _referred(self, each: Reference) -> Operand:
        if each.variable is not None:
            variable = self.compiler.variable(each.variable)
            if each.column is None and not each.path:
                return variable
        else:
            variable = self._preceding(each)
        column = None if each.column is None else self.column(variable, each.column)
        return Picked(variable, column, each.path, each.path[-1] if each.path else each.token)

    def _preceding(self, each: Reference) -> Variable:
        """Give the relation before `[a]`, which is no operand of its own then."""
        last = self.operands[-1] if self.operands else None
        if isinstance(last, Picked) and last.column is not None:
            return last.variable
        if not isinstance(last, Variable) or last.kind != "relation":
            raise self.error(each.token, "a relation must stand before a column in brackets")
        self.operands.pop()
        self.tokens.pop()
        return last

    def subject(self) -> Variable:
        """Give the variable whose rows the conditions are about."""
        if len(self.operands) > 1:
            raise self.error(self.tokens[1], "takes one set or relation, and conditions")
        if self.operands:
            found = self.operands[0]
            if not isinstance(found, Variable):
                raise self.error(self.tokens[0], f"takes {self.operator.shapes}")
        else:
            found = self._subject_of_conditions()
        for each in self.conditions:
            for part in references(each):
                if part.variable is not None and self.compiler.variable(part.variable) is not found:
                    raise self.error(part.variable, "all conditions must be about one variable")
        return found

    def _subject_of_conditions(self) -> Variable:
        calls = []
        for each in self.conditions:
            for part in references(each):
                if part.variable is not None:
                    return self.compiler.variable(part.variable)
            left = getattr(each, "left", None)
            if isinstance(left, Call):
                calls.append(left)
        if len(calls) == 1:
            return self.compiler.call(calls[0], None)
        raise self.error(self.call.operator, f"takes {self.operator.shapes}")

    def where(self, subject: Variable) -> tuple[Sql, ...]:
        """Write the conditions on the rows of a variable."""
        return Conditions(self, subject).all_of(self.conditions)

    def operand(self, k: int) -> Operand:
        """Give an argument by position.

        Raises
        ------
        ScriptError
            If it is not there.
        """
        if k >= len(self.operands):
            raise self.error(self.call.operator, f"takes {self.operator.shapes}")
        return self.operands[k]

    def no_more_than(self, count: int) -> None:
        """Refuse further arguments."""
        if len(self.operands) > count:
            raise self.error(self.tokens[count], f"takes {self.operator.shapes}")

    def of_kind(self, k: int, *kinds: Kind) -> Variable:
        """Give an argument that must be of some kinds; a column may stand for its set."""
        found = self.operand(k)
        if isinstance(found, Picked) and found.column is not None and not found.path:
            if "set" in kinds:
                return self.objects_in(found)
        elif isinstance(found, Variable) and found.kind in kinds:
            return found
        got = f"a {found.kind}" if isinstance(found, Variable) else "something else"
        wanted = " or ".join(f"a {kind}" for kind in kinds)
        hint = "; write relation[column]" if got == "a relation" and "set" in kinds else ""
        raise self.error(self.tokens[k], f"{wanted} must stand here, not {got}{hint}")

    def objects_in(self, picked: Picked) -> Variable:
        """Make the set of the objects in a column of a relation."""
        column, relation = picked.column, picked.variable
        assert column is not None
        domain = self.domain(column, picked.token)
        key = sql(domain.step, f".{domain.key} = ", relation.step, f".{plain(column.name)}")
        source = sql(domain.step, " SEMI JOIN ", relation.step, " ON ", key)
        return replace(domain, step=Step(step_name(column.name), source))

    def text(self, k: int) -> str:
        """Give an argument that must be a text."""
        found = self.operand(k)
        if not isinstance(found, Constant) or not isinstance(found.value, str):
            raise self.error(self.tokens[k], "a text in quotes must stand here")
        return found.value

    def metres(self, k: int) -> float:
        """Give an argument that must be a length."""
        found = self.operand(k)
        is_number = isinstance(found, Constant) and type(found.value) in (int, float)
        if not is_number or found.unit == "deg":  # type: ignore[union-attr]
            raise self.error(self.tokens[k], "a length must stand here, such as 20mm")
        assert isinstance(found, Constant)
        return in_unit(found)

    def column(self, relation: Variable, token: Token) -> Column:
        """Look up a column of a relation, by name or from 1.

        Raises
        ------
        ScriptError
            If there is none, with the near names.
        """
        if relation.kind != "relation":
            raise self.error(
                token, f"only relations have columns in brackets, not a {relation.kind}"
            )
        names = [each.name for each in relation.columns]
        if token in names:
            return relation.columns[names.index(token)]
        if token.isdecimal() and 0 < int(token[:9]) <= len(names):
            return relation.columns[int(token[:9]) - 1]
        near = near_names(token, names) or names
        raise self.error(token, f"no column {str(token)!r}; there is {', '.join(near)}")

    def domain(self, column: Column, place: Place) -> Variable:
        """Give the rows that a column names.

        Raises
        ------
        ScriptError
            If it is a column of values.
        """
        if column.domain is None:
            raise self.error(place, f"[{column.name}] is a column of values and names no objects")
        return column.domain

    def quoted_path(self, constant: Constant) -> Reference:
        """Read a property in quotes, `"Set.Property"`, or `"Property"` of any set."""
        pset, dot, prop = str(constant.value).rpartition(".")
        parts = (pset, prop) if dot else ("", prop)
        path = tuple(Token.new_borrow_pos("NAME", part, constant.token) for part in parts)
        return Reference(None, None, path)

    def require(self, place: Place, wrong: Sql) -> None:
        """Note what only the data can tell."""
        self.compiler.require(Requirement(place, Step("wrong", wrong)))

    # keywords

    def options(self, keywords: tuple[Argument, ...] | None) -> list[Sql]:
        """Write the keyword arguments as named arguments of a macro, by default the operator's."""
        if keywords is None:
            keywords = self.operator.keywords()
        known = {each.name: each for each in keywords}
        written = []
        for name, (token, value) in self.keywords.items():
            argument = known.get({"tol": "tolerance"}.get(name, name))
            if argument is None:
                near = near_names(name, known) or list(known)
                there = f"there is {', '.join(near)}" if near else "it takes none"
                raise self.error(token, f"no keyword {name!r}; {there}")
            written.append(sql(f"{argument.name} := ", self._option(argument, token, value)))
        return written

    def _option(self, argument: Argument, token: Token, value: Expression) -> str:
        if not isinstance(value, Constant):
            raise self.error(value.token, f"{token} must be a number, a text, true or false")
        given = value.value
        if given is None:
            return "NULL"
        kinds: dict[str, tuple[type, ...]] = {"boolean": (bool,), "text": (str,)}
        wanted = kinds.get(argument.kind, (int, float))
        if not isinstance(given, wanted) or (isinstance(given, bool) and wanted != (bool,)):
            raise self.error(value.token, f"{token} must be a {argument.kind}, got {value.token}")
        is_angle = "(degrees" in argument.doc
        if value.unit is not None and (value.unit == "deg") != is_angle:
            unit = "degrees" if is_angle else "metres" if "(metres" in argument.doc else "no unit"
            raise self.error(value.token, f"{token} is a number of {unit}, got {value.token}")
        return literal(given if isinstance(given, bool | str) else in_unit(value))

    # results

    def call_macro(
        self,
        macro: str,
        *arguments: Sql | Variable | str,
        keywords: tuple[Argument, ...] | None = None,
    ) -> Sql:
        """Write a call of a table macro: variables stand for the names of their steps."""
        written: list[Sql] = []
        for each in arguments:
            if isinstance(each, Variable):
                name = Bodies(each.step) if each.kind == "set" else Quoted(each.step)
                written.append(sql(name))
            else:
                written.append(sql(each))
        parts: list[Any] = [f"{macro}("]
        for k, part in enumerate([*written, *self.options(keywords)]):
            parts += [", ", part] if k else [part]
        return sql(*parts, ")")

    def columns(self, names: Sequence[str], *, at_least: int | None = None) -> list[str]:
        """Name the columns of the result as the script does.

        Parameters
        ----------
        names : sequence of str
            What they are called where the script does not name them.
        at_least : int, optional
            How many of them the script must name; by default all.
        """
        if self.target is None:
            return list(names)
        wanted = self.target.columns
        place = self.target.name
        fewest = len(names) if at_least is None else at_least
        if wanted is None:
            shown = "|".join(names[:fewest])
            raise self.error(place, f"gives a relation; write {place}[{shown}] =")
        if not wanted:
            return [str(k + 1) for k in range(len(names))]
        found = [str(each) for each in wanted]
        if not fewest <= len(found) <= len(names):
            count = f"{fewest}" if fewest == len(names) else f"{fewest} to {len(names)}"
            raise self.error(place, f"gives {count} columns ({', '.join(names)}), not {len(found)}")
        return found

    def relation(
        self, columns: Sequence[tuple[str | Sql, Column]], source: Sql, **clauses: Any
    ) -> Variable:
        """Make a relation: what its columns are in the source, and as the script has them."""
        chosen: list[Any] = []
        for k, (expression, column) in enumerate(columns):
            name = plain(column.name)
            text = sql(expression)
            is_its_name = str(text.pieces[-1]).rpartition(".")[2] in (name, column.name)
            renamed = text if is_its_name else sql(text, f" AS {name}")
            chosen += [", ", renamed] if k else [renamed]
        step = Step(self.name, source, sql(*chosen), **clauses)
        return Variable("relation", step, tuple(column for _, column in columns))

    def same_columns(self, relation: Variable, **clauses: Any) -> Variable:
        """Make a relation with the columns of another one, as the script names them."""
        names = self.columns([each.name for each in relation.columns])
        columns = tuple(
            replace(each, name=name) for name, each in zip(names, relation.columns, strict=True)
        )
        if columns == relation.columns:
            return Variable("relation", Step(self.name, sql(relation.step), **clauses), columns)
        pairs = [
            (plain(each.name), column)
            for each, column in zip(relation.columns, columns, strict=True)
        ]
        return self.relation(pairs, sql(relation.step), **clauses)

    def same_rows(self, rows: Variable, source: Sql, **clauses: Any) -> Variable:
        """Make a variable that has some of the rows of another one, which is no relation."""
        found = self.rows(rows.kind, Step(self.name, source, **clauses), rows.models)
        return replace(found, ifc_class=rows.ifc_class)

    def rows(self, kind: Kind, step: Step, models: tuple[Model, ...] = ()) -> Variable:
        """Make a variable that is no relation."""
        if self.target is not None and self.target.columns is not None:
            place = self.target.columns[0] if self.target.columns else self.target.name
            raise self.error(place, f"gives a {kind}, which has no columns in brackets")
        return Variable(kind, step, models=models)
