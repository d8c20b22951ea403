"""Declaration of `intersects_with`: which elements meet, and how."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from spatialq.functions.declaration import (
    Declaration,
    ElementsInput,
    Output,
    Parameters,
    parameter,
)
from spatialq.runtime.callers import level_of_caller
from spatialq.runtime.extras import missing

from .cost import work, work_in_tiles

Method = Literal["exact", "pairmesh"]
BroadPhase = Literal["auto", "rtree", "none"]

LARGE_TOLERANCE = 0.5
"""Metres beyond which a tolerance was probably meant in another unit."""

CPU_ONLY = {"method": ("pairmesh",), "broad_phase": ("none",)}

RELATIONS = (
    "disjoint", "touch", "overlap", "contains", "inside", "covers", "covered_by", "equals",
)  # fmt: skip
"""By their codes; from `overlap` on the two have a common interior."""

MEASURES = ("volume", "dx", "dy", "dz")
"""Columns of the common part, NULL unless they are asked for."""


@dataclass(frozen=True)
class Options(Parameters):
    """Parameters of `intersects_with`."""

    FUNCTION = "intersects_with"

    tolerance: float = parameter(
        0.001,
        "Surfaces that are nearer to each other than this touch; elements whose penetration and "
        "thickness are no larger have no common interior. Less than a micrometre counts as a "
        "micrometre.",
        unit="metres",
        at_least=0,
    )
    method: Method = parameter(
        "exact",
        "Triangle by triangle at the tolerance, or by inner and outer meshes as in Schweizer's "
        "thesis.",
    )
    broad_phase: BroadPhase = parameter(
        "auto",
        "How pairs of elements whose boxes meet are found: 'auto' and 'rtree' by an R-tree; with "
        "'none' all pairs are compared. The result is the same.",
    )
    min_thickness: float | None = parameter(
        None,
        "A thinner common part is ignored, however far the elements reach into each other.",
        unit="metres",
        at_least=0,
    )
    volume: bool = parameter(
        False,
        "Whether to measure common parts: their volume, and the sides of the smallest box around "
        "them. Takes longer.",
    )
    relations: bool = parameter(False, "Whether pairs that only touch are given as well.")

    def check(self) -> None:
        """Warn of a tolerance that is as large as elements are; reject what is not installed."""
        if self.volume and (reason := missing("volume")):
            message = f"{self.function}: {reason}"
            raise ValueError(message)
        if self.tolerance > LARGE_TOLERANCE:
            message = (
                f"{self.function}: tolerance := {self.tolerance:g} is in metres, and most elements "
                f"are thinner; 5 mm are 0.005"
            )
            warnings.warn(message, stacklevel=level_of_caller())


def cpu_only(options: Options) -> str:
    """Say which parameter has a value that only the CPU's kernel has."""
    for name, values in CPU_ONLY.items():
        if (value := getattr(options, name)) in values:
            return f"{name} := {value!r}"
    return ""


def mirrored(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Make the rows of the pairs (b, a) of those of (a, b)."""
    contrary = {"contains": "inside", "inside": "contains",
                "covers": "covered_by", "covered_by": "covers"}  # fmt: skip
    codes = [RELATIONS.index(contrary.get(name, name)) for name in RELATIONS]
    turned = {"a": "b", "b": "a", "a_open": "b_open", "b_open": "a_open"}
    found = {name: columns[turned.get(name, name)] for name in columns}
    return found | {"relation": np.array(codes, np.int8)[columns["relation"]]}


DECLARATION = Declaration(
    inputs=ElementsInput(mirrored, lambda options: options.method == "exact"),
    parameters=Options,
    outputs=(
        Output(
            name="intersects_with",
            summary="The pairs of elements that have a common interior: what clashes. Touching is "
            "no clash.",
            columns={
                "a": "VARCHAR",
                "b": "VARCHAR",
                "relation": "VARCHAR",
                "penetration": "DOUBLE",
                "thickness": "DOUBLE",
                **dict.fromkeys(MEASURES, "DOUBLE"),
                "distance": "DOUBLE",
                "x": "DOUBLE",
                "y": "DOUBLE",
                "z": "DOUBLE",
            },
            work=work,
            work_in_tiles=work_in_tiles,
            are_apart=lambda *_: True,
            codes={"relation": RELATIONS},
        ),
    ),
    cpu_only=cpu_only,
)
