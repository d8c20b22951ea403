"""`spatialq info`, `load` and `sql`: what files hold, files into tables, queries."""

from pathlib import Path
from typing import Annotated

import typer

from spatialq.cli.options import IfcGeometry, Json
from spatialq.cli.progress import progress
from spatialq.cli.rendering import json_column, note_limit, show, text_column

MEMORY = ":memory:"


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
    as_json: Json = False,
) -> None:
    """Load files into tables, in one transaction per file."""
    from spatialq.database import loading
    from spatialq.database.connection import connect_quietly

    con = connect_quietly(database)
    with progress() as update:
        records = loading.load(con, list(files), table, crs=crs, geometry=geometry, progress=update)
    con.close()
    rows = [
        {"table": record.table, "rows": record.rows, "kind": record.kind, "path": record.path}
        for record in records
    ]
    show(rows, as_json=as_json)


def sql(
    query: Annotated[str, typer.Argument(help="SQL; macros such as read_las('f.laz') work.")],
    *,
    database: Annotated[
        str,
        typer.Option("--database", "-d", help="DuckDB file; by default a database in memory."),
    ] = MEMORY,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write instead of printing: .parquet, .csv or .json; for a grid also "
            ".tif or .png; for GlobalIds also .ifc or .ifczip.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of rows to print.")] = 100,
    as_json: Json = False,
) -> None:
    """Run SQL with all functions of spatialq, and print or write the result."""
    from spatialq.database.connection import connect_quietly
    from spatialq.database.sources import require_one_crs
    from spatialq.database.statements import without_semicolon
    from spatialq.database.table_files import write_table

    con = connect_quietly(database)
    statements = con.extract_statements(query)
    if not statements:
        message = "sql: the query is empty"
        raise ValueError(message)
    require_one_crs(con, query)
    if output is not None:
        written = write_table(con, query, output)
        show([{"output": str(output), "rows": written}], as_json=as_json)
        return
    for statement in statements[:-1]:
        con.execute(statement)
    relation = con.sql(without_semicolon(statements[-1].query))
    relation = relation.project("*")  # renames columns of equal name: a, a_1
    column = json_column if as_json else text_column
    cells = [column(*each) for each in zip(relation.columns, relation.types, strict=True)]
    result = relation.limit(limit + 1).project(", ".join(cells))
    fetched = [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]
    show(fetched[:limit], as_json=as_json)
    if len(fetched) > limit:
        note_limit(limit, "rows")
