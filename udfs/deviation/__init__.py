"""Declaration of `deviation`: the points of a scan and the nearest faces of a building model."""

from dataclasses import dataclass
from math import nan

from spatialq.functions.declaration import (
    Declaration,
    Output,
    PointParameters,
    PointsAndElementsInput,
    parameter,
)

from .cost import work, work_in_tiles

ORIENTATIONS = ("closed", "open", "inverted")
NO_FACE = -1
"""Of a point without a face: element, face and code of the orientation."""


@dataclass(frozen=True)
class Options(PointParameters):
    """Parameters of `deviation`."""

    FUNCTION = "deviation"

    max_distance: float = parameter(
        0.1,
        "How far from a face a point may be; farther ones have NULL.",
        unit="metres",
        above=0,
    )


DECLARATION = Declaration(
    inputs=PointsAndElementsInput(attributes=dict.fromkeys(("nx", "ny", "nz"), "DOUBLE")),
    parameters=Options,
    takes_unit=True,
    outputs=(
        Output(
            name="deviation",
            summary="The nearest element and face of each point of a cloud, and how far off it is: "
            "positive outside the element, negative inside; one row per point, with NULL where no "
            "face is near.",
            columns={
                "point_id": "BIGINT",
                "global_id": "VARCHAR",
                "face": "BIGINT",
                "distance": "DOUBLE",
                "angle": "DOUBLE",
                "orientation": "VARCHAR",
            },
            work=work,
            work_in_tiles=work_in_tiles,
            examples=(
                "SELECT global_id, avg(distance) FROM deviation('points', 'elements') GROUP BY ALL",
            ),
            codes={"orientation": ORIENTATIONS},
            nulls=dict.fromkeys(("element", "face", "orientation"), NO_FACE),
            of_strays={
                "element": NO_FACE,
                "face": NO_FACE,
                "distance": nan,
                "angle": nan,
                "orientation": NO_FACE,
            },
        ),
    ),
)
