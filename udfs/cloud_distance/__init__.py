"""Declaration of `cloud_distance`: the points of a cloud and how far off another one is."""

from dataclasses import dataclass
from typing import Literal

from spatialq.functions.declaration import (
    Declaration,
    Output,
    PointParameters,
    PointsAndTableInput,
    parameter,
)

from .cost import work

NO_POINT = -1
"""Of a point without a near one of the reference."""
LEAST = 5
"""Points in each part of a cylinder, below which there is no level of detection."""
Z_95 = 1.96
"""Quantile of the normal distribution: 95 % of its values are nearer to the mean."""
FARTHEST = 1e6
"""Metres that a length may have at most: more is a mistake, and its square may be no number."""
LENGTHS = 10
"""Length of a cylinder to either side, in its radii, where none is given."""
COUNTS = ("neighbours", "reference_neighbours")
VALUES = ("distance", "nx", "ny", "nz", "spread", "reference_spread", "level_of_detection")
"""Columns of numbers of points and of lengths, in the order in which kernels fill them in."""


@dataclass(frozen=True)
class Options(PointParameters):
    """Parameters of `cloud_distance`."""

    FUNCTION = "cloud_distance"

    method: Literal["nearest", "m3c2"] = parameter(
        "nearest",
        "'nearest' is the distance to the nearest point of the reference; 'm3c2' the one along the "
        "normal between the mean positions of the points of both clouds in a cylinder.",
    )
    max_distance: float | None = parameter(
        None,
        "How far a point of the reference may be; for 'm3c2' along the normal, to either side. "
        "NULL is any distance, and for 'm3c2' ten times `radius`.",
        unit="metres",
        above=0,
        at_most=FARTHEST,
    )
    radius: float = parameter(
        0.5,
        "Radius of the cylinder of 'm3c2', which should hold 20 points of each cloud or more.",
        unit="metres",
        above=0,
        at_most=FARTHEST,
    )
    normal_radius: float = parameter(
        1.0,
        "The normal of a point is that of the plane through the points within this distance, "
        "upwards; of no account where the points have nx, ny and nz.",
        unit="metres",
        above=0,
        at_most=FARTHEST,
    )
    registration_error: float = parameter(
        0.0,
        "What the registration of the two clouds may be off, as a standard deviation: part of the "
        "level of detection.",
        unit="metres",
        at_least=0,
        at_most=FARTHEST,
    )

    @property
    def reach(self) -> float:
        """Length of a cylinder to either side of its point."""
        return LENGTHS * self.radius if self.max_distance is None else self.max_distance


DECLARATION = Declaration(
    inputs=PointsAndTableInput(
        attributes=dict.fromkeys(("nx", "ny", "nz"), "DOUBLE"), other="reference", kind="cloud"
    ),
    parameters=Options,
    keeps_strays=True,
    outputs=(
        Output(
            name="cloud_distance",
            summary="How far each point of a cloud is from another cloud: from its nearest point, "
            "or along the normal by M3C2 with the level of detection; one row per point, with NULL "
            "where no point of the reference is near.",
            columns={
                "point_id": "BIGINT",
                "distance": "DOUBLE",
                "reference_id": "BIGINT",
                "nx": "DOUBLE",
                "ny": "DOUBLE",
                "nz": "DOUBLE",
                "neighbours": "INTEGER",
                "reference_neighbours": "INTEGER",
                "spread": "DOUBLE",
                "reference_spread": "DOUBLE",
                "level_of_detection": "DOUBLE",
            },
            work=work,
            examples=(
                "FROM cloud_distance('points', 'last_year', method := 'm3c2', radius := 0.3)",
            ),
        ),
    ),
)
