"""Runs scripts: the rows of their variables, and the files that they write."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.database.partial_models import export_ifc
from spatialq.errors import FileError, QueryError, ScriptError
from spatialq.functions.sql_text import literal
from spatialq.io.ifc.schemas import near_names, property_sets
from spatialq.ql4bim.compiler import Requirement
from spatialq.ql4bim.program import Files, Program, compile_script
from spatialq.ql4bim.text import read_script
from spatialq.query.query import of_step
from spatialq.query.relational import Query
from spatialq.query.steps import Step, Table, in_order, sql, write

if TYPE_CHECKING:
    import duckdb


class Script(Mapping[str, Query]):
    """The variables of a script that has run, each as a query.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    program : Program
    queries : dict from str to Query
        Those of some variables, which are made already.
    exported : list of Path
        The files that ExportModel wrote, in the order of the script.
    """

    def __init__(
        self,
        con: "duckdb.DuckDBPyConnection",
        program: Program,
        queries: dict[str, Query],
        exported: list[Path],
    ) -> None:
        self._con = con
        self._queries = queries
        self.program = program
        self.exported = exported

    def __getitem__(self, name: str) -> Query:
        if name not in self.program.variables:
            raise KeyError(name)
        if name not in self._queries:
            self._queries[name] = of_step(self._con, self.program.step(name), caller=name)
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.program.variables)

    def __len__(self) -> int:
        return len(self.program.variables)

    def __repr__(self) -> str:
        return f"<Script: {', '.join(self)}>"

    @property
    def result(self) -> Query:
        """The variable of the last statement that is no ExportModel.

        Raises
        ------
        ScriptError
            If the script has no statement.
        """
        self.program.variable()
        assert self.program.result is not None
        return self[self.program.result]

    def sql(self, variable: str | None = None) -> str:
        """Write the statement for a variable, by default for the result."""
        return self.result.sql() if variable is None else self[variable].sql()


def run_script(
    con: "duckdb.DuckDBPyConnection", script: str | os.PathLike[str], *, models: Files = None
) -> Script:
    """Run a QL4BIM script.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        Of `spatialq.connect`.
    script : str or path
        The script, or a file, whose name ends in ``.ql4bim``.
    models : path or mapping from str to path, optional
        The file for the one ImportModel of the script, instead of what it names, or files by
        variable. A script without ImportModel then has the variable `model`, or those of the
        mapping.

    Returns
    -------
    Script
        A mapping from each variable to its rows as a `Query`, which runs when it is read. What
        ExportModel writes has been written.

    Raises
    ------
    ScriptError
        If the script is wrong, with the place; nothing has been written then.
    FileError
        If a file cannot be read or written.

    Examples
    --------
    >>> script = 'm = ImportModel("house.ifc")  w = TypeFilter(m is IfcWall)'
    >>> spatialq.run_script(con, script)["w"].count()  # doctest: +SKIP
    15
    """
    text, name = read_script(script)
    return run_program(con, compile_script(text, name=name, models=models))


def run_program(
    con: "duckdb.DuckDBPyConnection", program: Program, *, after: Program | None = None
) -> Script:
    """Look whether the data have what a program names, and write its files.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    program : Program
    after : Program, optional
        Its beginning, which has run: the files of that are not written again.

    Raises
    ------
    ScriptError
        If the script names what is not there; nothing has been written then.
    FileError
        If a file cannot be read or written.
    """
    new = program
    if after is not None:
        new = replace(
            program,
            exports=program.exports[len(after.exports) :],
            required=program.required[len(after.required) :],
        )
    require_properties(con, new)
    queries = require_bound(con, program, program.assigned(after=after))
    return Script(con, program, queries, write_exports(con, new))


def require_properties(con: "duckdb.DuckDBPyConnection", program: Program) -> None:
    """Make sure that each property of the script is one of some object.

    Raises
    ------
    ScriptError
        If it is not, with the near names.
    """
    for each in data_requirements(program):
        names = con.execute(write(names_of_properties(each))).fetchall()
        if any(_is_named(each, pset, prop) for pset, prop in names):
            continue
        wanted = each.prop if each.pset is None else f"{each.pset}.{each.prop}"
        known = {prop: prop for _, prop in names}
        if each.pset is not None:
            known = {f"{pset}.{prop}": prop for pset, prop in names}
        near = near_names(wanted, [name for name in known if name])
        hint = f"near names are {', '.join(near)}" if near else "the model has no such name"
        reason = f"{each.caller}: no object has a property {wanted}; {hint}"
        raise program.text.error(each.place, reason)


def data_requirements(program: Program) -> list[Requirement]:
    """List the properties that only the data can tell, each once."""
    found = {
        (each.models, each.pset, each.prop): each
        for each in program.required
        if each.pset is None or each.prop not in property_sets().get(each.pset, ())
    }
    return list(found.values())


def _is_named(each: Requirement, pset: str, prop: str) -> bool:
    return prop == each.prop and each.pset in (None, pset)


def names_of_properties(each: Requirement) -> Step:
    """Make a query for the property sets and properties of some models."""
    first, *others = (model.table("properties") for model in each.models)
    source = [first, *(piece for other in others for piece in (" UNION ALL FROM ", other))]
    return Step("names", sql("(FROM ", *source, ")"), sql("pset, property"), is_distinct=True)


def require_bound(
    con: "duckdb.DuckDBPyConnection", program: Program, names: Iterable[str]
) -> dict[str, Query]:
    """Make the queries that no other one needs: DuckDB understands all that the script asks for.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    program : Program
    names : iterable of str
        The variables to look at.

    Raises
    ------
    ScriptError
        If it does not, as there is no such table or column.
    """
    steps = {name: program.variables[name].step for name in names}
    used: set[Step | Table] = set()
    for step in steps.values():
        if isinstance(step, Step) and step not in used:
            used.update(set(in_order(step)) - {step})
    last = [name for name, step in steps.items() if step not in used]
    try:
        return {name: of_step(con, program.step(name), caller=name) for name in last}
    except QueryError:
        for name in steps:
            try:
                of_step(con, program.step(name), caller=name)
            except QueryError as error:
                raise _placed(program, name, error) from None
        raise


def _placed(program: Program, name: str, error: Exception) -> ScriptError:
    place = program.places.get(name)
    assert place is not None
    return program.text.error(place, str(error))


def write_exports(con: "duckdb.DuckDBPyConnection", program: Program) -> list[Path]:
    """Write what ExportModel names, after all of it has been looked at.

    Raises
    ------
    ScriptError
        If a set has no objects, or they are of several files.
    FileError
        If a file cannot be written.
    """
    statements = []
    for each in program.exports:
        statement = write(program.step_of(each.objects))
        chosen = f"SELECT global_id, file_name FROM (\n{statement}\n)"
        (count,) = con.execute(f"SELECT count(*) FROM ({chosen})").fetchall()[0]
        if not count:
            reason = f"ExportModel: there are no objects to write as {literal(each.path)}"
            raise program.text.error(each.place, reason)
        statements.append((each, chosen))
    for each, chosen in statements:
        try:
            export_ifc(con, chosen, each.path)
        except FileError:
            raise
        except ValueError as error:
            raise program.text.error(each.place, str(error)) from None
    return [Path(each.path) for each in program.exports]
