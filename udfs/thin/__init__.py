"""Declaration of `thin`: fewer points of a cloud, evenly spread."""

from dataclasses import dataclass
from typing import Literal

from spatialq.functions.declaration import (
    Declaration,
    Output,
    PointParameters,
    PointsInput,
    Size,
    Work,
    parameter,
)


@dataclass(frozen=True)
class Options(PointParameters):
    """Parameters of `thin`."""

    FUNCTION = "thin"

    method: Literal["voxel", "nearest_to_mean", "poisson"] = parameter(
        "voxel",
        "'voxel' keeps the point nearest to the centre of each voxel, 'nearest_to_mean' the one "
        "nearest to the mean of its points, 'poisson' points that are nowhere nearer to each other "
        "than the distance.",
    )
    distance: float = parameter(
        0.5, "Edge of the voxels, or distance of the points that are kept.", unit="metres", above=0
    )


def work(size: Size, options: Options) -> Work:
    """Count the points, which are put in order."""
    return Work(
        bytes_in=32 * size.rows,
        bytes_out=8 * size.rows,
        steps={"points": float(size.rows)},
        bytes_kernel=100 * size.rows,
    )


DECLARATION = Declaration(
    inputs=PointsInput(),
    parameters=Options,
    outputs=(
        Output(
            name="thin",
            summary="The points of a cloud that are kept where there is to be one per voxel, or "
            "none nearer to another than a distance.",
            columns={"point_id": "BIGINT"},
            work=work,
            examples=("FROM points SEMI JOIN thin('points', distance := 2.0) USING (point_id)",),
        ),
    ),
)
