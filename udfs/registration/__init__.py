"""Declaration of `registration`: where in a building model a scan was made."""

from dataclasses import dataclass

from spatialq.functions.declaration import (
    Declaration,
    Output,
    PointParameters,
    PointsAndElementsInput,
    parameter,
)

from .cost import work

STATUSES = ("found", "ambiguous", "not found")
UPS = ("z", "y", "other")
MATRIX = tuple(f"m{row}{column}" for row in range(1, 5) for column in range(1, 5))
"""The entries of the movement, row by row."""


@dataclass(frozen=True)
class Options(PointParameters):
    """Parameters of `registration`."""

    FUNCTION = "registration"

    tilt: bool = parameter(
        False,
        "Whether the scan may be tilted: the vertical is looked for, too, and all six degrees of "
        "freedom are estimated. Otherwise its z-axis, or else its y-axis, is the vertical, and the "
        "movement is a turn about it and a shift.",
    )
    placed: bool = parameter(
        False,
        "Whether the scan is already in coordinates of the model, but for 1 m and 2 degrees: only "
        "there it is looked for, and sentence says how it lies off.",
    )
    unit: float | None = parameter(
        None,
        "Metres in one unit of x, y and z, such as 0.3048 for feet; NULL takes that of the CRS, "
        "and tries metres, millimetres and feet where none is known.",
        unit="metres",
        above=0,
    )


DECLARATION = Declaration(
    inputs=PointsAndElementsInput(are_placed=False),
    parameters=Options,
    takes_unit=True,
    finds_unit=True,
    outputs=(
        Output(
            name="registration",
            summary="The movement that brings a scan to where it fits a building model, without a "
            "starting value: one row per candidate, the best first.",
            columns={
                "candidate": "BIGINT",
                "status": "VARCHAR",
                **dict.fromkeys(MATRIX, "DOUBLE"),
                "explained": "DOUBLE",
                "worse": "DOUBLE",
                "rmse": "DOUBLE",
                "sigma_x": "DOUBLE",
                "sigma_y": "DOUBLE",
                "sigma_z": "DOUBLE",
                "sigma_turn": "DOUBLE",
                "unit": "DOUBLE",
                "up": "VARCHAR",
                "sentence": "VARCHAR",
            },
            work=work,
            examples=("FROM registration('points', 'elements') WHERE status <> 'not found'",),
            codes={"status": STATUSES, "up": UPS},
            of_heights=("m13", "m23", "m33", "m43"),
        ),
    ),
)
