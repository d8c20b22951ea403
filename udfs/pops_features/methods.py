"""What is taken of a patch: the methods by name, ours and those of the user."""

from collections.abc import Sequence

FEATURES = {
    "pca": ("pca1", "pca2"),
    "stat": ("mean", "variance", "skewness", "kurtosis", "min", "q1", "median", "q3", "max"),
    "pca_ternary": ("ternary1", "ternary2"),
    "stat_centred": ("std", "skewness", "kurtosis", "min", "q1", "median", "q3", "max"),
}


def features_of(function: str, method: str) -> Sequence[str]:
    """List the features of a method.

    Raises
    ------
    ValueError
        If there is no such method.
    """
    if method not in FEATURES:
        message = f"{function}: no method {method!r}; there is {', '.join(FEATURES)}"
        raise ValueError(message)
    return FEATURES[method]
