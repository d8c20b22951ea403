"""Declaration of `distance`, and of `point_elements`, which is composed of it."""

from dataclasses import dataclass

from spatialq.functions.declaration import (
    Declaration,
    ElementsInput,
    Output,
    Parameters,
    PointParameters,
    PointsAndElementsInput,
    parameter,
)

from .cost import work, work_in_tiles


@dataclass(frozen=True)
class Options(Parameters):
    """Parameters of `distance`: with neither, every pair is measured."""

    FUNCTION = "distance"

    max_distance: float | None = parameter(
        None, "Only pairs that are as near as this, or nearer.", unit="metres", at_least=0
    )
    k: int | None = parameter(
        None,
        "Only the k nearest elements of b, or the k nearest others, for every element of a.",
        at_least=1,
    )


DECLARATION = Declaration(
    inputs=ElementsInput(),
    parameters=Options,
    outputs=(
        Output(
            name="distance",
            summary="How far elements are from each other, and where: 0 when they meet, or one "
            "is inside the other.",
            columns={
                "a": "VARCHAR",
                "b": "VARCHAR",
                "distance": "DOUBLE",
                "ax": "DOUBLE",
                "ay": "DOUBLE",
                "az": "DOUBLE",
                "bx": "DOUBLE",
                "by": "DOUBLE",
                "bz": "DOUBLE",
            },
            work=work,
            work_in_tiles=work_in_tiles,
            are_apart=lambda *_: True,
        ),
    ),
)


@dataclass(frozen=True)
class PointOptions(PointParameters):
    """Parameters of a job of `point_elements`."""

    FUNCTION = "point_elements"

    max_distance: float | None = parameter(
        None, "Only elements that are as near.", unit="metres", at_least=0
    )

    def check(self) -> None:
        """Reject a call without it."""
        super().check()
        if self.max_distance is None:
            self.reject("max_distance", ">= 0 metres")


COMPOSITION = Declaration(
    inputs=PointsAndElementsInput(),
    parameters=PointOptions,
    takes_unit=True,
    is_spatial=False,
    outputs=(
        Output(
            name="point_elements",
            summary="Which elements the points of a cloud are near, and how far from each: one row "
            "per point and element, 0 metres on the surface and inside of a closed body.",
            columns={"point_id": "BIGINT", "global_id": "VARCHAR", "distance": "DOUBLE"},
            work=lambda size, options: work(size, Options(options.max_distance)),
        ),
    ),
)
