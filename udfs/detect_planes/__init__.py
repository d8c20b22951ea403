"""Declaration of `detect_planes` and of its further outputs.

These are `plane_points`, `plane_nodes` and `plane_peaks`.
"""

from dataclasses import dataclass
from math import nan
from typing import Literal

from spatialq.functions.declaration import (
    LENGTH,
    Declaration,
    Output,
    PointParameters,
    PointsInput,
    parameter,
)

from .cost import work, work_in_tiles, work_of_points, work_of_points_in_tiles

Kernel = Literal["tangent", "paper"]
Outline = Literal["concave", "convex"]

ORIENTATIONS = ("horizontal", "vertical", "oblique")
NODE_STATES = ("plane", "small", "free", "explained", "thick", "stair")


@dataclass(frozen=True)
class Options(PointParameters):
    """Parameters of `detect_planes` and its further outputs.

    What is None follows from the cloud: see README.md. Names are the paper's where it has one.
    """

    FUNCTION = "detect_planes"
    LENGTH_UNIT = "units of x, y and z"

    kernel: Kernel = parameter(
        "tangent",
        "How a node of the octree votes: 'tangent' is a Gaussian in the tangent plane of its "
        "normal, the same wherever the origin is; 'paper' transforms the covariance to rho, phi "
        "and theta as published. Only the vote is the published one.",
    )
    phi_num: int = parameter(
        30,
        "Steps of the accumulator ball from pole to pole: 30 are cells of 6 degrees.",
        at_least=4,
        at_most=180,
    )
    rho_num: int | None = parameter(
        None,
        "Steps of the distance from the centroid, up to the farthest point.",
        at_least=10,
        at_most=10000,
    )
    s_level: int | None = parameter(
        None,
        "First level of the octree whose nodes may be planar; the root is level 0.",
        at_least=0,
        at_most=12,
    )
    s_ms: int | None = parameter(None, "Points that a node must have.", unit="points", at_least=4)
    s_ps: float | None = parameter(
        None,
        "Points that a node must have, as a share of the cloud; not together with s_ms.",
        above=0,
        below=1,
    )
    max_thickness: float = parameter(
        1 / 25,
        "The smallest variance of a planar node is less than this share of the second one "
        "(s_alpha).",
        above=0,
        below=1,
    )
    min_isotropy: float = parameter(
        1 / 6,
        "The second variance of a planar node is more than this share of the largest (s_beta).",
        at_least=0,
        below=1,
    )
    max_distance: float | None = parameter(
        None,
        "Maximum distance of a point from its plane; NULL takes three times the noise of each "
        "plane, but no more than three times max_rmse.",
        unit=LENGTH,
        above=0,
    )
    max_rmse: float | None = parameter(
        None,
        "Maximum root mean square distance of the points of a plane from it. The default of "
        "max_distance is three times this; NULL takes the noise of the cloud for that, where "
        "it is known, and drops no plane.",
        unit=LENGTH,
        above=0,
    )
    min_points: int | None = parameter(
        None, "Points that a plane must have.", unit="points", at_least=3
    )
    split: bool = parameter(
        False, "Whether parts of a plane that are not connected are planes of their own."
    )
    outline: Outline = parameter(
        "concave",
        "What boundary is: 'concave' is the outline of the plane's parts, with holes; 'convex' is "
        "one convex polygon around all of them.",
    )
    orientation_tolerance: float = parameter(
        5.0,
        "Angle by which a horizontal or vertical plane may be off.",
        unit="degrees",
        at_least=0,
        at_most=45,
    )

    def check(self) -> None:
        """Reject two limits for the same thing."""
        super().check()
        if self.s_ps is not None and self.s_ms is not None:
            self.reject("s_ps", f"NULL where s_ms is given ({self.s_ms})")


PLANE_COLUMNS = {
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
}

NODE_COLUMNS = {
    "level": "BIGINT",
    "cx": "DOUBLE",
    "cy": "DOUBLE",
    "cz": "DOUBLE",
    "size": "DOUBLE",
    "point_count": "BIGINT",
    "nx": "DOUBLE",
    "ny": "DOUBLE",
    "nz": "DOUBLE",
    "thickness": "DOUBLE",
    "votes": "DOUBLE",
    "plane_id": "BIGINT",
    "state": "VARCHAR",
}

PEAK_COLUMNS = {
    "round": "BIGINT",
    "theta": "DOUBLE",
    "phi": "DOUBLE",
    "rho": "DOUBLE",
    "votes": "DOUBLE",
    "node_count": "BIGINT",
}

DECLARATION = Declaration(
    inputs=PointsInput(),
    parameters=Options,
    doubt="spatialq.udfs.detect_planes.sparse:doubt",
    outputs=(
        Output(
            name="detect_planes",
            summary="Planes of a point cloud by the kernel-based 3D Hough transform: one row per "
            "plane, the plane with the most votes first.",
            columns=PLANE_COLUMNS,
            work=work,
            work_in_tiles=work_in_tiles,
            examples=("FROM detect_planes('points') WHERE orientation = 'vertical'",),
            codes={"orientation": ORIENTATIONS},
        ),
        Output(
            name="plane_points",
            summary="The plane of each point, of those that detect_planes finds: one row per "
            "point; plane_id and distance are NULL where a point belongs to no plane.",
            columns={"point_id": "BIGINT", "plane_id": "BIGINT", "distance": "DOUBLE"},
            work=work_of_points,
            work_in_tiles=work_of_points_in_tiles,
            examples=(
                "SELECT plane_id, avg(abs(distance)) FROM plane_points('points') GROUP BY plane_id",
            ),
            nulls={"plane_id": 0},
            of_strays={"plane_id": 0, "distance": nan},
        ),
        Output(
            name="plane_nodes",
            summary="The planar nodes of the octree from which detect_planes finds its planes: one "
            "row per node, with its plane, or the reason why it has none.",
            columns=NODE_COLUMNS,
            work=work,
            work_in_tiles=work_in_tiles,
            examples=("SELECT state, count(*) FROM plane_nodes('points') GROUP BY state",),
            codes={"state": NODE_STATES},
            nulls={"plane_id": 0},
        ),
        Output(
            name="plane_peaks",
            summary="The peaks of the accumulator in which detect_planes votes for planes: one row "
            "per peak, in the order in which they are tried.",
            columns=PEAK_COLUMNS,
            work=work,
            work_in_tiles=work_in_tiles,
            examples=("FROM plane_peaks('points') WHERE round = 1",),
        ),
    ),
)
