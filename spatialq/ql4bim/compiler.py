"""Compiles the statements of a script one after the other, each to a step of a query."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from os.path import normpath

from lark import Token

from spatialq.errors import ScriptError
from spatialq.io.ifc.schemas import near_names
from spatialq.ql4bim.meshes import Objects
from spatialq.ql4bim.operators import BY_NAME, MODEL
from spatialq.ql4bim.parser import RESERVED
from spatialq.ql4bim.requirements import Requirement, same_elements
from spatialq.ql4bim.syntax import Call, Formal, Function, Reference, Statement
from spatialq.ql4bim.text import Place, Span, Text
from spatialq.ql4bim.use import OperatorCall, step_name
from spatialq.ql4bim.variables import Model, Variable
from spatialq.query.steps import Step, plain, sql

IMPORTS = ("ImportModel", "IM")
MAX_CALLS = 10_000
"""Calls of a script, those within functions as often as they run."""
DEEPEST = 50
"""Functions that call each other: they are compiled recursively."""


@dataclass(frozen=True)
class Export:
    """A set that the script writes as a file."""

    objects: Variable
    path: str
    place: Place


@dataclass
class Compiler:
    """What is known while a script is compiled.

    Parameters
    ----------
    text : Text
    functions : mapping from str to Function
    files : str or mapping from str to str
        Files instead of those that ImportModel names: for the one, or by variable.
    """

    text: Text
    functions: Mapping[str, Function]
    files: str | Mapping[str, str]
    scope: dict[str, Variable] = field(default_factory=dict)
    imports: dict[Model, Variable] = field(default_factory=dict)
    exports: list[Export] = field(default_factory=list)
    required: list[Requirement] = field(default_factory=list)
    distinct: set[tuple[Model, ...]] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    running: list[Token] = field(default_factory=list)
    calls: int = 0

    def error(self, place: Place, reason: str) -> ScriptError:
        """Make an error that says in which functions it is, and where these are called."""
        for token in reversed(self.running):
            line = self.text.text.count("\n", 0, token.start_pos) + 1
            reason += f"; in {token}, which line {line} calls"
        return self.text.error(place, reason)

    def add_models(self, statements: list[Statement]) -> None:
        """Add the models that were said from outside to a script that imports none.

        Raises
        ------
        ScriptError
            If it imports some, but not the one that a file was given for.
        """
        files = {"model": self.files} if isinstance(self.files, str) else self.files
        imported = {
            str(each.target.name): each.target.name
            for each in statements
            if str(each.call.operator) in IMPORTS
        }
        if imported:
            wrong = [] if isinstance(self.files, str) else sorted(files.keys() - imported)
            if wrong:
                raise self.error(next(iter(imported.values())), _no_model(wrong[0], imported))
            return
        self.given = set() if isinstance(self.files, str) else set(files)
        for name, path in files.items():
            model = Model(path, is_file=MODEL.search(path) is not None)
            step = Objects(name, model.table("objects"), model=model)
            self.scope[name] = self.imports[model] = Variable("set", step, models=(model,))

    def require_named(self) -> None:
        """Make sure that the script names each variable that was made a model from outside.

        Raises
        ------
        ScriptError
            If it does not.
        """
        for name in self.given - self.named:
            known = [each for each in self.scope if each not in self.given]
            if known:
                raise self.text.error(Span(0, 0), _no_model(name, known))

    def run(self, statements: list[Statement] | tuple[Statement, ...]) -> None:
        """Compile statements one after the other."""
        for each in statements:
            self.scope[str(each.target.name)] = self.call(each.call, each.target)

    def variable(self, token: Token) -> Variable:
        """Look up a variable.

        Raises
        ------
        ScriptError
            If there is none yet, with the near names.
        """
        self.named.add(str(token))
        found = self.scope.get(str(token))
        if found is None:
            near = near_names(token, self.scope)
            hint = f"near names are {', '.join(near)}" if near else "it must be assigned before"
            if token[0].isupper():
                hint = f"a property is one of a set: write m.{token}"
            elif self.running and not near:
                hint = "a function knows its own variables only"
            raise self.error(token, f"no variable {str(token)!r}; {hint}")
        return found

    def call(self, call: Call, target: Formal | None) -> Variable:
        """Compile the call of an operator or a function."""
        self.calls += 1
        if self.calls > MAX_CALLS:
            raise self.error(call.operator, f"the script has more than {MAX_CALLS:,} calls")
        name = str(call.operator)
        if name in self.functions:
            return self._function(self.functions[name], call, target)
        operator = BY_NAME.get(name)
        if operator is None:
            known = [*BY_NAME, *self.functions]
            near = near_names(name, known) or _ignoring_case(name, known)
            hint = f"near names are {', '.join(near)}" if near else "docs/ql4bim.md has all of them"
            if name.lower() in RESERVED:
                hint = f"write {name.lower()} in lower case"
            raise self.error(call.operator, f"no operator {name!r}; {hint}")
        use = OperatorCall(self, operator, call, target)
        use.read_arguments()
        found = operator.make(use)
        for each in (found, *(column.domain for column in found.columns if column.domain)):
            if each.may_be_several and each.models not in self.distinct:
                self.distinct.add(each.models)
                use.require(call.operator, same_elements(use.variable, each.models))
        return found

    def _function(self, function: Function, call: Call, target: Formal | None) -> Variable:
        """Compile a call of a function: its statements, with the arguments as variables."""
        if call.operator in self.running:
            raise self.error(call.operator, f"{call.operator} calls itself")
        if len(self.running) == DEEPEST:
            reason = f"functions call each other more than {DEEPEST} deep"
            raise self.text.error(call.operator, reason)
        arguments = [self._argument(function, call, k) for k in range(len(function.formals))]
        if len(call.arguments) > len(arguments):
            place = call.arguments[len(arguments)].token
            raise self.error(place, f"{call.operator}: takes {_formals(function)}")
        scope, self.scope = self.scope, {}
        self.running.append(call.operator)
        for formal, argument in zip(function.formals, arguments, strict=True):
            self.scope[str(formal.name)] = argument
        self.run(function.statements)
        found = self.scope[str(function.statements[-1].target.name)]
        self.running.pop()
        self.scope = scope
        return found if target is None else self._named(call, found, target)

    def _argument(self, function: Function, call: Call, k: int) -> Variable:
        name, formal = call.operator, function.formals[k]
        if k >= len(call.arguments):
            raise self.error(name, f"{name}: takes {_formals(function)}")
        each = call.arguments[k]
        if isinstance(each, Call):
            found = self.call(each, None)
        elif isinstance(each, Reference) and each.variable is not None and not each.path:
            found = self.variable(each.variable)
            if each.column is not None:
                use = OperatorCall(self, BY_NAME["Projector"], call, None)
                use._read_operand(each)
                found = use.of_kind(0, "set")
        else:
            raise self.error(each.token, f"{name}: a variable must stand here")
        if (formal.columns is not None) != (found.kind == "relation"):
            wanted = "relation" if formal.columns is not None else "set"
            raise self.error(each.token, f"{name}: a {wanted} must stand here, not a {found.kind}")
        return found if formal.columns is None else self._named(call, found, formal, each.token)

    def _named(
        self, call: Call, found: Variable, target: Formal, place: Token | None = None
    ) -> Variable:
        """Give a variable under the names of a target."""
        name = str(target.name)
        if found.kind != "relation":
            if target.columns is not None:
                reason = f"{call.operator}: gives a {found.kind}, which has no columns"
                raise self.error(place or target.name, reason)
            if not isinstance(found.step, Step) or place is not None:
                return found
            step = found.step.changed(name=step_name(name))
            return replace(found, step=step)
        if target.columns is None:
            shown = "|".join(each.name for each in found.columns)
            reason = f"{call.operator}: gives a relation; write {name}[{shown}] ="
            raise self.error(place or target.name, reason)
        names = [str(each) for each in target.columns] or [
            str(k + 1) for k in range(len(found.columns))
        ]
        if len(names) != len(found.columns):
            reason = (
                f"{call.operator}: the relation has {len(found.columns)} columns, not {len(names)}"
            )
            raise self.error(place or target.name, reason)
        columns = tuple(
            replace(each, name=new) for new, each in zip(names, found.columns, strict=True)
        )
        if columns == found.columns:
            return found
        pairs = zip(found.columns, columns, strict=True)
        chosen = ", ".join(f"{plain(old.name)} AS {plain(new.name)}" for old, new in pairs)
        step = Step(step_name(name), sql(found.step), sql(chosen))
        return Variable("relation", step, columns)

    def whole(self, models: tuple[Model, ...]) -> Variable:
        """Give all objects of some models."""
        if len(models) == 1:
            return self.imports[models[0]]
        parts: list[Step | str] = []
        for k, model in enumerate(models):
            step = self.imports[model].step
            assert isinstance(step, Step)
            parts += [" UNION ALL BY NAME FROM ", step] if k else [step]
        return Variable("set", Step("objects", sql("(FROM ", *parts, ")")), models=models)

    def require(self, requirement: Requirement) -> None:
        """Note what only the data can tell."""
        self.required.append(requirement)

    def export(self, objects: Variable, path: str, place: Place) -> None:
        """Note that a set is to be written.

        Raises
        ------
        ScriptError
            If another one is written to the same file.
        """
        if any(normpath(each.path) == normpath(path) for each in self.exports):
            raise self.error(place, f"ExportModel: {path} is written already by the script")
        self.exports.append(Export(objects, path, place))

    def path_of(self, use: OperatorCall, path: str) -> str:
        """Give the file that a variable's ImportModel reads: the one that was said from outside."""
        if isinstance(self.files, str):
            if self.imports:
                reason = "there are several models: give a file for each, by its variable"
                raise self.error(use.call.operator, f"{use.operator.name}: {reason}")
            return self.files
        # variables of functions are their own
        return path if self.running else self.files.get(use.variable, path)


def _no_model(name: str, known: Collection[str]) -> str:
    near = near_names(name, known)
    hint = f"near names are {', '.join(near)}" if near else f"there is {', '.join(known)}"
    return f"a file was given for {name!r}, which is no model of the script; {hint}"


def _ignoring_case(name: str, known: list[str]) -> list[str]:
    return [each for each in known if each.lower() == name.lower()]


def _formals(function: Function) -> str:
    shown = (
        str(each.name) + ("" if each.columns is None else f"[{'|'.join(each.columns)}]")
        for each in function.formals
    )
    return f"({', '.join(shown)})"
