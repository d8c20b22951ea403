"""Planes of a scan and the elements of a building model: signature, options, limits."""

from dataclasses import dataclass
from math import isfinite

from spatialq.functions.declaration import Udf

from .. import detect_planes
from .cost import work


@dataclass(frozen=True)
class Options(detect_planes.Options):
    """Options of `plane_elements`: how a plane and a face match, and those of `detect_planes`.

    Parameters
    ----------
    max_angle : float, degrees, in [0, 45]
        Between the plane and a face of the element.
    max_offset : float, metres, > 0
        Farthest point from a face that still lies on it.
    min_overlap : float, in [0, 1]
        Share of the plane that lies on the element, or of the element's face that the plane
        covers: the greater of the two.
    unit : float, > 0
        Metres in a unit of x, y and z; elements are in metres.
    split : bool
        As for `detect_planes`; here connected patches are the rule.
    """

    FUNCTION = "plane_elements"

    split: bool = True
    max_angle: float = 5.0
    max_offset: float = 0.05
    min_overlap: float = 0.2
    unit: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.max_angle <= 45:
            self.refuse("max_angle", ">= 0 and <= 45 degrees")
        if not (isfinite(self.max_offset) and self.max_offset > 0):
            self.refuse("max_offset", "> 0 metres")
        if not 0 <= self.min_overlap <= 1:
            self.refuse("min_overlap", ">= 0 and <= 1")
        if not (isfinite(self.unit) and self.unit > 0):
            self.refuse("unit", "> 0 metres")


UDF = Udf(
    name="plane_elements",
    columns=("x", "y", "z"),
    options=Options,
    returns={
        "plane_id": "BIGINT",
        "global_id": "VARCHAR",
        "nearest": "DOUBLE",
        "overlap": "DOUBLE",
        "coverage": "DOUBLE",
        "angle": "DOUBLE",
        "deviation": "DOUBLE",
        **{name: kind for name, kind in detect_planes.UDF.returns.items() if name != "plane_id"},
    },
    work=work,
    values=detect_planes.UDF.values,
    takes_elements=True,
)
