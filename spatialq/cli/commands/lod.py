"""`spatialq lod`: levels of detail of a point cloud."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from spatialq.cli.jobs import Executor, Tasks, Workers, run_job
from spatialq.cli.options import Json, PointResolution, Reading, with_parameters
from spatialq.cli.progress import progress
from spatialq.cli.rendering import show, show_written


@with_parameters("build_lod", exclude=("bounds", "memory"))
def lod(
    files: Annotated[
        list[str],
        typer.Argument(help="Point clouds, patterns or folders, which together are one cloud."),
    ],
    *,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write; may be given several times: .parquet for the nodes of the tree "
            "with their samples, .png for a picture of three levels, .copc.laz for the points as "
            "COPC, metadata.json for them as Potree 2.0, tileset.json for 3D Tiles 1.1, each in a "
            "folder of its own.",
        ),
    ] = None,
    options: dict[str, Any],
    reading: Reading,
    resolution: PointResolution = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Main memory to use, such as 2GB or 512MB; a number alone is in GiB. By default "
            "half of what is free. Larger clouds are built tile by tile, through files beside the "
            "first output."
        ),
    ] = None,
    compact: Annotated[
        bool,
        typer.Option(
            "--compact",
            help="Write positions and colours of samples to .parquet as bytes, about 3.4 of a "
            "voxel before compression, which lod_samples decodes; of --attributes a list each, and "
            "no other columns of samples.",
        ),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with what an earlier run of the same outputs left that was killed; and "
            "keep what is done if this one is stopped.",
        ),
    ] = False,
    executor: Executor = None,
    workers: Workers = None,
    chunk_points: Annotated[
        int | None,
        typer.Option(
            min=1, help="Points of a part of such a job at most; 2000000 if it is not given."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Build levels of detail of a cloud, an octree: COPC, Potree, a table, a picture."""
    from spatialq.workflows.lod import write_lod

    read = reading.of("lod")
    if any(each is not None for each in (executor, workers, chunk_points)):
        _require_folder(output or ())
        chunks: dict[str, Any] = {} if chunk_points is None else {"chunk_points": chunk_points}
        run_job(
            "build_lod",
            files,
            output,
            Tasks(executor, workers, None, resume=resume),
            device=read["device"],
            memory=memory,
            as_json=as_json,
            command="lod",
            refused={
                **reading.refused_by_jobs,
                "--resolution": resolution,
                "--compact": compact,
            },
            bounds=read["bounds"],
            **options,
            **chunks,
        )
        return
    with progress() as update:
        row = write_lod(
            files,
            output or (),
            **read,
            resolution=resolution,
            memory=memory,
            compact=compact,
            resume=resume,
            progress=update,
            **options,
        )
    if as_json:
        show([row], as_json=True)
    else:
        show_written({**row, "seconds": round(row["seconds"], 2)}, as_json=False)


def _require_folder(outputs: Sequence[Path]) -> None:
    """Refuse outputs that no job writes.

    Raises
    ------
    ValueError
        If one has the name of a file that is written without a job.
    """
    from spatialq.export.atomic import has_ending
    from spatialq.workflows.lod import ENDINGS

    for each in outputs:
        if any(has_ending(each, ending) for ending in ENDINGS):
            message = (
                f"lod: --output of a job must be a folder, which gets parts/*.parquet, got "
                f"'{each}', which is written without --executor, --workers and --chunk-points"
            )
            raise ValueError(message)
