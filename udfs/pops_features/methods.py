"""What is taken of a patch: the methods by name, ours and those of the user."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import Options
    from .own import Own

FEATURES = {
    "pca": ("pca1", "pca2"),
    "stat": ("mean", "variance", "skewness", "kurtosis", "min", "q1", "median", "q3", "max"),
    "pca_ternary": ("ternary1", "ternary2"),
    "stat_centred": ("std", "skewness", "kurtosis", "min", "q1", "median", "q3", "max"),
}

BUILT_IN = tuple(FEATURES)
PCA, STAT, TERNARY, CENTRED = range(4)
"""Their places among the built-in ones."""

STATISTICS = FEATURES["stat"]
"""Taken of the heights of a patch, and of the features of an example's patches."""

OWN: "dict[str, Own]" = {}
"""Methods of `spatialq.pops_method`."""


def features_of(function: str, method: str) -> Sequence[str]:
    """List the features of a method.

    Raises
    ------
    ValueError
        If there is no such method.
    """
    if method in OWN:
        return OWN[method].features
    if method in FEATURES:
        return FEATURES[method]
    message = f"{function}: no method {method!r}; there is {', '.join([*FEATURES, *OWN])}"
    raise ValueError(message)


def cpu_only(options: "Options") -> str:
    """Say which of the methods cannot run on the GPU, and why, or nothing."""
    for method in options.methods:
        if method in OWN:
            from .own_gpu import problem

            if why := problem(OWN[method].function):
                return f"the method {method!r}{why}"
    return ""


def first_rows(function: str, methods: Sequence[str]) -> tuple[dict[str, int], int]:
    """Give the place of each method's first feature among those of all, and how many there are."""
    starts, total = {}, 0
    for method in methods:
        starts[method] = total
        total += len(features_of(function, method))
    return starts, total
