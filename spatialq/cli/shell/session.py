"""A session of the shell: runs what was typed, and keeps the variables of scripts."""

import traceback
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

import typer

from spatialq.cli.errors import sentence
from spatialq.cli.interruption import interruptible
from spatialq.cli.rendering import note
from spatialq.cli.results import show_rows, show_statement
from spatialq.cli.shell.completion import COMMANDS, Names
from spatialq.cli.shell.text import is_complete, language
from spatialq.errors import SpatialqError
from spatialq.functions.sql_text import identifier

if TYPE_CHECKING:
    import duckdb

    from spatialq.ql4bim.program import Program

HELP = """\
SQL ends with a semicolon:          SELECT count(*) FROM read_ifc('house.ifc');
QL4BIM scripts assign variables:    m = ImportModel("house.ifc")
                                    w = TypeFilter(m is IfcWall)
and variables are views in SQL:     SELECT name FROM w;
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
        Whether anything ended in an error, or was interrupted.
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
            self._names = Names.of(self._con, self.variables, known)
        return self._names

    def run(self, text: str) -> bool:
        """Run what was typed; False if the session is to end. Errors are said, and end nothing."""
        import duckdb

        self._names = None
        try:
            with interruptible(self._con):
                return self._run(text)
        except KeyboardInterrupt:
            self._fail("interrupted")
        except (SpatialqError, ValueError, OSError, duckdb.Error) as error:
            self._fail(f"error: {sentence(error)}")
        except Exception:  # an error in spatialq itself ends nothing either
            self._fail(traceback.format_exc())
        return True

    def _run(self, text: str) -> bool:
        match language(text):
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

    def _run_sql(self, text: str) -> None:
        """Run statements, and show the rows of each."""
        from spatialq.database import statements

        show = partial(show_statement, self._con, limit=self._limit, as_json=False)
        if self._con.extract_statements(text):
            statements.run(self._con, "shell", text, show, before=show)

    def _run_script(self, text: str) -> None:
        """Compile a script together with those before it, and show its result."""
        from spatialq.cli.scripts import run_program, show_variable
        from spatialq.ql4bim.program import compile_script

        known, typed = self._program, text.strip().removesuffix(";")
        script = typed if known is None else f"{known.text.text}\n{typed}"
        program = compile_script(script, name=NAME)
        written = run_program(self._con, program, known)
        self._make_views(program)
        for path in written:
            note(f"written: {path}")
        if not written:
            show_variable(self._con, program, limit=self._limit, as_json=False)
        self._program = program  # what failed is not kept

    def _make_views(self, program: "Program") -> None:
        """Make the variables of a program known to SQL."""
        known = {} if self._program is None else self._program.variables
        for name in program.variables:
            query = program.sql(name)
            if self._program is not None and name in known and query == self._program.sql(name):
                continue
            if name not in known and self._is_table(name):
                message = (
                    f"{NAME}: {name!r} is a table of the database; name the variable otherwise"
                )
                raise ValueError(message)
            self._con.execute(f"CREATE OR REPLACE TEMP VIEW {identifier(name)} AS {query}")

    def _is_table(self, name: str) -> bool:
        query = f"SELECT kind FROM ({TABLES}) WHERE lower(name) = lower(?)"
        return any(kind != TEMPORARY for (kind,) in self._con.execute(query, [name]).fetchall())

    def _run_command(self, command: str, *arguments: str) -> bool:
        match command, arguments:
            case ".quit" | ".exit", ():
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
    for text in statements(lines):
        if not session.run(text):
            return


def statements(lines: Iterable[str]) -> Iterator[str]:
    """Join lines until they are complete; the rest at the end may not be."""
    text = ""
    for line in lines:
        text += line
        if is_complete(text):
            if text.strip():
                yield text
            text = ""
    if text.strip():
        yield text
