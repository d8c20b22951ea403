"""Planes of a point cloud by the kernel-based 3D Hough transform: signature, options, limits."""

from dataclasses import dataclass
from math import isfinite
from typing import Literal, get_args

from spatialq.functions.declaration import Choices, Udf

from .cost import work

Kernel = Literal["tangent", "paper"]

ORIENTATIONS = ("horizontal", "vertical", "oblique")


@dataclass(frozen=True)
class Options(Choices):
    """Options of `detect_planes` and `plane_points`; lengths are in the unit of x, y and z.

    What is None follows from the cloud: see README.md. Names are the paper's where it has one.

    Parameters
    ----------
    kernel : 'tangent' or 'paper'
        How a node votes: a Gaussian in the tangent plane of its normal, the same wherever the
        origin is; or the paper's, whose covariance is carried over to rho, phi and theta, and
        which loses planes through the centroid of the cloud.
    phi_num : int, in [4, 180]
        Steps of the accumulator ball from pole to pole: 30 are cells of 6 degrees.
    rho_num : int, in [10, 10000], or None
        Steps of the distance from the centroid, up to the farthest point.
    s_level : int, in [0, 12], or None
        First level of the octree whose nodes may be planar; the root is level 0.
    s_ms : int, >= 4, or None
        Points that a node must have.
    s_ps : float, in (0, 1), or None
        The same as a share of the cloud; at most one of the two.
    max_thickness : float, in (0, 1)
        A planar node's least variance is less than this share of the middle one (s_alpha).
    min_isotropy : float, in [0, 1)
        A planar node's middle variance is more than this share of the greatest (s_beta).
    max_distance : float, > 0, or None
        Farthest point of a plane from it; None takes three times the noise of each plane.
    min_points : int, >= 3, or None
        Points that a plane must have.
    split : bool
        Whether parts of a plane that are not connected are planes of their own.
    orientation_tolerance : float, degrees, in [0, 45]
        How far a horizontal or vertical plane may be from it.
    """

    FUNCTION = "detect_planes"

    kernel: Kernel = "tangent"
    phi_num: int = 30
    rho_num: int | None = None
    s_level: int | None = None
    s_ms: int | None = None
    s_ps: float | None = None
    max_thickness: float = 1 / 25
    min_isotropy: float = 1 / 6
    max_distance: float | None = None
    min_points: int | None = None
    split: bool = False
    orientation_tolerance: float = 5.0

    def __post_init__(self) -> None:
        if self.kernel not in get_args(Kernel):
            self.refuse("kernel", " or ".join(map(repr, get_args(Kernel))))
        if not 4 <= self.phi_num <= 180:
            self.refuse("phi_num", ">= 4 and <= 180")
        if self.rho_num is not None and not 10 <= self.rho_num <= 10000:
            self.refuse("rho_num", ">= 10 and <= 10000, or NULL")
        if self.s_level is not None and not 0 <= self.s_level <= 12:
            self.refuse("s_level", ">= 0 and <= 12, or NULL")
        if self.s_ms is not None and not self.s_ms >= 4:
            self.refuse("s_ms", ">= 4 or NULL")
        if self.s_ps is not None and not 0 < self.s_ps < 1:
            self.refuse("s_ps", "> 0 and < 1, or NULL")
        if self.s_ps is not None and self.s_ms is not None:
            self.refuse("s_ps", f"NULL where s_ms is given ({self.s_ms})")
        if not 0 < self.max_thickness < 1:
            self.refuse("max_thickness", "> 0 and < 1")
        if not 0 <= self.min_isotropy < 1:
            self.refuse("min_isotropy", ">= 0 and < 1")
        if self.max_distance is not None and not (
            isfinite(self.max_distance) and self.max_distance > 0
        ):
            self.refuse("max_distance", "> 0 or NULL")
        if self.min_points is not None and not self.min_points >= 3:
            self.refuse("min_points", ">= 3 or NULL")
        if not 0 <= self.orientation_tolerance <= 45:
            self.refuse("orientation_tolerance", ">= 0 and <= 45 degrees")


UDF = Udf(
    name="detect_planes",
    columns=("x", "y", "z"),
    options=Options,
    returns={
        "plane_id": "BIGINT",
        "nx": "DOUBLE",
        "ny": "DOUBLE",
        "nz": "DOUBLE",
        "d": "DOUBLE",
        "votes": "DOUBLE",
        "point_count": "BIGINT",
        "cx": "DOUBLE",
        "cy": "DOUBLE",
        "cz": "DOUBLE",
        "rmse": "DOUBLE",
        "area": "DOUBLE",
        "orientation": "VARCHAR",
        "boundary": "GEOMETRY",
    },
    work=work,
    values={"orientation": ORIENTATIONS},
)
