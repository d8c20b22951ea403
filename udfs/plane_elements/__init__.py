"""Declaration of `plane_elements`: planes of a scan and the elements of a building model."""

from dataclasses import dataclass

from spatialq.functions.declaration import (
    Declaration,
    Output,
    PointsAndElementsInput,
    parameter,
)

from .. import detect_planes
from .cost import work, work_in_tiles


@dataclass(frozen=True)
class Options(detect_planes.Options):
    """Parameters of `plane_elements`: those of `detect_planes`, and how plane and face match."""

    FUNCTION = "plane_elements"

    split: bool = parameter(
        True, "Whether parts of a plane that are not connected are planes of their own."
    )
    max_angle: float = parameter(
        5.0,
        "Between the plane and a face of the element.",
        unit="degrees",
        at_least=0,
        at_most=45,
    )
    max_offset: float = parameter(
        0.05, "Maximum distance from a face of a point that lies on it.", unit="metres", above=0
    )
    min_overlap: float = parameter(
        0.2,
        "Share of the plane that lies on the element, or of the element's face that the plane "
        "covers: the greater of the two.",
        at_least=0,
        at_most=1,
    )


DECLARATION = Declaration(
    inputs=PointsAndElementsInput(),
    parameters=Options,
    takes_unit=True,
    doubt=detect_planes.DECLARATION.doubt,
    outputs=(
        Output(
            name="plane_elements",
            summary="Which elements of a building model the planes of a cloud belong to, and how "
            "far they are off: one row per plane and element, the best match first; a plane that "
            "matches no element has one row with NULL.",
            columns={
                "plane_id": "BIGINT",
                "global_id": "VARCHAR",
                "nearest": "DOUBLE",
                "overlap": "DOUBLE",
                "coverage": "DOUBLE",
                "angle": "DOUBLE",
                "deviation": "DOUBLE",
                **{n: k for n, k in detect_planes.PLANE_COLUMNS.items() if n != "plane_id"},
            },
            work=work,
            work_in_tiles=work_in_tiles,
            examples=("FROM plane_elements('points', 'elements') WHERE abs(deviation) > 0.02",),
            codes={"orientation": detect_planes.ORIENTATIONS},
        ),
    ),
    uses=("detect_planes",),
)
