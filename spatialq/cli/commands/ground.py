"""`spatialq ground`: the ground of a point cloud."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spatialq.cli.options import Crs, Device, Json, OverrideCrs, with_parameters
from spatialq.cli.progress import progress
from spatialq.cli.rendering import show_written


@with_parameters("classify_ground")
@with_parameters("ground_surface", only=("resolution", "method", "neighbours", "extrapolate"))
def ground(
    file: Annotated[Path, typer.Argument(help="Point cloud in a projected CRS.")],
    *,
    output: Annotated[
        list[Path],
        typer.Option(
            "--output",
            "-o",
            help="File to write; may be given several times: .laz or .las for the points with "
            "their classes, .tif for the terrain, .png for its hillshade, .parquet, .csv, "
            ".json or .xlsx for a table.",
        ),
    ],
    options: dict[str, Any],
    crs: Crs = None,
    override_crs: OverrideCrs = False,
    device: Device = "auto",
    ground_only: Annotated[
        bool, typer.Option("--ground-only", help="Write only ground points to .laz and .las.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Classify the ground of a point cloud: a new cloud, a terrain model, a hillshade, a table."""
    from spatialq.workflows.ground import write_ground

    with progress() as update:
        row = write_ground(
            file,
            output,
            ground_only=ground_only,
            crs=crs,
            override_crs=override_crs,
            device=device,
            progress=update,
            **options,
        )
    show_written(row, as_json=as_json)
