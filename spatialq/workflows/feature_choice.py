"""Which features pictures and rasters show, and where their values are."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spatialq.export.features_picture import FeatureMap

if TYPE_CHECKING:
    import duckdb

    from spatialq.udfs.pops_features import Options

Features = Mapping[str, tuple[str, str]]
"""Method and feature by label."""

DEFAULTS = ("pca1", "pca2", "ternary1", "ternary2", "variance", "std", "skewness")
"""Features that a picture shows first where none is named."""
SCALES = "SELECT DISTINCT scale FROM features WHERE method = $1 AND feature = $2 ORDER BY scale"
CELLS = """
SELECT x, y, mean FROM features WHERE method = $1 AND feature = $2 AND scale = $3
"""


def label_features(options: "Options") -> Features:
    """Label the features of all methods: 'pca1', or 'stat.kurtosis' if several methods have it."""
    from spatialq.udfs.pops_features.methods import features_of

    there = [(m, f) for m in options.methods for f in features_of(m)]
    names = [feature for _, feature in there]
    return {f if names.count(f) == 1 else f"{m}.{f}": (m, f) for m, f in there}


def choose_features(command: str, there: Features, show: Sequence[str]) -> Features:
    """Choose the features that are named, by themselves or with their method.

    Raises
    ------
    ValueError
        If there is no feature of a name.
    """
    chosen = {}
    for name in show:
        found = {
            label: (method, feature)
            for label, (method, feature) in there.items()
            if name in (feature, f"{method}.{feature}")
        }
        if not found:
            message = f"{command}: show must be of {', '.join(there)}, got {name!r}"
            raise ValueError(message)
        chosen.update(found)
    return chosen


def default_features(there: Features, limit: int) -> Features:
    """Choose the features that a picture shows where none is named."""
    first = [label for name in DEFAULTS for label, (_, feature) in there.items() if feature == name]
    labels = list(dict.fromkeys([*first, *there]))[:limit]
    return {label: there[label] for label in labels}


def feature_maps(con: "duckdb.DuckDBPyConnection", shown: Features) -> list[FeatureMap]:
    """Read maps of features from a table `features`.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        With a table `features`, as `pops_features` gives it.
    shown : mapping of str to (method, feature)
        By their labels.

    Returns
    -------
    list of FeatureMap
        The means of the features at each scale.
    """
    maps = []
    for label, (method, feature) in shown.items():
        for (scale,) in con.execute(SCALES, [method, feature]).fetchall():
            cells = con.execute(CELLS, [method, feature, scale]).fetchnumpy()
            maps.append(FeatureMap(label, scale, *cells.values()))
    return maps
