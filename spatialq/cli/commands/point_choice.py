"""`spatialq noise` and `spatialq thin`: classified noise, and fewer points."""

from typing import Annotated, Any

import typer

from spatialq.cli.jobs import Tasks, refuse_part_format, run_job, with_lengths
from spatialq.cli.options import Json, Memory, Reading, with_parameters
from spatialq.cli.progress import progress
from spatialq.cli.rendering import show_written

Files = Annotated[
    list[str],
    typer.Argument(help="Point clouds, patterns or folders of them, which together are one cloud."),
]
Output = Annotated[
    list[str],
    typer.Option(
        "--output",
        "-o",
        help=".laz or .las file to write; a folder such as out/ gets a file for each input. For a "
        "job, its folder.",
    ),
]
PartFormat = Annotated[
    str | None,
    typer.Option(
        help="Parts of a job: laz, the points that are written, which is the default, or parquet, "
        "the rows of the function."
    ),
]


@with_parameters("classify_noise", exclude=("bounds", "memory"))
def noise(
    files: Files,
    *,
    output: Output,
    tasks: Tasks,
    part_format: PartFormat = None,
    options: dict[str, Any],
    reading: Reading,
    memory: Memory = None,
    drop_noise: Annotated[
        bool, typer.Option("--drop-noise", help="Write only the points that are no noise.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Classify the noise of a point cloud: 7 what is too low, 18 what is too high."""
    from spatialq.workflows.point_choice import write_noise

    read = reading.of("noise")
    if tasks.are_wanted:
        run_job(
            "classify_noise",
            files,
            output,
            tasks,
            part_format=part_format or "laz",
            device=read["device"],
            memory=memory,
            as_json=as_json,
            command="noise",
            refused=reading.refused_by_jobs,
            bounds=read["bounds"],
            noise=False,
            drop_noise=drop_noise,
            **with_lengths("noise", "classify_noise", files, options),
        )
        return
    refuse_part_format(part_format)
    with progress() as update:
        row = write_noise(
            files,
            output,
            drop_noise=drop_noise,
            **read,
            memory=memory,
            progress=update,
            **options,
        )
    show_written(row, as_json=as_json)


@with_parameters("thin", exclude=("bounds", "memory"))
def thin(
    files: Files,
    *,
    output: Output,
    tasks: Tasks,
    part_format: PartFormat = None,
    options: dict[str, Any],
    reading: Reading,
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Write fewer points of a cloud, evenly spread."""
    from spatialq.workflows.point_choice import write_thinned

    read = reading.of("thin")
    if tasks.are_wanted:
        run_job(
            "thin",
            files,
            output,
            tasks,
            part_format=part_format or "laz",
            device=read["device"],
            memory=memory,
            as_json=as_json,
            command="thin",
            refused=reading.refused_by_jobs,
            bounds=read["bounds"],
            noise=False,
            **with_lengths("thin", "thin", files, options),
        )
        return
    refuse_part_format(part_format)
    with progress() as update:
        row = write_thinned(
            files,
            output,
            **read,
            memory=memory,
            progress=update,
            **options,
        )
    show_written(row, as_json=as_json)
