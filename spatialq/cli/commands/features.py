"""`spatialq features`: multi-scale features of terrain grids."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from spatialq.cli.jobs import Tasks, refuse_part_format, run_job
from spatialq.cli.options import Device, GridReading, Json, Memory, names, with_parameters
from spatialq.cli.progress import progress
from spatialq.cli.rendering import rounded, show, show_written


@with_parameters("pops_features", exclude=("memory",))
def features(
    grids: Annotated[
        list[str],
        typer.Argument(help="Files or patterns: GeoTIFF, ESRI ASCII, .hgt, .dem or .npy."),
    ],
    *,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write; may be given several times: .parquet, .gpkg, .fgb, "
            ".csv, .json or .xlsx for a table; for a single input also .png for a picture and "
            ".tif for a raster of examples. Of a job the folder that gets parts/.",
        ),
    ] = None,
    tasks: Tasks,
    part_format: Annotated[
        Literal["parquet", "tif"] | None,
        typer.Option(
            help="What a job writes: parquet, the rows of the table, or tif, rasters of examples "
            "with the means of all features; by default parquet."
        ),
    ] = None,
    options: dict[str, Any],
    define: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Python file with methods of your own (pops_method)."
        ),
    ] = None,
    shown: Annotated[
        str | None,
        typer.Option(
            "--show",
            help="Features that picture and raster have, such as pca1,stat.kurtosis, separated by "
            "commas.",
        ),
    ] = None,
    reading: GridReading,
    device: Device = "auto",
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Compute features of terrain grids at several scales (POPS): a table, a picture, a raster."""
    from spatialq.workflows.features import lengths_of_first, run_definitions, write_features

    of_file = vars(reading)
    if tasks.are_wanted:
        run_job(
            "pops_features",
            grids,
            output,
            tasks,
            part_format=part_format,
            device=device,
            memory=memory,
            as_json=as_json,
            command="features",
            refused={"--define": define, "--show": shown},
            **of_file,
            **lengths_of_first(grids, of_file, options),
        )
        return
    refuse_part_format(part_format)
    if define is not None:
        run_definitions(define)
    with progress() as update:
        row = write_features(
            grids,
            output or (),
            show=names(shown) if shown else (),
            **of_file,
            device=device,
            memory=memory,
            progress=update,
            **options,
        )
    if as_json:
        show([row], as_json=True)
    elif output:
        show_written({**row, "features": len(row["features"])}, as_json=False)
    else:
        show(list(map(rounded, row["features"])), as_json=False)
