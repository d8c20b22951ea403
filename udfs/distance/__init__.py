"""How far elements are from each other, and where: signature, options, limits."""

from dataclasses import dataclass
from math import isfinite

from spatialq.functions.declaration import Choices, Udf

from .cost import work


@dataclass(frozen=True)
class Options(Choices):
    """Options of `distance`: with neither, every pair is measured.

    Parameters
    ----------
    max_distance : float, >= 0, optional
        Metres. Only pairs that are as near as this, or nearer.
    k : int, >= 1, optional
        Only the k nearest elements of b, or the k nearest others, for every element of a.
    """

    FUNCTION = "distance"

    max_distance: float | None = None
    k: int | None = None

    def __post_init__(self) -> None:
        limit = self.max_distance
        if limit is not None and not (isfinite(limit) and limit >= 0):
            self.refuse("max_distance", ">= 0 metres")
        if self.k is not None and not self.k >= 1:
            self.refuse("k", ">= 1")


UDF = Udf(
    name="distance",
    columns=(),
    options=Options,
    returns={
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
)
