"""`spatialq view`: a page of clouds, models, lists and the SQL box, on this machine."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from spatialq.cli.progress import progress
from spatialq.cli.rendering import note, show


def view(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Point clouds, IFC files, Parquet files of clashes or planes, or patterns or "
            "folders of them; or a database; or tables of --database; or queries of points.",
        ),
    ],
    *,
    database: Annotated[
        str | None,
        typer.Option("--database", "-d", help="DuckDB file of which tables or queries are shown."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of the address; 0 is any that is free.")
    ] = 0,
    seconds: Annotated[
        float, typer.Option(min=0.1, help="What a query of the SQL box may take.")
    ] = 10.0,
    memory: Annotated[
        str | None,
        typer.Option(
            help="What queries may take together, such as 6GB, each of three at once a third; by "
            "default 3GB."
        ),
    ] = None,
    views: Annotated[
        Path | None,
        typer.Option(
            help="BCF file of the saved views, which has them the next time; by default they end "
            "with the server."
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            help="A new folder for the page with its tiles as files, which a double click on "
            "index.html or any web server opens, without the SQL box; nothing is served then."
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Whether to open the page in a browser.")
    ] = True,
) -> None:
    """Show clouds, models, clashes and planes in a page, with a box for SQL beside them."""
    from spatialq.runtime.extras import missing

    if reason := missing("view"):
        message = f"view: {reason}"
        raise ValueError(message)
    from spatialq.runtime.budget import parse_size
    from spatialq.serve.export import require_folder, write_page
    from spatialq.serve.limits import Limits
    from spatialq.serve.pool import AT_ONCE
    from spatialq.serve.scene import open_scene
    from spatialq.serve.server import serve

    size = Limits.memory if memory is None else parse_size(memory, "view: memory") // AT_ONCE
    limits = Limits(seconds=seconds, memory=size)
    if export is not None:
        if views is not None:
            message = "view: views cannot be given with export: an exported page saves none"
            raise ValueError(message)
        require_folder(export)
    with ExitStack() as stack:
        with progress() as update:
            opening = open_scene(sources, database, limits=limits, views=views, progress=update)
            scene = stack.enter_context(opening)
        if export is not None:
            show([write_page(scene, export)], as_json=False, upright=True)
        else:
            serve(scene, port, note, opens_browser=browser)
