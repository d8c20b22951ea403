"""Declaration of `unmodelled`: things in a scan that a building model does not have."""

from dataclasses import dataclass

from spatialq.functions.declaration import (
    Declaration,
    Output,
    PointParameters,
    PointsAndElementsInput,
    parameter,
)

from .cost import work

HEIGHTS = ("cz", "zmin", "zmax")


@dataclass(frozen=True)
class Options(PointParameters):
    """Parameters of `unmodelled`."""

    FUNCTION = "unmodelled"

    max_distance: float = parameter(
        0.1, "Points farther than this from all faces belong to no element.", unit="metres", above=0
    )
    gap: float = parameter(
        0.1,
        "Edge of the cubes into which these points are sorted: points in cubes that touch are of "
        "one cluster.",
        unit="metres",
        above=0,
    )
    min_points: int = parameter(50, "Clusters of fewer points are left out.", at_least=1)
    max_rmse: float = parameter(
        0.02,
        "A cluster is a plane if the root mean square distance of its points from the best one is "
        "no more, and less than a third of their spread along it.",
        unit="metres",
        above=0,
    )


DECLARATION = Declaration(
    inputs=PointsAndElementsInput(),
    parameters=Options,
    takes_unit=True,
    outputs=(
        Output(
            name="unmodelled",
            summary="Things in a scan that are in no element of a building model: clusters of "
            "points that are far from all faces, one row each, the one with the most points first.",
            columns={
                "cluster_id": "BIGINT",
                "point_count": "BIGINT",
                **dict.fromkeys(("cx", "cy", "cz"), "DOUBLE"),
                **dict.fromkeys(("xmin", "ymin", "zmin", "xmax", "ymax", "zmax"), "DOUBLE"),
                "size": "DOUBLE",
                "is_plane": "BOOLEAN",
                **dict.fromkeys(("nx", "ny", "nz", "d", "rmse"), "DOUBLE"),
            },
            work=work,
            examples=("FROM unmodelled('points', 'elements') WHERE size > 0.5",),
            heights=HEIGHTS,
        ),
    ),
)
