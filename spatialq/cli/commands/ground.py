"""`spatialq ground`: the ground of a point cloud."""

from typing import Annotated, Any

import typer

from spatialq.cli.options import (
    Bounds,
    Crs,
    Device,
    Json,
    Memory,
    OverrideCrs,
    bounds_of,
    with_parameters,
)
from spatialq.cli.progress import progress
from spatialq.cli.rendering import show_written


@with_parameters("classify_ground", exclude=("bounds", "memory"))
@with_parameters("ground_surface", only=("resolution", "method", "neighbours", "extrapolate"))
def ground(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Point clouds in a projected CRS, "
            "patterns or folders of them, which together are one cloud."
        ),
    ],
    *,
    output: Annotated[
        list[str],
        typer.Option(
            "--output",
            "-o",
            help="File to write; may be given several times: .laz or .las for the points with "
            "their classes, .tif for the terrain, .png for its hillshade, .parquet, .csv, "
            ".json or .xlsx for a table; a folder such as out/ gets a file for each input.",
        ),
    ],
    options: dict[str, Any],
    crs: Crs = None,
    override_crs: OverrideCrs = False,
    bounds: Bounds = None,
    point_resolution: Annotated[
        str | None,
        typer.Option(
            help="Spacing of points at which the nodes of an octree (COPC, EPT) are dense enough, "
            "such as 50cm: finer nodes are neither read nor written."
        ),
    ] = None,
    device: Device = "auto",
    memory: Memory = None,
    ground_only: Annotated[
        bool, typer.Option("--ground-only", help="Write only ground points to .laz and .las.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Classify the ground of a point cloud: a new cloud, a terrain model, a hillshade, a table."""
    from spatialq.workflows.ground import write_ground

    with progress() as update:
        row = write_ground(
            files,
            output,
            ground_only=ground_only,
            crs=crs,
            override_crs=override_crs,
            bounds=bounds_of("ground", bounds),
            point_resolution=point_resolution,
            device=device,
            memory=memory,
            progress=update,
            **options,
        )
    show_written(row, as_json=as_json)
