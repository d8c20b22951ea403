"""`spatialq report`: what a delivery of point clouds is like, and what is odd about it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spatialq.cli.options import Crs, Json, Memory, OverrideCrs
from spatialq.cli.progress import progress
from spatialq.cli.rendering import note, rounded, show, show_json

SHOWN = ("file", "format", "crs", "points", "density", "duplicates", "outside")


def report(
    files: Annotated[
        list[str],
        typer.Argument(help="Point clouds, patterns or folders of them: a delivery of tiles."),
    ],
    *,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write; may be given several times: .html for a page with maps, .json.",
        ),
    ] = None,
    crs: Crs = None,
    override_crs: OverrideCrs = False,
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Report on the quality of point clouds: density, strips, overlaps, duplicates, headers.

    The exit status is 1 if one of them cannot be read; the report is on the others then.
    """
    from spatialq.workflows.report import write_report

    with progress() as update:
        found: dict[str, Any] = write_report(
            files,
            output or (),
            crs=crs,
            override_crs=override_crs,
            memory=memory,
            progress=update,
        )
    if as_json:
        show_json(found)
    else:
        shown = [rounded({name: each[name] for name in SHOWN}) for each in found["files"]]
        show(shown, as_json=False)
        for sentence in found["odd"]:
            typer.echo(sentence)
        for name in found["outputs"]:
            note(f"wrote {name}")
    for each in found["unreadable"]:
        note(f"error: report: '{each['file']}': {each['reason']}")
    if found["unreadable"]:
        raise typer.Exit(1)
