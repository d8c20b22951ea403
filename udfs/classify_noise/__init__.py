"""Declaration of `classify_noise`: points of a cloud that are far from all others."""

from dataclasses import dataclass
from typing import Literal

from spatialq.functions.declaration import (
    Declaration,
    Output,
    PointParameters,
    PointsInput,
    parameter,
)

from .cost import work

LOW_NOISE, HIGH_NOISE, NEVER_CLASSIFIED = 7, 18, 0
"""ASPRS classes."""
MOST_NEIGHBOURS = 1000


@dataclass(frozen=True)
class Options(PointParameters):
    """Parameters of `classify_noise`."""

    FUNCTION = "classify_noise"

    method: Literal["statistical", "isolated"] = parameter(
        "statistical",
        "'statistical': noise is farther from its neighbours than most points are from theirs; "
        "'isolated': it has few points in the voxels around it.",
    )
    mean_k: int = parameter(
        8,
        "Neighbours of a point whose mean distance is compared, and above or below whose mean "
        "height noise is.",
        at_least=1,
        at_most=MOST_NEIGHBOURS,
    )
    multiplier: float = parameter(
        2.0,
        "By how many standard deviations the mean distance of statistical noise exceeds the mean "
        "of all points.",
        at_least=0,
    )
    voxel_size: float = parameter(
        5.0, "Edge of the voxels in which isolated points are counted.", unit="metres", above=0
    )
    max_points: int = parameter(
        6,
        "How many points, itself included, a point that is isolated has in its voxel and the 26 "
        "around it, at most.",
        at_least=1,
    )


DECLARATION = Declaration(
    inputs=PointsInput(attributes={"classification": "UTINYINT"}),
    parameters=Options,
    keeps_strays=True,
    outputs=(
        Output(
            name="classify_noise",
            summary="The classes of a point cloud with its noise: 7 for outliers below their "
            "neighbours, 18 for those above; all other points keep theirs, 0 where they have none. "
            "One row per point.",
            columns={"point_id": "BIGINT", "classification": "UTINYINT"},
            work=work,
            examples=("SELECT * FROM classify_noise('points') WHERE classification = 18",),
        ),
    ),
)
