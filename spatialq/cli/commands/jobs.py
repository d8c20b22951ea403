"""`spatialq seeds`, a job of tiles, and `spatialq jobs`, which lists such jobs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spatialq.cli.jobs import Tasks, run_job, with_lengths
from spatialq.cli.options import Bounds, Device, Json, bounds_of, with_parameters
from spatialq.cli.rendering import show


@with_parameters("owm_ground", exclude=("bounds", "memory"))
def seeds(
    files: Annotated[
        list[str],
        typer.Argument(help="Point clouds, patterns or folders of them: together one cloud."),
    ],
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder of the job, which gets parts/*.parquet.")
    ],
    tasks: Tasks,
    options: dict[str, Any],
    bounds: Bounds = None,
    device: Device = "auto",
    memory: Annotated[
        str | None,
        typer.Option(help="Main memory for all workers of a machine together, such as 2GB."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the ground seeds of a survey file by file on many processes; it can be resumed."""
    run_job(
        "owm_ground",
        files,
        [output],
        tasks,
        device=device,
        memory=memory,
        as_json=as_json,
        command="seeds",
        bounds=bounds_of("seeds", bounds),
        **with_lengths("seeds", "owm_ground", files, options),
    )


def jobs(
    folder: Annotated[Path, typer.Argument(help="A folder of jobs, or of one.")] = Path(),
    *,
    as_json: Json = False,
) -> None:
    """List the jobs in a folder and in the folders in it: what, how far, running or not."""
    from spatialq.cluster import jobs as found
    from spatialq.cluster.error_names import called

    with called("jobs"):
        rows = found(folder)
    show(rows if as_json else [in_table(row) for row in rows], as_json=as_json)


MIDDLE = ("source", "options", "inputs", "points", "rows", "parts")
LAST = (*MIDDLE, "elapsed", "rest", "done", "tasks")


def in_table(row: dict[str, Any]) -> dict[str, Any]:
    """Order the columns of a job for a table, which leaves those in the middle out if narrow."""
    names = ["folder", "state", "stage", *(name for name in row if name not in LAST), *LAST]
    return {name: row[name] for name in names}
