"""Runs scripts: the rows of their variables, and the files that they write."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.database.partial_models import write_objects
from spatialq.database.sources import require_one_crs
from spatialq.errors import CrsError, FileError, QueryError, ScriptError
from spatialq.export.atomic import require_different, require_writable, together
from spatialq.functions.sql_text import literal
from spatialq.io.access import for_connection
from spatialq.ql4bim.meshes import with_meshes
from spatialq.ql4bim.program import Files, Program, compile_script, unknown_variable
from spatialq.ql4bim.text import Span, read_script
from spatialq.ql4bim.variables import Variable
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
            raise KeyError(unknown_variable(name, self.program.variables))
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

    def with_names(self, variable: str | None = None) -> Query:
        """Give a variable, by default the result, with name, class and storey of its objects.

        Returns
        -------
        Query
            A relation with columns such as ``wall_name``, ``wall_class`` and ``wall_storey``
            behind a column ``wall`` of objects. Other variables are as they are.

        Raises
        ------
        ScriptError
            If the script has no such variable.
        """
        return of_step(self._con, self.program.with_names(variable), caller="with_names")

    def elements(self, variable: str | None = None) -> Query:
        """Give the objects of a set that have a mesh, as `read_ifc` has them.

        Parameters
        ----------
        variable : str, optional
            A set of objects, by default the result.

        Returns
        -------
        Elements
            For the spatial methods, such as ``script.elements("doors").closer_than(walls, 1.0)``.

        Raises
        ------
        ScriptError
            If the script has no such variable, or it is no set.
        """
        found = self.program.variable(variable)
        if found.kind != "set":
            reason = f"elements: objects of a set have meshes, not those of a {found.kind}"
            raise self.program.text.error(Span(0, 0), reason)
        meshes = found.beside("elements")
        source = sql(meshes, " SEMI JOIN ", found.step, " USING (file_name, step_id)")
        return of_step(self._con, with_meshes(Variable("set", Step("elements", source))))


@for_connection
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


@for_connection
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
    queries = require_bound(con, program, program.assigned(after=after))
    require_met(con, new)
    return Script(con, program, queries, write_exports(con, new))


def require_met(con: "duckdb.DuckDBPyConnection", program: Program) -> None:
    """Make sure that the data are as the script takes for granted.

    Raises
    ------
    ScriptError
        If they are not.
    """
    for each in program.required:
        for (reason,) in con.execute(write(each.wrong)).fetchall():
            raise program.text.error(each.place, reason)


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
        If it does not, as there is no such table or column, or if tables that stand together
        have different CRS, or models are at different places on the map.
    """
    steps = {name: program.variables[name].step for name in names}
    used: set[Step | Table] = set()
    for step in steps.values():
        if isinstance(step, Step) and step not in used:
            used.update(set(in_order(step)) - {step})
    last = [name for name, step in steps.items() if step not in used]
    try:
        queries = {name: of_step(con, program.step(name), caller=name) for name in last}
    except QueryError:
        for name in steps:
            try:
                of_step(con, program.step(name), caller=name)
            except QueryError as error:
                raise _placed(program, name, error) from None
        raise
    for name, query in queries.items():
        try:
            require_one_crs(con, query.sql())
        except CrsError as error:
            raise program.text.error(program.places[name], f"{name}: {error}") from None
    return queries


def _placed(program: Program, name: str, error: Exception) -> ScriptError:
    place = program.places.get(name)
    assert place is not None
    reason = str(error)
    tables = [each.path for each in program.variables[name].models if not each.is_file]
    if tables and "no table" in reason:
        reason = f"{name}: {tables[0]!r} is no model: neither an .ifc or .ifczip file nor a table"
    return program.text.error(place, reason)


@together()
def write_exports(con: "duckdb.DuckDBPyConnection", program: Program) -> list[Path]:
    """Write what ExportModel names, after all of it has been looked at.

    Raises
    ------
    ScriptError
        If a set has no objects, or they are of several files.
    FileError
        If a file cannot be written.
    ValueError
        If two of the files are one.
    """
    require_different("ExportModel", [Path(each.path) for each in program.exports])
    chosen = []
    for each in program.exports:
        require_writable(Path(each.path))
        statement = write(program.step_of(each.objects))
        rows = con.execute(
            f"SELECT DISTINCT global_id, file_name FROM (\n{statement}\n)"
        ).fetchall()
        files = sorted({str(name) for _, name in rows})
        if len(files) != 1:
            reason = f"there are no objects to write as {literal(each.path)}"
            if files:
                several = " and ".join(files)
                reason = f"the objects are from {several}; a file can be written of one model only"
            raise program.text.error(each.place, f"ExportModel: {reason}")
        chosen.append((each, rows, statement))
    for each, rows, statement in chosen:
        try:
            write_objects(con, rows, statement, each.path)
        except FileError:
            raise
        except ValueError as error:
            raise program.text.error(each.place, str(error)) from None
    return [Path(each.path) for each in program.exports]
