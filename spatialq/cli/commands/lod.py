"""`spatialq lod`: levels of detail of a point cloud."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spatialq.cli.options import Crs, Device, Json, OverrideCrs, with_parameters
from spatialq.cli.progress import progress
from spatialq.cli.rendering import show, show_written


@with_parameters("build_lod")
def lod(
    files: Annotated[
        list[str],
        typer.Argument(help="LAS, LAZ or COPC files or patterns, which together are one cloud."),
    ],
    *,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write; may be given several times: .parquet for the nodes of the tree "
            "with their samples, .png for a picture of three levels, tiles/tileset.json for 3D "
            "Tiles 1.1.",
        ),
    ] = None,
    options: dict[str, Any],
    crs: Crs = None,
    override_crs: OverrideCrs = False,
    device: Device = "auto",
    memory: Annotated[
        float | None,
        typer.Option(
            help="Memory to use in GiB, by default half of the machine's; larger clouds are built "
            "tile by tile, through files beside the first output."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Build levels of detail of a cloud, an octree of voxels and points: a table, a picture."""
    from spatialq.workflows.lod import write_lod

    with progress() as update:
        row = write_lod(
            files,
            output or (),
            crs=crs,
            override_crs=override_crs,
            device=device,
            memory=memory,
            progress=update,
            **options,
        )
    if as_json:
        show([row], as_json=True)
    else:
        show_written({**row, "seconds": round(row["seconds"], 2)}, as_json=False)
