"""A terrain grid from ground points: signature, options, limits."""

from dataclasses import dataclass
from math import isfinite
from typing import Literal, get_args

from spatialq.functions.declaration import Udf

from ..owm_ground import Options as SeedOptions
from .cost import work

Source = Literal["seeds", "points"]
Method = Literal["tin", "idw"]

MAX_NEIGHBOURS = 100


@dataclass(frozen=True)
class Options(SeedOptions):
    """Options of `ground_surface`; the first five are those of `owm_ground`.

    Parameters
    ----------
    source : 'seeds' or 'points'
        What the terrain is made of: the seeds that `owm_ground` finds among the points, or the
        points themselves, which are ground then.
    resolution : float, > 0
        Side of a cell, in the units of x and y.
    method : 'tin' or 'idw'
        Linear on the Delaunay triangulation, or the mean of the nearest points weighted with
        the inverse square of their distance.
    neighbours : int, 1 to 100
        How many nearest points 'idw' takes.
    extrapolate : bool
        Whether cells outside the convex hull of the ground points get a value as well: with
        'tin' that of the nearest point, with 'idw' as inside.
    thin : bool
        Whether only one ground point a cell is kept, the one nearest to the cell's centre.
    """

    FUNCTION = "ground_surface"

    source: Source = "seeds"
    resolution: float = 1.0
    method: Method = "tin"
    neighbours: int = 10
    extrapolate: bool = False
    thin: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source not in get_args(Source):
            self.refuse("source", " or ".join(map(repr, get_args(Source))))
        if not (isfinite(self.resolution) and self.resolution > 0):
            self.refuse("resolution", "> 0")
        if self.method not in get_args(Method):
            self.refuse("method", " or ".join(map(repr, get_args(Method))))
        if not 1 <= self.neighbours <= MAX_NEIGHBOURS:
            self.refuse("neighbours", f"1 to {MAX_NEIGHBOURS}")


UDF = Udf(
    name="ground_surface",
    columns=("x", "y", "z"),
    options=Options,
    returns={"x": "DOUBLE", "y": "DOUBLE", "z": "DOUBLE"},
    work=work,
)
