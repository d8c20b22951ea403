"""`spatialq run`: a QL4BIM script, its result as a table or a file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from spatialq.cli.databases import MEMORY, Create, Database, open_database
from spatialq.cli.interruption import interruptible
from spatialq.cli.options import MAX_ROWS, Json, Limit, Output
from spatialq.cli.progress import progress
from spatialq.cli.rendering import show

STANDARD_INPUT = Path("-")


def run(
    script: Annotated[Path, typer.Argument(help="QL4BIM script; - is standard input.")],
    *,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="File for the model of the script, or VARIABLE=FILE for each of several."
        ),
    ] = None,
    database: Database = MEMORY,
    create: Create = False,
    variable: Annotated[
        str | None, typer.Option(help="Variable to show or write; by default the last one.")
    ] = None,
    output: Output = None,
    names: Annotated[
        bool, typer.Option("--names", help="Add name, class and storey to the objects of pairs.")
    ] = False,
    as_sql: Annotated[bool, typer.Option("--sql", help="Print the SQL, and run nothing.")] = False,
    limit: Limit = MAX_ROWS,
    as_json: Json = False,
) -> None:
    """Run a QL4BIM script, and print or write the rows of its last variable."""
    from spatialq.cli.scripts import models_of, show_variable, statement_of
    from spatialq.ql4bim.program import compile_script
    from spatialq.ql4bim.text import read_script

    if script == STANDARD_INPUT:
        text, name = sys.stdin.read(), "<stdin>"
    else:
        text, name = read_script(script)
    program = compile_script(text, name=name, models=models_of(model or []))
    query = statement_of(program, variable, names=names)
    if as_sql:
        typer.echo(query)
        return
    # imported only now: to write SQL takes neither compilers nor tables
    from spatialq.database.table_files import require_output, write_table
    from spatialq.export.atomic import together
    from spatialq.ql4bim.run import run_program

    if output is not None:
        require_output(output)
    with (
        open_database("run", database, create=create) as con,
        together(),
        progress(),
        interruptible(con),
    ):
        written = run_program(con, program).exported
        if output is not None:
            rows = [{"output": str(output), "rows": write_table(con, query, output)}]
            show(rows, as_json=as_json)
        elif written and variable is None:
            show([{"output": str(path)} for path in written], as_json=as_json)
        else:
            show_variable(con, program, variable, names=names, limit=limit, as_json=as_json)
