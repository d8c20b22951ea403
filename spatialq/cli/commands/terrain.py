"""`spatialq terrain`: slope, aspect, curvatures, contours and hillshade of a terrain grid."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spatialq.cli.jobs import Tasks, run_job
from spatialq.cli.options import Device, GridReading, Json, Memory, names, with_parameters
from spatialq.cli.progress import progress
from spatialq.cli.rendering import show_written


@with_parameters("terrain_derivatives", exclude=("memory",))
def terrain(
    grids: Annotated[
        list[str],
        typer.Argument(
            help="A GeoTIFF, ESRI ASCII, .hgt, .dem or .npy; for a job also several or patterns."
        ),
    ],
    *,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write; may be given several times: .tif for a raster of derivatives, "
            ".gpkg or .fgb for contours, .png for the hillshade with contours, .parquet, .csv, "
            ".json or .xlsx for a table of derivatives. Of a job the folder that gets parts/, a "
            "table of derivatives.",
        ),
    ] = None,
    tasks: Tasks,
    options: dict[str, Any],
    shown: Annotated[
        str | None,
        typer.Option(
            "--show", help="Derivatives that a raster has, such as slope,aspect; by default all."
        ),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(help="Difference of height of contours, in the unit of the heights."),
    ] = None,
    base: Annotated[
        float, typer.Option(help="Height of one contour, from which others are counted.")
    ] = 0.0,
    reading: GridReading,
    device: Device = "auto",
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Compute slope, aspect, curvatures and roughness of a terrain grid, contours, a hillshade."""
    from spatialq.workflows.terrain import write_terrain_products

    of_file = vars(reading)
    if tasks.are_wanted:
        run_job(
            "terrain_derivatives",
            grids,
            output,
            tasks,
            device=device,
            memory=memory,
            as_json=as_json,
            command="terrain",
            refused={"--show": shown, "--interval": interval},
            **of_file,
            **options,
        )
        return
    with progress() as update:
        row = write_terrain_products(
            grids,
            output or (),
            show=names(shown) if shown else (),
            interval=interval,
            base=base,
            **of_file,
            device=device,
            memory=memory,
            progress=update,
            **options,
        )
    show_written(row, as_json=as_json)
