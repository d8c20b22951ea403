"""What lies above, below, north, south, east or west of what: signature, options, limits."""

from dataclasses import dataclass
from math import isfinite
from typing import Literal, get_args

from spatialq.functions.declaration import Choices, Udf

from .cost import work

Direction = Literal["above", "below", "north", "south", "east", "west"]
Model = Literal["projection", "halfspace"]


@dataclass(frozen=True)
class Options(Choices):
    """Options of `direction`.

    Parameters
    ----------
    direction : 'above', 'below', 'north', 'south', 'east' or 'west'
        Where b lies, seen from a.
    model : 'projection' or 'halfspace'
        Whether b must lie beyond a on common lines along the direction, or beyond a's extreme.
    strict : bool
        Whether all points of b must lie there, instead of some.
    true_north : float, degrees
        Angle from +Y to true north, clockwise seen from above: north is (sin, cos) of it. A
        `TrueNorth` (x, y) of an IfcGeometricRepresentationContext is `degrees(atan2(x, y))`.
    tolerance : float, >= 0
        Metres. What reaches less far beyond, or has a narrower part in common seen along the
        direction, does not count. Less than a micrometre counts as a micrometre.
    """

    FUNCTION = "direction"

    direction: Direction = "above"
    model: Model = "projection"
    strict: bool = False
    true_north: float = 0.0
    tolerance: float = 0.001

    def __post_init__(self) -> None:
        for name, kind in (("direction", Direction), ("model", Model)):
            if getattr(self, name) not in get_args(kind):
                self.refuse(name, " or ".join(map(repr, get_args(kind))))
        if not isfinite(self.true_north):
            self.refuse("true_north", "a finite number of degrees")
        if not (isfinite(self.tolerance) and self.tolerance >= 0):
            self.refuse("tolerance", ">= 0 metres")


UDF = Udf(
    name="direction",
    columns=(),
    options=Options,
    returns={"a": "VARCHAR", "b": "VARCHAR"},
    work=work,
)
