"""`spatialq info`, `load` and `sql`: what files hold, files into tables, queries."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from spatialq.cli.databases import MEMORY, Create, Database, open_database
from spatialq.cli.interruption import interruptible
from spatialq.cli.options import MAX_ROWS, Crs, IfcGeometry, Json, Limit, Output, OverrideCrs
from spatialq.cli.progress import progress
from spatialq.cli.rendering import show


def info(
    files: Annotated[list[Path], typer.Argument(help="Point clouds, grids or models.")],
    *,
    as_json: Json = False,
) -> None:
    """Say what a file holds: rows, extent, CRS, columns, and what is odd about it."""
    from spatialq.workflows.info import describe

    for file in files:
        show([describe(file)], as_json=as_json, upright=True)


def load(
    files: Annotated[list[str], typer.Argument(help="Files or patterns.")],
    *,
    database: Annotated[str, typer.Option("--database", "-d", help="DuckDB file to load into.")],
    table: Annotated[
        str | None,
        typer.Option("--table", "-t", help="Table; by default points, grid or elements."),
    ] = None,
    crs: Crs = None,
    override_crs: OverrideCrs = False,
    geometry: IfcGeometry = "auto",
    as_json: Json = False,
) -> None:
    """Load files into tables, in one transaction per file."""
    from spatialq.database import loading

    con = open_database("load", database, create=True)
    with progress() as update:
        records = loading.load(
            con,
            list(files),
            table,
            crs=crs,
            override_crs=override_crs,
            geometry=geometry,
            progress=update,
        )
    con.close()
    rows = [
        {"table": record.table, "rows": record.rows, "kind": record.kind, "path": record.path}
        for record in records
    ]
    show(rows, as_json=as_json)


def sql(
    query: Annotated[str, typer.Argument(help="SQL; macros such as read_las('f.laz') work.")],
    *,
    database: Database = MEMORY,
    create: Create = False,
    output: Output = None,
    limit: Limit = MAX_ROWS,
    as_json: Json = False,
) -> None:
    """Run SQL with all functions of spatialq, and print or write the result of the last statement.

    Statements end with a semicolon.
    """
    from spatialq.cli.results import show_statement, write_statement
    from spatialq.database import statements
    from spatialq.database.table_files import require_output

    if output is not None:
        require_output(output)
    con = open_database("sql", database, create=create)
    if output is None:
        show = partial(show_statement, con, limit=limit, as_json=as_json)
    else:
        show = partial(write_statement, con, output=output, as_json=as_json)
    with interruptible(con):
        statements.run(con, "sql", query, show)
