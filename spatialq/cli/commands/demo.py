"""`spatialq demo`: what spatialq does, on a generated village or on two files."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from spatialq.cli.progress import progress
from spatialq.cli.rendering import note, show


def demo(
    las: Annotated[Path | None, typer.Argument(help="Point cloud of your own.")] = None,
    ifc: Annotated[Path | None, typer.Argument(help="Building model of your own.")] = None,
    *,
    folder: Annotated[Path, typer.Option(help="Folder that the files are written to.")] = Path(
        "demo"
    ),
) -> None:
    """Show what spatialq does, on a generated village or on two files of your own."""
    from spatialq.demo import write_world
    from spatialq.demo.run import KERNELS, run
    from spatialq.workflows.warming import compiling

    if (las is None) != (ifc is None):
        message = "demo: give a point cloud and a building model, or neither"
        raise ValueError(message)
    if las is None or ifc is None:
        note(f"writing a small world to {folder}/ ...")
        with compiling(json.loads(KERNELS.read_bytes())):
            las, ifc, *_ = write_world(folder)

    def show_query(title: str, query: str, rows: list[dict[str, Any]], seconds: float) -> None:
        typer.secho(f"\n{title}  ({seconds:.2f} s)", bold=True)
        typer.echo(query)
        show(rows, as_json=False)

    with progress() as update:
        pictures = run(las, ifc, folder, show_query, update)
    typer.echo("")
    for picture in pictures:
        typer.echo(f"picture: {picture}")
    typer.echo(f"database: {folder / 'demo.duckdb'}")
