"""Declaration of `points_within`: the polygons that points are in."""

from dataclasses import dataclass

from spatialq.functions.declaration import (
    Declaration,
    Output,
    PointParameters,
    PointsAndTableInput,
)

from .cost import work, work_in_tiles


@dataclass(frozen=True)
class Options(PointParameters):
    """Parameters of `points_within`."""

    FUNCTION = "points_within"


DECLARATION = Declaration(
    inputs=PointsAndTableInput(columns=("x", "y"), other="polygons"),
    parameters=Options,
    is_spatial=False,
    keeps_strays=True,
    allows_degrees=True,
    outputs=(
        Output(
            name="points_within",
            summary="The polygons that points are in, seen from above: one row for each point and "
            "polygon. Points on an edge or a corner are within, those in a hole are not.",
            columns={"point_id": "BIGINT", "polygon_id": "BIGINT"},
            work=work,
            work_in_tiles=work_in_tiles,
            examples=(
                "SELECT polygon_id, count(*) FROM points_within('points', 'plots') GROUP BY ALL",
                "FROM points JOIN points_within('points', 'plots') USING (point_id)",
            ),
        ),
    ),
)
