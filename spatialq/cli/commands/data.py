"""`spatialq info`, `load` and `sql`: what files hold, files into tables, queries."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from spatialq.cli.databases import MEMORY, Create, Database, open_database
from spatialq.cli.interruption import interruptible
from spatialq.cli.options import MAX_ROWS, IfcGeometry, Json, Limit, Output
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
    crs: Annotated[
        str | None, typer.Option(help="CRS of files that do not name one, such as EPSG:25832.")
    ] = None,
    geometry: IfcGeometry = "auto",
    replace: Annotated[
        bool, typer.Option("--replace/--append", help="In place of the table, or added to it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Load files into tables, in one transaction per file, or in one for all with --replace."""
    from spatialq.database import loading

    with open_database("load", database, create=True) as con, progress() as update:
        records = loading.load(
            con,
            list(files),
            table,
            crs=crs,
            geometry=geometry,
            mode="replace" if replace else "append",
            progress=update,
        )
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
    with open_database("sql", database, create=create) as con, interruptible(con):
        if output is None:
            show = partial(show_statement, con, limit=limit, as_json=as_json)
        else:
            show = partial(write_statement, con, output=output, as_json=as_json)
        statements.run(con, "sql", query, show)
