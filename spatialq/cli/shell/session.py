"""A session of the shell: runs what was typed, and keeps the variables of scripts."""

import traceback
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

import typer

from spatialq.cli.errors import sentence
from spatialq.cli.interruption import interruptible
from spatialq.cli.rendering import forget_warnings, note
from spatialq.cli.results import show_rows, show_statement
from spatialq.cli.shell.completion import COMMANDS, Names
from spatialq.cli.shell.text import Typed, language, name_in
from spatialq.errors import ScriptError, SpatialqError
from spatialq.functions.sql_text import identifier

if TYPE_CHECKING:
    import duckdb

    from spatialq.ql4bim.program import Program

HELP = """\
SQL ends with a semicolon:          SELECT count(*) FROM read_ifc('house.ifc');
QL4BIM scripts assign variables:    m = ImportModel("house.ifc")
                                    w = TypeFilter(m is IfcWall)
and variables are views in SQL:     SELECT name FROM w;
A name alone shows its rows:        w
Ctrl-C drops what was typed or stops what runs; Tab completes names and files.
"""
TEMPORARY = "temporary view"
TABLES = f"""
SELECT schema_name AS schema, table_name AS name, 'table' AS kind
FROM duckdb_tables() WHERE NOT internal
UNION ALL SELECT schema_name, view_name, if(temporary, '{TEMPORARY}', 'view')
FROM duckdb_views() WHERE NOT internal
ORDER BY ALL
"""
ENDING = (".quit", ".exit")
FIRST = 5
"""Rows that are shown of a variable when it is assigned."""
NAME = "shell"
"""What errors are of."""


