"""Declaration of `ground_surface`: a terrain grid from ground points."""

from dataclasses import dataclass
from typing import Literal

from spatialq.functions.declaration import (
    Declaration,
    Output,
    Parameters,
    PointsInput,
    parameter,
)

from ..owm_ground import Options as SeedOptions
from .cost import work, work_in_tiles

Source = Literal["seeds", "points"]
Method = Literal["tin", "idw"]

MAX_NEIGHBOURS = 100


@dataclass(frozen=True)
class SourceOptions(SeedOptions):
    """What the terrain is made of; the first five parameters are those of `owm_ground`."""

    source: Source = parameter(
        "seeds",
        "What the terrain is made of: the seeds that owm_ground finds among the points, or the "
        "points themselves where all of them are ground.",
    )


@dataclass(frozen=True)
class TerrainOptions(Parameters):
    """How a terrain grid is interpolated, also for `write_ground`."""

    resolution: float = parameter(1.0, "Side of a cell.", unit="units of x and y", above=0)
    method: Method = parameter(
        "tin",
        "'tin' is linear on the Delaunay triangulation; 'idw' is the mean of the nearest points, "
        "weighted with the inverse square of their distance.",
    )
    neighbours: int = parameter(
        10,
        "How many nearest points 'idw' takes.",
        unit="points",
        at_least=1,
        at_most=MAX_NEIGHBOURS,
    )
    extrapolate: bool = parameter(
        False,
        "Whether cells outside the convex hull of the ground points get a height as well: with "
        "'tin' that of the nearest point, with 'idw' as inside.",
    )


@dataclass(frozen=True)
class Options(TerrainOptions, SourceOptions):
    """Parameters of `ground_surface`."""

    FUNCTION = "ground_surface"

    thin: bool = parameter(
        False, "Whether each cell keeps only the ground point nearest to its centre."
    )


DECLARATION = Declaration(
    inputs=PointsInput(),
    parameters=Options,
    is_spatial=False,
    outputs=(
        Output(
            name="ground_surface",
            summary="A terrain grid, interpolated between the ground seeds of a cloud (those of "
            "owm_ground) or between points that are ground already: one row per cell. The edges "
            "of cells are multiples of the resolution; z is NULL where there is no height.",
            columns={"x": "DOUBLE", "y": "DOUBLE", "z": "DOUBLE"},
            work=work,
            work_in_tiles=work_in_tiles,
            examples=("FROM ground_surface('points', resolution := 0.5) WHERE z IS NOT NULL",),
        ),
    ),
    uses=("owm_ground",),
)
