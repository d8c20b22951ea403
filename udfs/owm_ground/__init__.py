"""Ground seeds of a LiDAR cloud by the Overlap Window Method: signature, options, limits."""

from dataclasses import dataclass
from typing import Literal, get_args

from spatialq.functions.declaration import Choices, Udf

from .cost import work
from .windows import window_step

MAX_SIZE = 1e9
"""Larger than any cloud in millimetres: the arithmetic of windows stays far from overflow."""

Ties = Literal["lowest_id", "octree"]


@dataclass(frozen=True)
class Options(Choices):
    """Options of `owm_ground`; lengths are in the units of x and y.

    Parameters
    ----------
    window_size : float, > 0 and <= 1e9
        Side of the square window. Whole odd numbers give a window one unit narrower, as in the
        reference implementation.
    overlap : float in [0, 1)
        Share of a window that the next one covers; the step is rounded to 0.01 units.
    min_points : int, >= 1, or None
        Points that a window must hold to count; None takes half of what the mean density of
        the cloud's bounding box promises for a window.
    cell_size : float, >= 0 and <= 1e9
        Side of the cells that get their lowest point where no window gave one; 0 switches that
        off.
    ties : 'lowest_id' or 'octree'
        Which of several points of the same z is the lowest: the one of the lowest point_id, or
        the one that the reference's octree visits first.
    """

    FUNCTION = "owm_ground"

    window_size: float = 10.0
    overlap: float = 0.8
    min_points: int | None = None
    cell_size: float = 20.0
    ties: Ties = "lowest_id"

    def __post_init__(self) -> None:
        if not 0 < self.window_size <= MAX_SIZE:
            self.refuse("window_size", f"> 0 and <= {MAX_SIZE:g}")
        if not 0 <= self.overlap < 1:
            self.refuse("overlap", ">= 0 and < 1")
        if window_step(self.window_size, self.overlap) <= 0:
            self.refuse(
                "overlap", f"small enough for a step of 0.01 at window_size {self.window_size}"
            )
        if self.min_points is not None and self.min_points < 1:
            self.refuse("min_points", ">= 1 or NULL")
        if not 0 <= self.cell_size <= MAX_SIZE:
            self.refuse("cell_size", f">= 0 and <= {MAX_SIZE:g}")
        if self.ties not in get_args(Ties):
            self.refuse("ties", " or ".join(map(repr, get_args(Ties))))


UDF = Udf(
    name="owm_ground",
    columns=("x", "y", "z"),
    options=Options,
    returns={
        "point_id": "BIGINT",
        "x": "DOUBLE",
        "y": "DOUBLE",
        "z": "DOUBLE",
        "hits": "INTEGER",
        "filled": "BOOLEAN",
    },
    work=work,
)