class Session:
    """What was typed so far, on one connection.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    limit : int
        Maximum number of rows to print.

    Attributes
    ----------
    failed : bool
        Whether anything ended in an error.
    """

    def __init__(self, con: "duckdb.DuckDBPyConnection", *, limit: int) -> None:
        self._con, self._limit = con, limit
        self._program: Program | None = None
        self._names: Names | None = None
        self.failed = False

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the scripts so far."""
        return () if self._program is None else tuple(self._program.variables)

    @property
    def names(self) -> Names:
        """What there is to name, for completion; looked up again when something has run."""
        if self._names is None:
            from spatialq.ql4bim.operators import operators

            known = [each.name for each in operators()]
            variables = {} if self._program is None else self._program.variables
            classes = {name: each.ifc_class for name, each in variables.items()}
            self._names = Names.of(self._con, classes, known)
        return self._names

    def run(self, text: str) -> bool:
        """Run what was typed; False if the session is to end. Errors are said, and end nothing.

        Raises
        ------
        KeyboardInterrupt
            If Ctrl-C stopped it.
        """
        import duckdb

        self._names = None
        forget_warnings()
        try:
            with interruptible(self._con):
                return self._run(text)
        except (SpatialqError, ValueError, OSError, duckdb.Error) as error:
            self._fail(f"error: {sentence(error)}")
        except Exception:  # an error in spatialq itself ends nothing either
            self._fail(traceback.format_exc())
        return True

    def _run(self, text: str) -> bool:
        match language(text, self.variables):
            case "name":
                return self._run_name(name_in(text))
            case "command":
                return self._run_command(*text.split())
            case "script":
                self._run_script(text)
            case "sql":
                self._run_sql(text)
        return True

    def _fail(self, text: str) -> None:
        self.failed = True
        note(text)

    def _run_name(self, name: str) -> bool:
        """Show what a name stands for; some words are commands here, as in other shells."""
        if self._program is not None and name in self.variables:
            self._show(self._program, name, limit=self._limit)
        elif f".{name}" in (".help", *ENDING):
            return self._run_command(f".{name}")
        else:
            self._run_sql(f"FROM {identifier(name)}")
        return True

    def _run_sql(self, text: str) -> None:
        """Run statements, and show the rows of each."""
        from spatialq.database import statements

        show = partial(show_statement, self._con, limit=self._limit, as_json=False)
        if self._con.extract_statements(text):
            statements.run(self._con, "shell", text, show, before=show)

    def _run_script(self, text: str) -> None:
        """Compile a script together with those before it, and show the beginning of its result."""
        from spatialq.ql4bim.program import compile_script
        from spatialq.ql4bim.run import run_program

        known, typed = self._program, text.strip().removesuffix(";")
        script = typed if known is None else f"{known.text.text}\n{typed}"
        try:
            program = compile_script(script, name=NAME)
        except ScriptError as error:
            if error.reason.startswith("no operator "):
                note("a function must be defined here before it is called")
            raise
        written = run_program(self._con, program, after=known).exported
        new = program.assigned(after=known)
        self._make_views(program, new)
        for path in written:
            note(f"written: {path}")
        if not written and program.result in new:
            self._show(program, program.result, limit=min(self._limit, FIRST), is_brief=True)
        self._program = program  # what failed is not kept

    def _show(
        self, program: "Program", variable: str | None, *, limit: int, is_brief: bool = False
    ) -> None:
        from spatialq.cli.scripts import show_variable

        show_variable(self._con, program, variable, limit=limit, as_json=False, is_brief=is_brief)

    def _make_views(self, program: "Program", variables: Iterable[str]) -> None:
        """Make variables of a program known to SQL."""
        known = self.variables
        for name in variables:
            if name not in known:
                self._require_free(name, known)
            query = program.sql(name)
            self._con.execute(f"CREATE OR REPLACE TEMP VIEW {identifier(name)} AS {query}")

    def _require_free(self, name: str, variables: Iterable[str]) -> None:
        """Make sure that a view can have the name of a new variable, in any case of letters.

        Raises
        ------
        ValueError
            If it is that of a table or of another variable.
        """
        for each in variables:
            if each.lower() == name.lower():
                message = (
                    f"{NAME}: there is a variable {each!r} already, and SQL, where variables are "
                    f"views, takes {name!r} for the same name"
                )
                raise ValueError(message)
        query = f"SELECT kind FROM ({TABLES}) WHERE lower(name) = lower(?)"
        if any(kind != TEMPORARY for (kind,) in self._con.execute(query, [name]).fetchall()):
            message = f"{NAME}: {name!r} is a table of the database; name the variable otherwise"
            raise ValueError(message)

    def _run_command(self, command: str, *arguments: str) -> bool:
        match command, arguments:
            case command, () if command in ENDING:
                return False
            case ".help", ():
                typer.echo(HELP)
                for name, meaning in COMMANDS.items():
                    typer.echo(f"{name:8} {meaning}")
            case ".tables", ():
                show_rows(self._con.sql(TABLES), limit=self._limit, as_json=False)
            case ".sql", (name,):
                typer.echo(self._sql_of(name))
            case _:
                near = ", ".join(get_close_matches(command, COMMANDS) or COMMANDS)
                message = f"shell: no command {' '.join((command, *arguments))!r}; there is {near}"
                raise ValueError(message)
        return True

    def _sql_of(self, variable: str) -> str:
        """Write the SQL of a variable.

        Raises
        ------
        ValueError
            If there is none of that name.
        """
        if self._program is None or variable not in self._program.variables:
            near = ", ".join(get_close_matches(variable, self.variables) or self.variables)
            message = f"shell: no variable {variable!r}; there is {near or 'none'}"
            raise ValueError(message)
        return self._program.sql(variable)


def run_lines(session: Session, lines: Iterable[str]) -> None:
    """Run what comes from a pipe or a file, statement by statement."""
    for text in statements(lines, lambda: session.variables):
        if not session.run(text):
            return


def statements(lines: Iterable[str], variables: Callable[[], tuple[str, ...]]) -> Iterator[str]:
    """Join lines until they can be run.

    Parameters
    ----------
    lines : iterable of str
    variables : callable
        Gives the variables that there are when a statement begins.
    """
    typed = Typed(variables())
    for line in lines:
        if typed.is_ended_by(line):
            yield typed.text
            typed = Typed(variables())
        typed.add(line)
        if typed.is_complete:
            if not line.isspace():
                yield typed.text
            typed = Typed(variables())
    if typed.text.strip():
        yield typed.text
