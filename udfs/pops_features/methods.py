"""The methods that compute features of a patch: built-in and user-defined ones, by name."""

from collections.abc import Mapping, Sequence
from typing import Any

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

USER_METHODS: dict[str, Any] = {}
"""`UserMethod` by name, as registered by `spatialq.pops_method`."""


def features_of(method: str, own: Mapping[str, Any] = USER_METHODS) -> Sequence[str]:
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
        features: Sequence[str] = own[method].features
        return features
    if method in FEATURES:
        return FEATURES[method]
    message = f"no method {method!r}; there is {', '.join([*FEATURES, *USER_METHODS])}"
    raise ValueError(message)


def first_rows(features: Mapping[str, Sequence[str]]) -> tuple[dict[str, int], int]:
    """Give the position of each method's first feature, and the number of features."""
    starts, total = {}, 0
    for method, names in features.items():
        starts[method] = total
        total += len(names)
    return starts, total
