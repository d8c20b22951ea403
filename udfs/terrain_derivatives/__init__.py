"""Declaration of `terrain_derivatives`: slope, aspect, hillshade, curvatures and roughness."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from spatialq.functions.declaration import (
    CoordinateParameters,
    Declaration,
    GridInput,
    Output,
    parameter,
)

from .cost import work

if TYPE_CHECKING:
    from spatialq.data.grid import Grid, Windows

Gradient = Literal["horn", "zevenbergen_thorne"]
Slope = Literal["degrees", "percent"]
Ruggedness = Literal["riley", "wilson"]


@dataclass(frozen=True)
class Options(CoordinateParameters):
    """Parameters of `terrain_derivatives`; names and defaults are those of gdaldem."""

    FUNCTION = "terrain_derivatives"

    gradient: Gradient = parameter(
        "horn",
        "How slope, aspect and hillshade take the gradient: 'horn' of all eight neighbours, "
        "'zevenbergen_thorne' of the four nearest, which suits smooth terrain.",
    )
    slope_unit: Slope = parameter("degrees", "Unit of the slope.")
    azimuth: float = parameter(
        315.0,
        "Where the light of the hillshade comes from, clockwise from north.",
        unit="degrees",
        at_least=0,
        at_most=360,
    )
    altitude: float = parameter(
        45.0,
        "Height of the light of the hillshade above the horizon.",
        unit="degrees",
        at_least=0,
        at_most=90,
    )
    z_factor: float = parameter(
        1.0,
        "By what heights are multiplied for slope, hillshade and curvatures.",
        above=0,
    )
    ruggedness: Ruggedness = parameter(
        "riley",
        "What tri is: 'riley' the root of the summed squares of the differences to the eight "
        "neighbours, 'wilson' the mean of their absolute values.",
    )
    edges: bool = parameter(
        False,
        "Whether cells at the edge of the grid or beside a cell without a height get values, too: "
        "a neighbour that is missing counts as high as the cell itself.",
    )


def windows(grid: "Grid", _: Options) -> "Windows":
    """Say that a band holds a cell with its neighbours."""
    from spatialq.data.grid import WindowAxis, Windows

    def along(n: int) -> tuple[int, int, int]:
        return min(3, n), 1, max(1, n - 2)

    x = WindowAxis(*along(grid.columns))
    return Windows(*along(grid.rows), x, results=int(grid.z.shape[1]))


DECLARATION = Declaration(
    inputs=GridInput(),
    parameters=Options,
    outputs=(
        Output(
            name="terrain_derivatives",
            summary="Slope, aspect, hillshade, curvatures, topographic position, ruggedness and "
            "roughness of a grid, each from a cell and its eight neighbours: one row per cell, "
            "with NULL at the edge of the grid and beside cells without a height.",
            columns=dict.fromkeys(
                (
                    "x", "y", "z", "slope", "aspect", "hillshade", "profile_curvature",
                    "plan_curvature", "tpi", "tri", "roughness",
                ),
                "DOUBLE",
            ),
            work=work,
            heights=("z", "tpi", "tri", "roughness"),
            examples=(
                "SELECT x, y, slope FROM terrain_derivatives('dem.tif') WHERE slope > 10",
                "FROM terrain_derivatives('dem.tif', slope_unit := 'percent', edges := true)",
            ),
            windows=windows,
        ),
    ),
)  # fmt: skip
