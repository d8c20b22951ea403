"""The methods that compute features of a patch: built-in and user-defined ones, by name."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import Options
    from .user_methods import UserMethod

FEATURES = {
    "pca": ("pca1", "pca2"),
    "stat": ("mean", "variance", "skewness", "kurtosis", "min", "q1", "median", "q3", "max"),
    "pca_ternary": ("ternary1", "ternary2"),
    "stat_centred": ("std", "skewness", "kurtosis", "min", "q1", "median", "q3", "max"),
}

BUILT_IN = tuple(FEATURES)
PCA, STAT, TERNARY, CENTRED = range(4)
"""Positions in `BUILT_IN`."""

STATISTICS = FEATURES["stat"]
"""Computed for the heights of a patch, and for the features of an example's patches."""

USER_METHODS: "dict[str, UserMethod]" = {}
"""Methods registered by `spatialq.pops_method`."""


def features_of(method: str, own: "Mapping[str, UserMethod]" = USER_METHODS) -> Sequence[str]:
    """List the features of a method.

    Parameters
    ----------
    method : str
    own : mapping, optional
        User-defined methods; by default all that are registered now.

    Raises
    ------
    ValueError
        If there is no such method.
    """
    if method in own:
        return own[method].features
    if method in FEATURES:
        return FEATURES[method]
    message = f"no method {method!r}; there is {', '.join([*FEATURES, *USER_METHODS])}"
    raise ValueError(message)


def cpu_only(options: "Options") -> str:
    """Say which method cannot run on the GPU, and why; empty if all can."""
    for name, method in options.user_methods.items():
        from .user_methods_gpu import problem

        if why := problem(method.function):
            return f"the method {name!r}{why}"
    return ""


def first_rows(options: "Options") -> tuple[dict[str, int], int]:
    """Give the position of each method's first feature, and the number of features."""
    starts, total = {}, 0
    for method, features in options.features.items():
        starts[method] = total
        total += len(features)
    return starts, total
