"""`spatialq render`: a picture of building models and point clouds."""

import re
from pathlib import Path
from typing import Annotated

import typer

from spatialq.cli.options import SEPARATOR, Json, Within
from spatialq.cli.progress import progress
from spatialq.cli.rendering import show


def render(
    files: Annotated[
        list[str],
        typer.Argument(
            help="IFC files and point clouds, or patterns or folders of them; or a .parquet of "
            "spatialq clash."
        ),
    ],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .png.")],
    eye: Annotated[
        str | None,
        typer.Option(help="x,y,z of the camera; by default all is seen from the south-west above."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="x,y,z of the middle of the picture; by default of all.")
    ] = None,
    up: Annotated[str, typer.Option(help="x,y,z: what is up in the picture.")] = "0,0,1",
    fov: Annotated[
        float | None, typer.Option(help="Angle of the view from bottom to top, degrees: 60.")
    ] = None,
    view_height: Annotated[
        float | None,
        typer.Option(help="Makes the view parallel: it shows so much from bottom to top."),
    ] = None,
    size: Annotated[str, typer.Option(help="Width x height of the picture.")] = "1200x900",
    point_size: Annotated[float, typer.Option(min=0.0, help="Side of a point, pixels.")] = 2.0,
    within: Within = None,
    as_json: Json = False,
) -> None:
    """Draw building models and point clouds as a PNG: flat shading, the same bytes each time."""
    from spatialq.workflows.rendering import write_picture

    pixels = re.fullmatch(r"([1-9]\d{0,5})x([1-9]\d{0,5})", size)
    if pixels is None:
        message = f"render: --size must be width x height such as 800x600, got {size!r}"
        raise ValueError(message)
    with progress() as update:
        row = write_picture(
            files,
            output,
            eye=_place("eye", eye),
            target=_place("target", target),
            up=_place("up", up) or (),
            fov=fov,
            view_height=view_height,
            size=(int(pixels[1]), int(pixels[2])),
            point_size=point_size,
            within=within,
            progress=update,
        )
    show([row], as_json=as_json, upright=True)


def _place(name: str, given: str | None) -> list[float] | None:
    """Read three numbers with commas between them."""
    if given is None:
        return None
    try:
        x, y, z = map(float, given.split(SEPARATOR))
    except ValueError:
        message = f"render: --{name} must be three numbers x,y,z such as 1,2.5,0, got {given!r}"
        raise ValueError(message) from None
    return [x, y, z]
