"""Declaration of `owm_ground`: ground seeds of a LiDAR cloud by the Overlap Window Method."""

from dataclasses import dataclass
from typing import Literal

from spatialq.functions.declaration import (
    LENGTH,
    Declaration,
    Output,
    PointParameters,
    PointsInput,
    parameter,
)

from .cost import are_apart, work, work_in_tiles
from .rounding import whole_half, window_step

MAX_SIZE = 1e9
"""Larger than any cloud in millimetres: the arithmetic of windows stays far from overflow."""

Ties = Literal["lowest_id", "octree"]
OddSizes = Literal["exact", "reference"]


@dataclass(frozen=True)
class WindowOptions(PointParameters):
    """The windows of the method, for all functions that begin with its seeds."""

    LENGTH_UNIT = "metres"

    window_size: float = parameter(
        10.0,
        "Side of the square windows.",
        unit=LENGTH,
        above=0,
        at_most=MAX_SIZE,
    )
    overlap: float = parameter(
        0.8,
        "Share of a window that the next one covers; the step between windows is rounded to 0.01 "
        "units.",
        at_least=0,
        below=1,
    )
    min_points: int | None = parameter(
        None,
        "Points that a window must hold to count; NULL takes half of what the mean density of the "
        "cloud's bounding box, or of bounds, promises for a window.",
        unit="points",
        at_least=1,
    )
    cell_size: float = parameter(
        20.0,
        "Side of the cells that get their lowest point where no window gave one; 0 switches that "
        "off.",
        unit=LENGTH,
        at_least=0,
        at_most=MAX_SIZE,
    )

    def check(self) -> None:
        """Reject windows that overlap so much that the next one is the same."""
        super().check()
        self._require_step("overlap")

    def _require_step(self, name: str) -> None:
        if window_step(self.window_size, getattr(self, name)) <= 0:
            must = f"small enough for a step of 0.01 at window_size {self.window_size}"
            self.reject(name, must)

    @property
    def overlaps(self) -> tuple[float, float]:
        """Shares along x and along y."""
        return self.overlap, self.overlap

    @property
    def steps(self) -> tuple[float, float]:
        """Distances of two windows along x and along y."""
        along_x, along_y = self.overlaps
        return window_step(self.window_size, along_x), window_step(self.window_size, along_y)

    @property
    def hits_needed(self) -> int:
        """Windows that a seed must be the lowest point of: a point may be in one only, or more."""
        return 2 if any(self.overlaps) else 1

    def half(self, size: float) -> float:
        """Half the side of a window or fill cell."""
        return whole_half(size)


@dataclass(frozen=True)
class Options(WindowOptions):
    """Parameters of `owm_ground`."""

    FUNCTION = "owm_ground"

    ties: Ties = parameter(
        "lowest_id",
        "Which of several points with the same z is the lowest: the one with the lowest point_id, "
        "or the one that the reference's octree visits first.",
    )
    overlap_y: float | None = parameter(
        None,
        "Share of a window that the next one along y covers; NULL takes overlap, which then is "
        "that along x only.",
        at_least=0,
        below=1,
    )
    odd_sizes: OddSizes = parameter(
        "exact",
        "Whole odd window_size and cell_size, in the unit of x and y, as they are, or one unit "
        "smaller, as in the reference implementation, which halves them as integers.",
    )

    def check(self) -> None:
        """Reject overlaps along y, too, with which the next window is the same."""
        super().check()
        if self.overlap_y is not None:
            self._require_step("overlap_y")

    @property
    def overlaps(self) -> tuple[float, float]:
        """Shares along x and along y."""
        return self.overlap, self.overlap if self.overlap_y is None else self.overlap_y

    def half(self, size: float) -> float:
        """Half the side of a window or fill cell."""
        return super().half(size) if self.odd_sizes == "reference" else size / 2


DECLARATION = Declaration(
    inputs=PointsInput(),
    parameters=Options,
    is_spatial=False,
    outputs=(
        Output(
            name="owm_ground",
            summary="Ground seeds of a LiDAR cloud by the Overlap Window Method: the points that "
            "are the lowest of at least two overlapping windows, and the lowest point of each "
            "cell that has no such seed.",
            columns={
                "point_id": "BIGINT",
                "x": "DOUBLE",
                "y": "DOUBLE",
                "z": "DOUBLE",
                "hits": "INTEGER",
                "filled": "BOOLEAN",
            },
            work=work,
            work_in_tiles=work_in_tiles,
            are_apart=are_apart,
            examples=("FROM owm_ground('points', window_size := 5.0) WHERE hits > 2",),
        ),
    ),
)
