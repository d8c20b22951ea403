"""`count_above` in parts: each counts its own points, and the counts are added."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from spatialq.functions.stages import Columns, Part, PointWork, TaskResult

if TYPE_CHECKING:
    from . import Options


def count_above(work: "PointWork[Options]") -> None:
    """Count the points of all parts."""
    work.table("count", add, work.each("counts", count, work.options.height))


def count(part: Part, height: float) -> Columns:
    """Count the points of a part that are higher."""
    n = sum(np.count_nonzero(part.own(rows)["z"] > height) for rows in part.batches())
    return {"n": np.array([n])}


def add(counts: Iterator[TaskResult]) -> Columns:
    """Add the counts of all parts."""
    return {"n": np.array([sum(int(each.arrays["n"][0]) for each in counts)])}
