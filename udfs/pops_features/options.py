"""Parameters of `pops_features` and `pops_patches`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from spatialq.functions.declaration import LENGTH, CoordinateParameters, parameter

from .methods import USER_METHODS, features_of

Quantiles = Literal["median_unbiased", "linear"]


@dataclass(frozen=True)
class Options(CoordinateParameters):
    """Parameters of `pops_features` and `pops_patches`; the paper's names are in brackets."""

    FUNCTION = "pops_features"

    scales: tuple[float, ...] = parameter(
        (300.0, 400.0, 500.0),
        "Sides of the square patches that features are taken of, each at least two cells and at "
        "most example_scale (fScales).",
        unit=LENGTH,
        above=0,
    )
    steps: tuple[float, ...] | None = parameter(
        None,
        "Distance from a patch to the next, for each scale (fSteps); NULL is half the scale.",
        unit=LENGTH,
        above=0,
    )
    example_scale: float = parameter(
        2000.0,
        "Side of the square examples over which the features of patches are aggregated (exScale).",
        unit=LENGTH,
        above=0,
    )
    example_step: float | None = parameter(
        None,
        "Distance from an example to the next (exStep); NULL is the side of an example.",
        unit=LENGTH,
        above=0,
    )
    methods: tuple[str, ...] = parameter(
        ("pca", "stat"),
        "Which features of a patch are computed: 'pca', 'stat', 'pca_ternary', 'stat_centred', or "
        "those of a method of spatialq.pops_method.",
    )
    min_valid: float = parameter(
        0.5, "Share of the cells of a patch that must have a value.", at_least=0, at_most=1
    )
    min_points: int = parameter(
        3, "Cells of a patch that must have a value.", unit="cells", at_least=1
    )
    min_patches: int = parameter(
        1,
        "Patches of an example that must have features for them to be aggregated.",
        unit="patches",
        at_least=1,
    )
    quantiles: Quantiles = parameter(
        "median_unbiased",
        "Quartiles as the published code takes them (type 8 of Hyndman and Fan), or as NumPy and "
        "DuckDB do by default (type 7, 'linear').",
    )

    def check(self) -> None:
        """Reject scales and steps that do not go together, and methods that do not exist."""
        for name in ("scales", "methods"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                self.reject(name, "one or more, all different")
        if self.steps is not None and len(self.steps) != len(self.scales):
            self.reject("steps", f"as many as scales ({len(self.scales)}), or NULL")
        for method in self.methods:
            try:
                features_of(method, self.user_methods)
            except ValueError as error:
                message = f"{self.function}: {error}"
                raise ValueError(message) from None

    @cached_property
    def features(self) -> Mapping[str, Sequence[str]]:
        """The features of each method, in the order of the methods."""
        return {name: features_of(name, self.user_methods) for name in self.methods}

    @cached_property
    def user_methods(self) -> Mapping[str, Any]:
        """The user's own methods as the call began: their names may be given again meanwhile."""
        known = USER_METHODS.copy()
        return {name: known[name] for name in self.methods if name in known}
