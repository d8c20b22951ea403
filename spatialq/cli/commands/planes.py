"""`spatialq planes`: the planes of a point cloud."""

from typing import Annotated, Any

import typer

from spatialq.cli.jobs import Tasks, refuse_part_format, run_job, with_lengths
from spatialq.cli.options import Json, Memory, PointResolution, Reading, with_parameters
from spatialq.cli.progress import progress
from spatialq.cli.rendering import note_limit, rounded, show, show_written

BRIEF = ("plane_id", "orientation", "area", "point_count", "rmse")
"""Columns that are printed where no file is written, besides the normal."""


@with_parameters("detect_planes", exclude=("bounds", "memory"))
def planes(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Point clouds whose coordinates are not in degrees, "
            "patterns or folders of them, which together are one cloud."
        ),
    ],
    *,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write; may be given several times: .laz or .las for the points with "
            "their plane, .parquet, .gpkg, .fgb, .csv, .json or .xlsx for a table, "
            ".png for a picture; a folder such as out/ gets a file for each input. For a job, its "
            "folder.",
        ),
    ] = None,
    tasks: Tasks,
    part_format: Annotated[
        str | None,
        typer.Option(
            help="Parts of a job: parquet, a table of all planes, which is the default, or laz, "
            "the points with their plane."
        ),
    ] = None,
    options: dict[str, Any],
    up: Annotated[str, typer.Option(help="Axis that points up: x, y or z.")] = "z",
    colour: Annotated[
        bool,
        typer.Option(
            "--colour", help="Colour the points of .las and .laz files by plane, as in the picture."
        ),
    ] = False,
    reading: Reading,
    resolution: PointResolution = None,
    memory: Memory = None,
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of planes to print.")] = 20,
    as_json: Json = False,
) -> None:
    """Find the planes of a point cloud: a table, the plane of each point, a picture."""
    from spatialq.workflows.planes import write_planes

    read = reading.of("planes")
    if tasks.are_wanted:
        function = "plane_points" if part_format == "laz" else "detect_planes"
        refused = {
            **reading.refused_by_jobs,
            "--resolution": resolution,
            "--up": up != "z",
            "--colour": colour,
        }
        run_job(
            function,
            files,
            output,
            tasks,
            part_format=part_format,
            device=read["device"],
            memory=memory,
            as_json=as_json,
            command="planes",
            refused=refused,
            bounds=read["bounds"],
            noise=False,
            **with_lengths("planes", function, files, options),
        )
        return
    refuse_part_format(part_format)
    with progress() as update:
        row = write_planes(
            files,
            output or (),
            **read,
            up=up,
            colour=colour,
            resolution=resolution,
            memory=memory,
            progress=update,
            **options,
        )
    found = row["planes"]
    if as_json:
        kept = [{name: v for name, v in each.items() if name != "boundary"} for each in found]
        show([{**row, "planes": kept}], as_json=True)
    elif output:
        show_written({**row, "planes": len(found)}, as_json=False)
    else:
        shown = [
            rounded({name: each[name] for name in BRIEF})
            | {"normal": "{nx:.3f} {ny:.3f} {nz:.3f}".format_map(each)}
            for each in found[:limit]
        ]
        show(shown, as_json=False)
        if len(found) > limit:
            note_limit(limit, "planes", "; -o writes all")
