"""What is taken of a patch: the methods by name, ours and those of the user."""

from collections.abc import Mapping, Sequence
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


def features_of(method: str, own: "Mapping[str, Own]" = OWN) -> Sequence[str]:
    """List the features of a method.

    Parameters
    ----------
    method : str
    own : mapping, optional
        Methods of the user's own; by default all that there are by now.

    Raises
    ------
    ValueError
        If there is no such method.
    """
    if method in own:
        return own[method].features
    if method in FEATURES:
        return FEATURES[method]
    message = f"no method {method!r}; there is {', '.join([*FEATURES, *OWN])}"
    raise ValueError(message)


def cpu_only(options: "Options") -> str:
    """Say which of the methods cannot run on the GPU, and why, or nothing."""
    for name, method in options.own.items():
        from .own_gpu import problem

        if why := problem(method.function):
            return f"the method {name!r}{why}"
    return ""


def first_rows(options: "Options") -> tuple[dict[str, int], int]:
    """Give the place of each method's first feature among those of all, and how many there are."""
    starts, total = {}, 0
    for method, features in options.features.items():
        starts[method] = total
        total += len(features)
    return starts, total
