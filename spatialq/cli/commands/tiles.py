"""`spatialq tiles`: 3D Tiles of point clouds and building models."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spatialq.cli.options import Json, Memory, PointResolution, Reading, with_parameters
from spatialq.cli.progress import progress
from spatialq.cli.rendering import show, show_written


@with_parameters("build_lod", exclude=("bounds", "memory"))
def tiles(
    files: Annotated[
        list[str],
        typer.Argument(
            help="IFC files; point clouds; or a Parquet file of levels of detail or of elements."
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="tileset.json in a folder, which is made if it is missing."
        ),
    ],
    options: dict[str, Any],
    reading: Reading,
    resolution: PointResolution = None,
    memory: Memory = None,
    compress: Annotated[bool, typer.Option(help="Whether with EXT_meshopt_compression.")] = True,
    implicit: Annotated[
        bool, typer.Option("--implicit", help="Subtrees instead of a tree written tile by tile.")
    ] = False,
    colour_bits: Annotated[
        int, typer.Option(help="8 or 16: of the colours of points, which are linear.")
    ] = 16,
    error_factor: Annotated[
        float, typer.Option(help="Geometric error of a tile of points, in widths of its voxels.")
    ] = 16.0,
    as_json: Json = False,
) -> None:
    """Write 3D Tiles 1.1 of building models, point clouds or their levels of detail."""
    from spatialq.workflows.tiles import write_tiles

    with progress() as update:
        row = write_tiles(
            files,
            output,
            **reading.of("tiles"),
            resolution=resolution,
            memory=memory,
            compress=compress,
            implicit=implicit,
            colour_bits=colour_bits,
            error_factor=error_factor,
            progress=update,
            **options,
        )
    if as_json:
        show([row], as_json=True)
    else:
        show_written({**row, "seconds": round(row["seconds"], 2)}, as_json=False)
