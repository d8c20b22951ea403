"""A compiled script: a step of a query for each variable."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from spatialq.io.ifc.schemas import near_names
from spatialq.ql4bim.compiler import Compiler, Export
from spatialq.ql4bim.meshes import with_meshes
from spatialq.ql4bim.operators import BY_NAME
from spatialq.ql4bim.parser import parse
from spatialq.ql4bim.requirements import Requirement, distinct
from spatialq.ql4bim.syntax import Function, Statement
from spatialq.ql4bim.text import Place, Span, Text
from spatialq.ql4bim.variables import Variable
from spatialq.query.steps import Step, Table, plain, sql, write

Files = str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]] | None

NAMES = {"name": "name", "ifc_class": "class", "storey": "storey"}
"""The columns that are added to an object of a relation, and how they end there."""


@dataclass(frozen=True)
class Program:
    """What a script means: nothing has been read yet.

    Parameters
    ----------
    text : Text
        The script, for errors.
    variables : mapping from str to Variable
    exports : tuple of Export
        What ExportModel writes.
    required : tuple of Requirement
        What the script takes for granted, and only the data can tell.
    result : str or None
        The variable of the last statement that is no ExportModel.
    places : mapping from str to Place
        Where each variable was assigned last.
    """

    text: Text
    variables: Mapping[str, Variable]
    exports: tuple[Export, ...]
    required: tuple[Requirement, ...]
    result: str | None
    places: Mapping[str, Place]

    def step(self, variable: str | None = None) -> Step | Table:
        """Give the step whose rows are those of a variable, by default of the result."""
        return self.step_of(self.variable(variable))

    def step_of(self, variable: Variable) -> Step | Table:
        """Give the step for a variable, with meshes where it needs some."""
        return with_meshes(variable)

    def with_names(self, variable: str | None = None) -> Step | Table:
        """Give the step of a variable, with the names of the objects of a relation."""
        relation, step = self.variable(variable), self.step(variable)
        columns: list[str] = []
        source = sql(step, " AS r")
        for number, column in enumerate(relation.columns):
            name, objects = plain(column.name), f"o{number}"
            columns.append(f"r.{name}")
            if column.domain is None or column.domain.kind != "set":
                continue
            columns += (
                f"{objects}.{own} AS {plain(f'{column.name}_{added}')}"
                for own, added in NAMES.items()
            )
            once = sql("(SELECT DISTINCT ON (global_id) * FROM ", column.domain.step, ")")
            same = f" AS {objects} ON {objects}.global_id = r.{name}"
            source = sql(source, " LEFT JOIN ", once, same)
        if len(columns) == len(relation.columns):
            return step
        return Step("named", source, sql(", ".join(columns)))

    def sql(self, variable: str | None = None) -> str:
        """Write the statement for a variable, by default for the result.

        Raises
        ------
        ScriptError
            If the script has no such variable.
        """
        return write(self.step(variable))

    def assigned(self, *, after: "Program | None" = None) -> list[str]:
        """List the variables, or those that were assigned after a program that this one goes on."""
        if after is None:
            return list(self.variables)
        end = len(after.text.text)
        return [name for name, place in self.places.items() if (place.start_pos or 0) >= end]

    def variable(self, name: str | None = None) -> Variable:
        """Give a variable, by default the result.

        Raises
        ------
        ScriptError
            If the script has none of that name.
        """
        name = self.result if name is None else name
        if name is None or name not in self.variables:
            reason = "the script has no statement, and so no result"
            if self.result is not None:
                reason = f"the script has {unknown_variable(str(name), self.variables)}"
            raise self.text.error(Span(0, 0), reason)
        return self.variables[name]


def unknown_variable(name: str, variables: Mapping[str, Variable]) -> str:
    """Say that there is no such variable, and the near names, or all."""
    near = near_names(name, variables)
    hint = f"near names are {', '.join(near)}" if near else f"there is {', '.join(variables)}"
    return f"no variable {name!r}; {hint}"


def compile_script(text: str, *, name: str = "<script>", models: Files = None) -> Program:
    """Compile a QL4BIM script, without touching a database or a file.

    Parameters
    ----------
    text : str
    name : str
        What errors call the script.
    models : path or mapping from str to path, optional
        The file for the one ImportModel of the script, instead of what it names, or files by
        variable. A script without ImportModel then has the variable `model`, or those of the
        mapping.

    Raises
    ------
    ScriptError
        If the script is wrong, with the place.
    """
    script = Text(text.removeprefix("\ufeff"), name)
    statements, functions = parse(script)
    compiler = Compiler(script, _by_name(script, functions), _paths(models))
    compiler.add_models(statements)
    compiler.run(statements)
    compiler.require_named()
    made = [each for each in statements if _operator(each) != "ExportModel"]
    result = (made or statements)[-1].target.name if statements else None
    return Program(
        script,
        compiler.scope,
        tuple(compiler.exports),
        tuple(distinct(compiler.required)),
        None if result is None else str(result),
        {str(each.target.name): each.target.name for each in statements},
    )


def _operator(statement: Statement) -> str:
    name = str(statement.call.operator)
    return BY_NAME[name].name if name in BY_NAME else name


def _by_name(script: Text, functions: list[Function]) -> dict[str, Function]:
    found: dict[str, Function] = {}
    for each in functions:
        name = str(each.name)
        if name in found or name in BY_NAME:
            kind = "an operator" if name in BY_NAME else "a function"
            raise script.error(each.name, f"there is {kind} {name} already")
        if not name[0].isupper():
            raise script.error(each.name, f"functions begin with a capital letter, got {name!r}")
        found[name] = each
    return found


def _paths(models: Files) -> str | dict[str, str]:
    if models is None:
        return {}
    if isinstance(models, Mapping):
        return {name: os.fspath(path) for name, path in models.items()}
    return os.fspath(models)
