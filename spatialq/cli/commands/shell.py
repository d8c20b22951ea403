"""`spatialq shell`: SQL and QL4BIM scripts, line by line."""

import sys

import typer

from spatialq.cli.databases import MEMORY, Create, Database, open_database
from spatialq.cli.options import Limit

MAX_ROWS = 20


def shell(*, database: Database = MEMORY, create: Create = False, limit: Limit = MAX_ROWS) -> None:
    """Read SQL and QL4BIM scripts line by line, from a terminal or a pipe, and print the results.

    From a pipe, the exit status is 1 if a statement failed.
    """
    from spatialq.cli.shell.session import Session, run_lines

    with open_database("shell", database, create=create) as con:
        session = Session(con, limit=limit)
        if sys.stdin.isatty():
            from spatialq.cli.shell.prompt import run_in_terminal

            typer.echo("spatialq: SQL and QL4BIM; .help says more, Ctrl-D ends it")
            run_in_terminal(session)
            return
        run_lines(session, sys.stdin)
        if session.failed:
            raise typer.Exit(1)
