"""Declaration of `count_above`: how many points are higher than a height."""

from dataclasses import dataclass
from typing import Any

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
    """Parameters of `count_above`."""

    FUNCTION = "count_above"

    height: float = parameter(0.0, "Points count that are higher.", unit="units of z")


def work(size: Size, options: Any) -> Work:
    """Count what travels to a device: the heights."""
    rows = size.rows
    return Work(bytes_in=8 * rows, bytes_out=8, steps={"points": rows}, bytes_kernel=8 * rows)


DECLARATION = Declaration(
    inputs=PointsInput(),
    parameters=Options,
    outputs=(
        Output(
            name="count_above",
            summary="The number of points that are higher than a height: one row.",
            columns={"n": "BIGINT"},
            work=work,
            examples=("FROM count_above('points', height := 100)",),
        ),
    ),
)
