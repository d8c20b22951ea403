"""Declaration of `classify_ground`: ground, and the height above it, for every point."""

from dataclasses import dataclass
from math import nan

from spatialq.functions.declaration import Declaration, Output, PointsInput, parameter

from ..owm_ground import WindowOptions
from .cost import work, work_in_tiles

MAX_WIDTH = 1000.0


@dataclass(frozen=True)
class GroundOptions(WindowOptions):
    """What ground is; lengths are in metres, whatever the unit of the cloud."""

    object_width: float = parameter(
        60.0,
        "Width of the widest objects; wider ones, such as halls, are taken for terrain.",
        unit="metres",
        at_least=0,
        at_most=MAX_WIDTH,
    )
    max_distance: float = parameter(
        0.4,
        "Maximum distance of a ground point from level terrain, up or down.",
        unit="metres",
        at_least=0,
    )
    distance_per_slope: float = parameter(
        0.85,
        "How much that distance grows with the slope of the terrain: by this much at 100 % slope.",
        unit="metres",
        at_least=0,
    )


@dataclass(frozen=True)
class Options(GroundOptions):
    """Parameters of `classify_ground`."""

    FUNCTION = "classify_ground"


DECLARATION = Declaration(
    inputs=PointsInput(),
    parameters=Options,
    takes_unit=True,
    outputs=(
        Output(
            name="classify_ground",
            summary="Ground of a LiDAR cloud, and the height above it: one row per point.",
            columns={
                "point_id": "BIGINT",
                "height": "DOUBLE",
                "is_ground": "BOOLEAN",
                "margin": "FLOAT",
            },
            work=work,
            work_in_tiles=work_in_tiles,
            heights=("height", "margin"),
            of_strays={"height": nan, "is_ground": False, "margin": nan},
            examples=(
                "FROM points JOIN classify_ground('points') USING (point_id) WHERE height > 2",
            ),
        ),
    ),
    uses=("owm_ground",),
)
