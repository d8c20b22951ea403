"""`spatialq info`, `load`, `unload` and `sql`: what files hold, files into tables, queries."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from spatialq.cli.databases import MEMORY, Create, Database, open_database
from spatialq.cli.errors import sentence
from spatialq.cli.interruption import interruptible
from spatialq.cli.options import (
    MAX_ROWS,
    Crs,
    IfcGeometry,
    Json,
    Limit,
    Output,
    OverrideCrs,
    Resolution,
    ToCrs,
)
from spatialq.cli.progress import progress
from spatialq.cli.rendering import note, rounded, show, show_json
from spatialq.errors import SpatialqError
from spatialq.io.storage import as_path

COUNTS = (
    "classes", "returns", "products by class", "points by level", "topics by status",
    "components by role",
)  # fmt: skip
"""What is counted, in the description of a file."""
DIGITS = 15
"""Of a coordinate, so that 0.01 times a whole number has no more digits than people write."""


def info(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Clouds, grids, models or BCF archives, patterns or folders of them; tileset.json "
            "of 3D Tiles, metadata.json of Potree."
        ),
    ],
    *,
    as_json: Json = False,
) -> None:
    """Say what files hold: counts, extent, CRS, classes, and what is odd about them.

    The exit status is 1 if one of them cannot be read; the others are described all the same.
    """
    from spatialq.io.formats import files_of
    from spatialq.workflows.info import describe

    found: list[dict[str, Any]] = []
    attempts = _Attempts()
    for pattern in files:
        paths: list[Path] = []
        with attempts.each():
            paths = files_of("info", pattern)
        for path in paths:
            with attempts.each():
                with progress() as update:
                    described = describe(path, update)
                found.append(described)
                if not as_json:
                    show([_readable(described)], as_json=False, upright=True)
    if as_json:
        show_json(found)
    if attempts.failed:
        raise typer.Exit(1)


class _Attempts:
    """Work of which a part may fail without stopping the rest."""

    def __init__(self) -> None:
        self.failed = False

    @contextmanager
    def each(self) -> Iterator[None]:
        """Print the error of one part on standard error."""
        try:
            yield
        except (SpatialqError, ValueError, OSError) as error:
            if isinstance(error, OSError) and error.filename is None:
                raise  # of standard output, which the others have as well
            self.failed = True
            note(f"error: {sentence(error)}")


def _readable(described: dict[str, Any]) -> dict[str, Any]:
    """Write counts and coordinates as a person reads them."""

    def text(name: str, value: Any) -> Any:
        if isinstance(value, dict) and name in COUNTS:
            return ", ".join(f"{key}: {count}" for key, count in value.items())
        if isinstance(value, list) and all(isinstance(each, float) for each in value):
            return [float(f"{each:.{DIGITS}g}") for each in value]
        return value

    if described["kind"] == "ifc":
        from spatialq.workflows.places import readable

        described = readable(described)
    return {name: text(name, value) for name, value in rounded(described).items()}


Revision = Annotated[
    str | None,
    typer.Option("--revision", help="Schema with the tables of a revision; by default main."),
]


def load(
    files: Annotated[list[str], typer.Argument(help="Files, patterns or folders.")],
    *,
    database: Annotated[str, typer.Option("--database", "-d", help="DuckDB file to load into.")],
    table: Annotated[
        str | None,
        typer.Option("--table", "-t", help="Table; by default points, grid or elements."),
    ] = None,
    crs: Crs = None,
    override_crs: OverrideCrs = False,
    to_crs: ToCrs = None,
    resolution: Resolution = None,
    geometry: IfcGeometry = "auto",
    replace: Annotated[
        bool, typer.Option("--replace/--append", help="In place of the table, or added to it.")
    ] = False,
    update: Annotated[
        bool,
        typer.Option("--update", help="Models that are in the table already are read again."),
    ] = False,
    revision: Revision = None,
    as_json: Json = False,
) -> None:
    """Load files into tables, in one transaction per file, or in one for all with --replace."""
    from spatialq.database import loading
    from spatialq.database.revisions import transaction_in
    from spatialq.workflows.places import places, readable

    if replace and update:
        message = "--replace makes the whole table anew, --update some of it; choose one"
        raise typer.BadParameter(message)
    with (
        open_database("load", database, create=True) as con,
        interruptible(con, is_deferred=False),
        progress() as told,
    ):
        records = loading.load(
            con,
            list(files),
            table,
            crs=crs,
            override_crs=override_crs,
            to_crs=to_crs,
            resolution=resolution,
            geometry=geometry,
            mode="replace" if replace else "update" if update else "append",
            revision=revision,
            progress=told,
        )
        rows: list[dict[str, Any]] = [
            {"table": record.table, "rows": record.rows, "kind": record.kind, "path": record.path}
            for record in records
        ]
        tables = {record.table for record in records if record.kind == "ifc"}
        with transaction_in(con, revision):
            known = {_file(each): each for table in tables for each in places(con, table)}
    placed = [known[row["path"]] for row in rows if row["kind"] == "ifc"]
    if as_json:
        show_json([{**known.get(row["path"], {}), **row} for row in rows])
    else:
        show(rows, as_json=False)
        if placed:
            show([readable(each) for each in placed], as_json=False)


def unload(
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Building models, as they were loaded; without, the whole --revision."),
    ] = None,
    *,
    database: Annotated[str, typer.Option("--database", "-d", help="DuckDB file to remove from.")],
    table: Annotated[
        str | None,
        typer.Option("--table", "-t", help="Table of elements; by default all that have them."),
    ] = None,
    revision: Revision = None,
    as_json: Json = False,
) -> None:
    """Remove building models from the tables of a database, in one transaction."""
    from spatialq.database import loading

    with (
        open_database("unload", database, create=None) as con,
        interruptible(con, is_deferred=False),
    ):
        removed = loading.unload(con, files or None, table, revision=revision)
    rows: list[dict[str, Any]] = [{"table": each.table, "path": each.path} for each in removed]
    if as_json:
        show_json(rows)
    else:
        show(rows, as_json=False)


def _file(place: dict[str, Any]) -> str:
    return str(as_path(place["path"]).resolve())


def sql(
    query: Annotated[str, typer.Argument(help="SQL; macros such as read_las('f.laz') work.")],
    *,
    database: Database = MEMORY,
    create: Create = False,
    output: Output = None,
    sort: Annotated[
        bool, typer.Option("--sort", help="Write a .parquet so that rows are near neighbours.")
    ] = False,
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
            show = partial(write_statement, con, output=output, as_json=as_json, sort=sort)
        statements.run(con, "sql", query, show)
