"""What is taken of a patch: the methods by name, ours and those of the user."""

from collections.abc import Sequence

FEATURES = {
    "pca": ("pca1", "pca2"),
    "stat": ("mean", "variance", "skewness", "kurtosis", "min", "q1", "median", "q3", "max"),
    "pca_ternary": ("ternary1", "ternary2"),
    "stat_centred": ("std", "skewness", "kurtosis", "min", "q1", "median", "q3", "max"),
}

BUILT_IN = tuple(FEATURES)


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


def first_rows(methods: Sequence[str]) -> tuple[dict[str, int], int]:
    """Give the place of each method's first feature among those of all, and how many there are."""
    starts, total = {}, 0
    for method in methods:
        starts[method] = total
        total += len(FEATURES[method])
    return starts, total
