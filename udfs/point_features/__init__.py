"""Declaration of `point_features`: the shape of the neighbourhood of each point."""

from dataclasses import dataclass
from math import nan
from typing import Literal

from spatialq.functions.declaration import (
    Declaration,
    Output,
    PointParameters,
    PointsInput,
    parameter,
)

from .cost import work

FEATURES = (
    "nx", "ny", "nz", "linearity", "planarity", "scattering", "verticality", "demantke_verticality",
    "omnivariance", "anisotropy", "eigenentropy", "eigenvalue_sum", "surface_variation", "density",
)  # fmt: skip
MODES = ("sqrt", "raw", "normalized")
MOST_NEIGHBOURS = 1000


@dataclass(frozen=True)
class Options(PointParameters):
    """Parameters of `point_features`."""

    FUNCTION = "point_features"

    k: int = parameter(
        10,
        "Nearest neighbours of a point, beside itself; of no account where there is a radius.",
        at_least=2,
        at_most=MOST_NEIGHBOURS,
    )
    radius: float | None = parameter(
        None,
        "The neighbours are all points within this distance; NULL takes the k nearest.",
        unit="metres",
        above=0,
    )
    min_k: int = parameter(
        3,
        "Points of a neighbourhood, the point itself included, without which there are no "
        "features.",
        at_least=3,
    )
    mode: Literal["sqrt", "raw", "normalized"] = parameter(
        "sqrt",
        "What features are made of: square roots of the eigenvalues, the eigenvalues, or these "
        "divided by their sum.",
    )


DECLARATION = Declaration(
    inputs=PointsInput(),
    parameters=Options,
    outputs=(
        Output(
            name="point_features",
            summary="Normal, density, and features of the eigenvalues of the neighbourhood of each "
            "point, such as linearity and planarity; one row per point, NULL where there are too "
            "few neighbours, and density NULL where these are all at the place of the point.",
            columns={
                "point_id": "BIGINT",
                "neighbours": "INTEGER",
                **dict.fromkeys(FEATURES, "DOUBLE"),
            },
            work=work,
            of_strays={"neighbours": 0, **dict.fromkeys(FEATURES, nan)},
            examples=("FROM point_features('points', radius := 1.0) WHERE planarity > 0.7",),
        ),
    ),
)
