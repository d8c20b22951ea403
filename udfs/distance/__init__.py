"""Declaration of `distance`: how far elements are from each other, and where."""

from dataclasses import dataclass

from spatialq.functions.declaration import (
    Declaration,
    ElementsInput,
    Output,
    Parameters,
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
