"""`spatialq clip`: the points of clouds that are in polygons."""

from typing import Annotated

import typer

from spatialq.cli.options import Coordinates, Json, Memory
from spatialq.cli.progress import progress
from spatialq.cli.rendering import show_written


def clip(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Point clouds, patterns or folders of them, which together are one cloud."
        ),
    ],
    *,
    within: Annotated[
        str,
        typer.Option(
            help="Polygons: a GeoPackage, Shapefile, GeoJSON, FlatGeobuf, GeoParquet or DXF file."
        ),
    ],
    output: Annotated[
        list[str],
        typer.Option(
            "--output",
            "-o",
            help="File to write, .laz or .las; a folder such as out/ gets a file for each input "
            "that polygons touch.",
        ),
    ],
    layer: Annotated[
        str | None, typer.Option(help="Layer of the polygons; needed where the file has several.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            help="Condition on the attributes of the polygons, such as \"kind = 'road'\"."
        ),
    ] = None,
    outside: Annotated[
        bool, typer.Option("--outside", help="Write the points that are in none of the polygons.")
    ] = False,
    coordinates: Coordinates,
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Write the points that are in polygons."""
    from spatialq.workflows.clip import write_clip

    with progress() as update:
        row = write_clip(
            files,
            output,
            within,
            layer=layer,
            where=where,
            outside=outside,
            **coordinates.of("clip"),
            memory=memory,
            progress=update,
        )
    show_written(row, as_json=as_json)
