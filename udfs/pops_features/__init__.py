"""Declaration of `pops_features` and `pops_patches`: multi-scale terrain features (POPS)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from spatialq.functions.declaration import (
    LENGTH,
    Declaration,
    GridInput,
    Output,
    Parameters,
    parameter,
)

from .cost import work, work_of_patches
from .methods import STATISTICS, USER_METHODS, cpu_only, features_of

if TYPE_CHECKING:
    from .user_methods import UserMethod

Quantiles = Literal["median_unbiased", "linear"]


@dataclass(frozen=True)
class Options(Parameters):
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
        "From a patch to the next, for each scale (fSteps); NULL is half the scale.",
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
        "From an example to the next (exStep); NULL is as far as an example reaches.",
        unit=LENGTH,
        above=0,
    )
    methods: tuple[str, ...] = parameter(
        ("pca", "stat"),
        "What is taken of a patch: 'pca', 'stat', 'pca_ternary', 'stat_centred', or a method of "
        "spatialq.pops_method.",
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
            features_of(method, self.user_methods)

    @cached_property
    def features(self) -> Mapping[str, Sequence[str]]:
        """The features of each method, in the order of the methods."""
        return {name: features_of(name, self.user_methods) for name in self.methods}

    @cached_property
    def user_methods(self) -> "Mapping[str, UserMethod]":
        """The user's own methods as the call began: their names may be given again meanwhile."""
        known = USER_METHODS.copy()
        return {name: known[name] for name in self.methods if name in known}


def feature_windows(grid: Any, options: Options) -> Any:
    """Find the rows of examples of a grid, and how many rows each gives."""
    from .bands import feature_windows

    return feature_windows(grid, options)


def patch_windows(grid: Any, options: Options) -> Any:
    """Find the rows of examples of a grid, and how many patches each gives."""
    from .bands import patch_windows

    return patch_windows(grid, options)


DECLARATION = Declaration(
    inputs=GridInput(),
    parameters=Options,
    outputs=(
        Output(
            name="pops_features",
            summary="Multi-scale terrain features of a grid (POPS): patches of several scales in "
            "square examples, and the statistics of each feature over the patches of an example: "
            "one row per example, method, scale and feature.",
            columns={
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
            examples=(
                "FROM pops_features('dem.tif', scales := [300, 400, 500]) WHERE feature = 'pca1'",
                "PIVOT (FROM pops_features(cells)) ON feature || scale USING first(median)",
            ),
            windows=feature_windows,
        ),
        Output(
            name="pops_patches",
            summary="Features of the patches of a grid (POPS), before pops_features aggregates "
            "them: one row per patch, method and feature; px and py are the place of the patch "
            "in its example, from 0.",
            columns={
                "example_id": "BIGINT",
                "method": "VARCHAR",
                "scale": "DOUBLE",
                "px": "BIGINT",
                "py": "BIGINT",
                "feature": "VARCHAR",
                "value": "DOUBLE",
            },
            work=work_of_patches,
            examples=("FROM pops_patches('dem.tif', methods := ['pca']) WHERE feature = 'pca2'",),
            windows=patch_windows,
        ),
    ),
    cpu_only=cpu_only,
)
