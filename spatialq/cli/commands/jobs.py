"""`spatialq seeds`, a job of tiles, and `spatialq jobs`, which lists such jobs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spatialq.cli.options import Bounds, Device, Json, bounds_of, with_parameters
from spatialq.cli.progress import progress
from spatialq.cli.rendering import show

Executor = Annotated[
    str, typer.Option(help="Who does the work: local, processes of this machine, or ray.")
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Processes; by default as many as there are cores, or GPUs of Ray."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the job in the folder: what is done stays.")
]
TileSize = Annotated[
    float | None,
    typer.Option(
        help="Side of square tiles, in the unit of x and y, of which each is a task; by default "
        "each file is one."
    ),
]


@with_parameters("owm_ground", exclude=("bounds", "memory"), of_file=False)
def seeds(
    files: Annotated[
        list[str],
        typer.Argument(help="Point clouds, patterns or folders of them: together one cloud."),
    ],
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder of the job, which gets parts/*.parquet.")
    ],
    executor: Executor = "local",
    workers: Workers = None,
    tile_size: TileSize = None,
    resume: Resume = False,
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
    from spatialq.cluster import run

    with progress() as update:
        row = run(
            "owm_ground",
            files,
            output,
            executor=executor,
            workers=workers,
            tile_size=tile_size,
            resume=resume,
            device=device,
            memory=memory,
            progress=update,
            bounds=bounds_of("seeds", bounds),
            **options,
        )
    show([row], as_json=as_json)


def jobs(
    folder: Annotated[Path, typer.Argument(help="A folder of jobs, or of one.")] = Path(),
    *,
    as_json: Json = False,
) -> None:
    """List the jobs in a folder and in the folders in it: what, how far, running or not."""
    from spatialq.cluster import jobs as found

    show(found(folder), as_json=as_json)
