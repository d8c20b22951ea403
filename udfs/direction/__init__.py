"""Declaration of `direction`: what lies above, below, north, south, east or west of what."""

from dataclasses import dataclass
from typing import Literal, get_args

from spatialq.functions.declaration import (
    Declaration,
    ElementsInput,
    Output,
    Parameters,
    parameter,
)

from .cost import work

Direction = Literal["above", "below", "north", "south", "east", "west"]
Model = Literal["projection", "halfspace"]

DIRECTIONS = get_args(Direction)


@dataclass(frozen=True)
class Options(Parameters):
    """Parameters of `direction`."""

    FUNCTION = "direction"

    direction: Direction = parameter("above", "Where b lies, seen from a.")
    model: Model = parameter(
        "projection",
        "Whether b must lie beyond a on common lines along the direction, or beyond a's extreme.",
    )
    strict: bool = parameter(False, "Whether all points of b must lie there, instead of some.")
    true_north: float | None = parameter(
        None,
        "Angle from +Y to true north, clockwise seen from above: north is (sin, cos) of it. NULL "
        "stands for what the column true_north of the elements says, if there is one, else for 0.",
        unit="degrees",
        of_elements=True,
    )
    tolerance: float = parameter(
        0.001,
        "What reaches less far beyond, or has a narrower part in common seen along the direction, "
        "does not count. Less than a micrometre counts as a micrometre.",
        unit="metres",
        at_least=0,
    )


DECLARATION = Declaration(
    inputs=ElementsInput(),
    parameters=Options,
    outputs=(
        Output(
            name="direction",
            summary="The pairs of elements of which b lies in a direction from a.",
            columns={"a": "VARCHAR", "b": "VARCHAR"},
            work=work,
        ),
    ),
)
