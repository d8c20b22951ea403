"""Ground and height above it for every point of a LiDAR cloud: signature, options, limits."""

from dataclasses import dataclass
from math import isfinite

from spatialq.udfs.owm_ground.windows import window_step

from spatialq.functions.declaration import Udf

from .cost import work

MAX_WIDTH = 1000.0


@dataclass(frozen=True)
class Options:
    """Options of `classify_ground`; lengths are in metres, whatever the unit of the cloud.

    Parameters
    ----------
    window_size : float, metres, > 0
        Side of the windows of `owm_ground`, whose seeds carry the terrain's large forms.
    overlap : float in [0, 1)
        Share of a window that the next one covers.
    min_points : int, >= 1, or None
        Points that a window must hold; None takes half of what the mean density promises.
    cell_size : float, metres, >= 0
        Side of the cells that get a seed where no window gave one; 0 switches that off.
    object_width : float, metres, in [0, 1000]
        Objects up to this width are seen as such; wider ones, such as halls, are terrain.
    max_distance : float, metres, >= 0
        Greatest distance of a ground point from level terrain, up or down.
    distance_per_slope : float, metres, >= 0
        How much that distance grows with the slope of the terrain: by so much at 100 %.
    unit : float, > 0
        Metres in a unit of x, y and z: 0.3048 for feet.
    """

    window_size: float = 10.0
    overlap: float = 0.8
    min_points: int | None = None
    cell_size: float = 20.0
    object_width: float = 60.0
    max_distance: float = 0.4
    distance_per_slope: float = 0.85
    unit: float = 1.0

    def __post_init__(self) -> None:
        def refuse(name: str, must: str) -> None:
            value = getattr(self, name)
            message = f"classify_ground: {name} must be {must}, got {value!r}"
            raise ValueError(message)

        for name in ("window_size", "unit"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) > 0):
                refuse(name, "> 0")
        if not 0 <= self.overlap < 1:
            refuse("overlap", ">= 0 and < 1")
        if window_step(self.window_size, self.overlap) <= 0:
            refuse("overlap", f"small enough for a step of 0.01 at window_size {self.window_size}")
        if self.min_points is not None and self.min_points < 1:
            refuse("min_points", ">= 1 or NULL")
        if not 0 <= self.object_width <= MAX_WIDTH:
            refuse("object_width", f">= 0 and <= {MAX_WIDTH:g}")
        for name in ("cell_size", "max_distance", "distance_per_slope"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                refuse(name, ">= 0")


UDF = Udf(
    name="classify_ground",
    columns=("x", "y", "z"),
    options=Options,
    returns={"point_id": "BIGINT", "height": "DOUBLE", "is_ground": "BOOLEAN"},
    work=work,
)
