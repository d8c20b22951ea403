"""Multi-scale terrain features of a grid (POPS): signature, options, limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Literal, get_args

from spatialq.functions.declaration import Choices, Udf

from .bands import feature_windows
from .cost import work
from .methods import STATISTICS, USER_METHODS, cpu_only, features_of

if TYPE_CHECKING:
    from .user_methods import UserMethod

Quantiles = Literal["median_unbiased", "linear"]


@dataclass(frozen=True)
class Options(Choices):
    """Options of `pops_features` and `pops_patches`; lengths are in the unit of x and y.

    Parameters
    ----------
    scales : floats, each of two cells or more and at most `example_scale`
        Sides of the square patches that features are taken of (fScales).
    steps : floats, > 0, or None
        From a patch to the next, for each scale (fSteps); by default half the scale.
    example_scale : float, > 0
        Side of the square examples that the patches' features are aggregated over (exScale).
    example_step : float, > 0, or None
        From an example to the next (exStep); by default as far as an example reaches.
    methods : names
        What is taken of a patch: 'pca', 'stat', 'pca_ternary', 'stat_centred', or a method of
        `spatialq.pops_method`.
    min_valid : float, in [0, 1]
        Share of the cells of a patch that must have a value.
    min_points : int, >= 1
        Cells of a patch that must have a value.
    min_patches : int, >= 1
        Patches of an example that must have features for them to be aggregated.
    quantiles : 'median_unbiased' or 'linear'
        Quartiles as the published code takes them (type 8 of Hyndman and Fan), or as NumPy and
        DuckDB do by default (type 7).
    """

    FUNCTION = "pops_features"

    scales: tuple[float, ...] = (300.0, 400.0, 500.0)
    steps: tuple[float, ...] | None = None
    example_scale: float = 2000.0
    example_step: float | None = None
    methods: tuple[str, ...] = ("pca", "stat")
    min_valid: float = 0.5
    min_points: int = 3
    min_patches: int = 1
    quantiles: Quantiles = "median_unbiased"

    def __post_init__(self) -> None:
        for name in ("scales", "methods"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                self.refuse(name, "one or more, all different")
        if not all(isfinite(scale) and scale > 0 for scale in self.scales):
            self.refuse("scales", "> 0")
        if self.steps is not None:
            if len(self.steps) != len(self.scales):
                self.refuse("steps", f"as many as scales ({len(self.scales)}), or NULL")
            if not all(isfinite(step) and step > 0 for step in self.steps):
                self.refuse("steps", "> 0")
        if not (isfinite(self.example_scale) and self.example_scale > 0):
            self.refuse("example_scale", "> 0")
        if self.example_step is not None and not (
            isfinite(self.example_step) and self.example_step > 0
        ):
            self.refuse("example_step", "> 0 or NULL")
        for method in self.methods:
            features_of(self.FUNCTION, method, self.own)
        if not 0 <= self.min_valid <= 1:
            self.refuse("min_valid", ">= 0 and <= 1")
        if not self.min_points >= 1:
            self.refuse("min_points", ">= 1")
        if not self.min_patches >= 1:
            self.refuse("min_patches", ">= 1")
        if self.quantiles not in get_args(Quantiles):
            self.refuse("quantiles", " or ".join(map(repr, get_args(Quantiles))))

    @cached_property
    def features(self) -> Mapping[str, Sequence[str]]:
        """The features of each method, in the order of the methods."""
        return {name: features_of(self.FUNCTION, name, self.own) for name in self.methods}

    @cached_property
    def own(self) -> "Mapping[str, UserMethod]":
        """The user's own methods as the call began: their names may be given again meanwhile."""
        known = USER_METHODS.copy()
        return {name: known[name] for name in self.methods if name in known}


UDF = Udf(
    name="pops_features",
    columns=("x", "y", "z"),
    options=Options,
    returns={
        "example_id": "BIGINT",
        "x": "DOUBLE",
        "y": "DOUBLE",
        "method": "VARCHAR",
        "scale": "DOUBLE",
        "feature": "VARCHAR",
        **dict.fromkeys(STATISTICS, "DOUBLE"),
        "patches": "BIGINT",
    },
    work=work,
    cpu_only=cpu_only,
    takes_grid=True,
    windows=feature_windows,
)
