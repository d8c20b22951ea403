"""The plane of each point of a cloud: signature, options, limits."""

from dataclasses import dataclass

from spatialq.functions.declaration import Udf

from ..detect_planes import Options as DetectOptions
from .cost import work


@dataclass(frozen=True)
class Options(DetectOptions):
    """Options of `plane_points`: those of `detect_planes`."""

    FUNCTION = "plane_points"


UDF = Udf(
    name="plane_points",
    columns=("x", "y", "z"),
    options=Options,
    returns={"point_id": "BIGINT", "plane_id": "BIGINT", "distance": "DOUBLE"},
    work=work,
    nulls={"plane_id": 0},
)
