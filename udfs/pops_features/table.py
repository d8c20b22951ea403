"""What kernels find as the columns of `pops_features` and `pops_patches`."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spatialq.udf import Text

from .methods import features_of

if TYPE_CHECKING:
    from spatialq.grid import Grid

    from . import Options
    from .division import Axis, Division

STATISTICS = ("mean", "variance", "skewness", "kurtosis", "min", "q1", "median", "q3", "max")


class Series(NamedTuple):
    """One feature of one method at one scale."""

    method: int
    scale: int
    feature: int
    """Its place among the features of all methods."""


def series_of(division: "Division", options: "Options") -> list[Series]:
    """List the rows of an example: method by method, in it scale by scale."""
    starts = _starts(options)
    return [
        Series(m, k, f)
        for m, (start, stop) in enumerate(pairwise(starts))
        for k in range(len(division.scales))
        for f in range(start, stop)
    ]


def features_table(
    grid: "Grid",
    division: "Division",
    rows: range,
    options: "Options",
    statistics: Any,
    patches: Any,
    xp: Any = np,
) -> dict[str, Any]:
    """Make the columns of `pops_features`.

    Parameters
    ----------
    grid : Grid
    division : Division
    rows : range
        Of examples.
    options : Options
    statistics : float64[9, columns of examples, rows of examples, series]
    patches : int64[columns, rows, series]
    xp : module
        NumPy, or what has its functions where the arrays are; text is in the host's memory.
    """
    series = series_of(division, options)
    shape = patches.shape
    column, row = xp.arange(shape[0])[:, None, None], xp.asarray(np.array(rows))[None, :, None]
    methods, scales, features = (np.array(each, np.int32) for each in zip(*series, strict=True))
    lengths = xp.asarray(np.array([scale.length for scale in division.scales])[scales])
    columns = {
        "example_id": column * division.y.count + row,
        "x": _centre(grid.x0, grid.dx, division.x, column),
        "y": _centre(grid.y0, grid.dy, division.y, row),
        "scale": lengths,
    }
    return {
        **{name: xp.broadcast_to(each, shape).ravel() for name, each in columns.items()},
        "method": Text(np.broadcast_to(methods, shape).ravel(), options.methods),
        "feature": Text(np.broadcast_to(features, shape).ravel(), _names(options)),
        **{name: each.ravel() for name, each in zip(STATISTICS, statistics, strict=True)},
        "patches": patches.ravel(),
    }


def patches_table(
    division: "Division", rows: range, options: "Options", raw: Sequence[Any], xp: Any = np
) -> dict[str, Any]:
    """Make the columns of `pops_patches`.

    Parameters
    ----------
    division : Division
    rows : range
        Of examples.
    options : Options
    raw : float64[features of all methods, columns of examples, rows of examples, patches]
        For each scale; y of the patches is fastest.
    xp : module
        As for `features_table`.
    """
    starts = _starts(options)
    of_method = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    parts: dict[str, list[Any]] = {}
    for scale, values in zip(division.scales, raw, strict=True):
        shape = values.shape
        feature = np.arange(shape[0], dtype=np.int32)[:, None, None, None]
        column = xp.arange(shape[1])[:, None, None]
        row, patch = xp.asarray(np.array(rows))[:, None], xp.arange(shape[3])
        columns = {
            "example_id": column * division.y.count + row,
            "scale": xp.asarray(scale.length),
            "px": patch // scale.y.count,
            "py": patch % scale.y.count,
            "value": values,
        }
        for name, each in columns.items():
            parts.setdefault(name, []).append(xp.broadcast_to(each, shape).ravel())
        for name, codes in (("method", of_method[feature]), ("feature", feature)):
            parts.setdefault(name, []).append(np.broadcast_to(codes, shape).ravel())
    text = {"method": options.methods, "feature": _names(options)}
    return {
        name: Text(np.concatenate(each), text[name]) if name in text else xp.concatenate(each)
        for name, each in parts.items()
    }


def _names(options: "Options") -> list[str]:
    return [name for method in options.methods for name in features_of(options.FUNCTION, method)]


def _starts(options: "Options") -> "list[int]":
    counts = [len(features_of(options.FUNCTION, method)) for method in options.methods]
    return [0, *np.cumsum(counts).tolist()]


def _centre(origin: float, spacing: float, axis: "Axis", index: Any) -> Any:
    return origin + spacing * (index * axis.step + 0.5 * (axis.size - 1))
