"""Declaration of `coverage`: which elements of a model a scan shows, where, and how well."""

from dataclasses import dataclass

from spatialq.functions.declaration import (
    Declaration,
    Output,
    PointParameters,
    PointsAndElementsInput,
    parameter,
)

from .cost import work

STATUSES = (
    "installed",
    "displaced",
    "uncertain",
    "occluded",
    "not found",
    "not enough data",
    "no data",
    "not applicable",
)
POSITIONS = "a list of finite numbers, x, y and z of each position one after the other, or NULL"


@dataclass(frozen=True)
class Options(PointParameters):
    """Parameters of `coverage`."""

    FUNCTION = "coverage"

    scanner: tuple[float, ...] | None = parameter(
        None,
        "x, y and z of each position of the scanner, one after the other, in the unit of the "
        "points; NULL where they are not known: then nothing is found to be hidden or missing.",
        must_be=POSITIONS,
    )
    tolerance: float = parameter(
        0.01,
        "An element that is moved farther is displaced. Less than search.",
        unit="metres",
        above=0,
    )
    search: float = parameter(
        0.35,
        "How far from its place in the model a face is looked for, along its normal.",
        unit="metres",
        at_least=0.05,
        at_most=2,
    )
    cell: float = parameter(
        0.1,
        "Edge of the cells into which faces are divided; those of small faces are smaller.",
        unit="metres",
        above=0,
    )
    sample: float = parameter(
        0.05,
        "Edge of the cubes of which one point each is looked at; not less than the spacing of the "
        "points.",
        unit="metres",
        above=0,
    )
    min_area: float = parameter(
        0.05, "What is seen of an element, or could be, counts from here.", unit="square metres",
        above=0,
    )  # fmt: skip
    min_seen: float = parameter(
        0.5,
        "Share of what is in view of an element that must have points, if it is there; and that "
        "is seen through, if it is not.",
        above=0,
        at_most=1,
    )
    min_uncertain: float = parameter(
        0.1, "Share of it that must have points if it may be there.", above=0, at_most=1
    )
    near: float = parameter(
        1.0, "Where the scan has no point as near to an element, it has no data of it.",
        unit="metres", above=0,
    )  # fmt: skip
    faces: bool = parameter(False, "Whether to give a row for each planar face of an element.")

    def check(self) -> None:
        """Reject positions that are none, and a tolerance that nothing could exceed."""
        super().check()
        if self.tolerance >= self.search:
            self.reject("tolerance", f"less than search, {self.search:g} metres")
        given = (0.0,) * 3 if self.scanner is None else self.scanner
        if not given or len(given) % 3 or not all(abs(each) < float("inf") for each in given):
            self.reject("scanner", POSITIONS)


DECLARATION = Declaration(
    inputs=PointsAndElementsInput(),
    parameters=Options,
    takes_unit=True,
    outputs=(
        Output(
            name="coverage",
            summary="Which elements of a building model a scan shows: what is seen of each, what "
            "could have been seen, how far it is from its place, and a status.",
            columns={
                "global_id": "VARCHAR",
                "face": "BIGINT",
                "status": "VARCHAR",
                "seen": "DOUBLE",
                "visible": "DOUBLE",
                "offset": "DOUBLE",
                "tilt": "DOUBLE",
                "dx": "DOUBLE",
                "dy": "DOUBLE",
                "dz": "DOUBLE",
                "thickness": "DOUBLE",
                "spread": "DOUBLE",
                "points": "BIGINT",
                "area": "DOUBLE",
            },
            work=work,
            examples=(
                "FROM coverage('points', 'elements', scanner := [2.0, 3.0, 1.6]) WHERE seen > 0",
            ),
            codes={"status": STATUSES},
            nulls={"face": -1},
        ),
    ),
)
