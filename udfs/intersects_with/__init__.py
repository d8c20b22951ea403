"""Which elements meet, and how: signature, options, limits."""

from dataclasses import dataclass
from math import isfinite
from typing import Literal, get_args

from spatialq.functions.declaration import Choices, Udf

from .cost import work

Method = Literal["exact", "pairmesh"]
BroadPhase = Literal["auto", "rtree", "grid"]

CPU_ONLY = {"method": "pairmesh", "broad_phase": "grid"}

RELATIONS = (
    "disjoint", "touch", "overlap", "contains", "inside", "covers", "covered_by", "equals",
)  # fmt: skip
"""By their codes; from `overlap` on the two have a common interior."""


@dataclass(frozen=True)
class Options(Choices):
    """Options of `intersects_with`.

    Parameters
    ----------
    tolerance : float, >= 0
        Metres. Surfaces that are nearer touch; a common part that is thinner is none. Less than
        a micrometre counts as a micrometre.
    method : 'exact' or 'pairmesh'
        Triangle by triangle at the tolerance, or the inner meshes of the thesis.
    broad_phase : 'auto', 'rtree' or 'grid'
        How pairs of elements whose boxes meet are found; the result is the same.
    relations : bool
        Whether pairs that only touch are given as well.
    """

    FUNCTION = "intersects_with"

    tolerance: float = 0.001
    method: Method = "exact"
    broad_phase: BroadPhase = "auto"
    relations: bool = False

    def __post_init__(self) -> None:
        if not (isfinite(self.tolerance) and self.tolerance >= 0):
            self.refuse("tolerance", ">= 0 metres")
        if self.method not in get_args(Method):
            self.refuse("method", " or ".join(map(repr, get_args(Method))))
        if self.broad_phase not in get_args(BroadPhase):
            self.refuse("broad_phase", " or ".join(map(repr, get_args(BroadPhase))))


UDF = Udf(
    name="intersects_with",
    columns=(),
    options=Options,
    returns={
        "a": "VARCHAR",
        "b": "VARCHAR",
        "relation": "VARCHAR",
        "depth": "DOUBLE",
        "distance": "DOUBLE",
        "x": "DOUBLE",
        "y": "DOUBLE",
        "z": "DOUBLE",
    },
    work=work,
    cpu_only=lambda options: next(
        (
            f"{name} := {getattr(options, name)!r}"
            for name, value in CPU_ONLY.items()
            if getattr(options, name) == value
        ),
        "",
    ),
    values={"relation": RELATIONS},
)
