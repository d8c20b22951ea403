"""Declaration of `contours`: lines of equal height of a grid."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spatialq.functions.declaration import (
    CoordinateParameters,
    Declaration,
    GridInput,
    Output,
    Size,
    Work,
    parameter,
)

if TYPE_CHECKING:
    from spatialq.data.grid import Grid, Windows

BYTES_PER_CELL = 48
"""Coordinates and height of a cell in double precision, its state, the lines."""


@dataclass(frozen=True)
class Options(CoordinateParameters):
    """Parameters of `contours`."""

    FUNCTION = "contours"

    interval: float = parameter(
        10.0, "Difference of height from a contour to the next.", unit="units of z", above=0
    )
    base: float = parameter(
        0.0, "Height of one contour, from which the others are counted.", unit="units of z"
    )


def windows(grid: "Grid", _: Options) -> "Windows":
    """Say that all cells are needed at once, since a line may run through all of them."""
    from spatialq.data.grid import WindowAxis, Windows

    return Windows(grid.rows, 1, 1, WindowAxis(grid.columns, 1, 1), results=1)


def work(size: Size, _: Any) -> Work:
    """Count the cells."""
    return Work(
        bytes_in=8 * size.rows,
        bytes_out=4 * size.rows,
        steps={"cells": size.rows},
        bytes_kernel=BYTES_PER_CELL * size.rows,
    )


DECLARATION = Declaration(
    inputs=GridInput(),
    parameters=Options,
    is_spatial=False,
    allows_degrees=True,
    outputs=(
        Output(
            name="contours",
            summary="Contours of a grid: one row per line of equal height, which is closed or ends "
            "at the edge of the grid or beside cells without a height. Lines never cross or "
            "touch; higher ground is to their left.",
            columns={
                "height": "DOUBLE",
                "is_closed": "BOOLEAN",
                "length": "DOUBLE",
                "geometry": "GEOMETRY",
            },
            work=work,
            examples=(
                "FROM contours('dem.tif', interval := 5) WHERE length > 20",
                "SELECT height, sum(length) FROM contours('dem.tif', interval := 100) GROUP BY ALL",
            ),
            windows=windows,
        ),
    ),
)
