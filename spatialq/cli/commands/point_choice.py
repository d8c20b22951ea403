"""`spatialq noise` and `spatialq thin`: classified noise, and fewer points."""

from typing import Annotated, Any

import typer

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
        help=".laz or .las file to write; a folder such as out/ gets a file for each input.",
    ),
]


@with_parameters("classify_noise", exclude=("bounds", "memory"))
def noise(
    files: Files,
    *,
    output: Output,
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

    with progress() as update:
        row = write_noise(
            files,
            output,
            drop_noise=drop_noise,
            **reading.of("noise"),
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
    options: dict[str, Any],
    reading: Reading,
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Write fewer points of a cloud, evenly spread."""
    from spatialq.workflows.point_choice import write_thinned

    with progress() as update:
        row = write_thinned(
            files,
            output,
            **reading.of("thin"),
            memory=memory,
            progress=update,
            **options,
        )
    show_written(row, as_json=as_json)
