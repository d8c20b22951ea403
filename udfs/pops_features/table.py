"""The columns of the results of `pops_features` and `pops_patches`."""

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spatialq.data.columns import Text

from .methods import STATISTICS, first_rows

if TYPE_CHECKING:
    from spatialq.data.grid import Grid

    from .division import Division, Examples, WindowAxis
    from .options import Options


class Series(NamedTuple):
    """One feature of one method at one scale."""

    method: int
    scale: int
    feature: int
    """Its position among the features of all methods."""


def series_of(division: "Division", options: "Options") -> list[Series]:
    """List the series of an example: by method, then by scale, then by feature."""
    starts, total = first_rows(options.features)
    return [
        Series(m, k, f)
        for m, (start, stop) in enumerate(pairwise([*starts.values(), total]))
        for k in range(len(division.scales))
        for f in range(start, stop)
    ]


def features_table(
    grid: "Grid",
    division: "Division",
    examples: "Examples",
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
    examples : Examples
        Those in the table.
    options : Options
    statistics : float64[9, columns of examples, rows of examples, series]
    patches : int64[columns, rows, series]
    xp : module
        The library of the arrays, NumPy or CuPy; text is always in main memory.
    """
    series = series_of(division, options)
    shape = patches.shape
    column, row = (xp.asarray(np.array(each, np.int64)) for each in examples)
    column, row = column[:, None, None], row[None, :, None]
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


def room_for_patches(
    division: "Division", examples: "Examples", options: "Options", xp: Any = np
) -> tuple[Any, list[Any]]:
    """Allocate the values of `pops_patches`.

    Returns
    -------
    value : float64[rows of the table]
    parts : list of float64[features of all methods, columns of examples, rows of examples, patches]
        Views of `value`, one per scale; y of the patches varies fastest.
    """
    _, features = first_rows(options.features)
    shape = features, len(examples.columns), len(examples.rows)
    shapes = [(*shape, scale.patches) for scale in division.scales]
    ends = np.cumsum([0, *(prod(shape) for shape in shapes)]).tolist()
    value = xp.empty(ends[-1])
    spans = zip(pairwise(ends), shapes, strict=True)
    return value, [value[start:stop].reshape(shape) for (start, stop), shape in spans]


def patches_table(
    division: "Division",
    examples: "Examples",
    options: "Options",
    value: Any,
    parts: list[Any],
    xp: Any = np,
) -> dict[str, Any]:
    """Make the columns of `pops_patches`.

    Parameters
    ----------
    division : Division
    examples : Examples
        Those in the table.
    options : Options
    value, parts : arrays
        From `room_for_patches`.
    xp : module
        As for `features_table`.
    """
    n, counts = len(value), [len(names) for names in options.features.values()]
    of_method = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    feature = np.arange(len(of_method), dtype=np.int32)[:, None, None, None]
    column, row = (xp.asarray(np.array(each, np.int64)) for each in examples)
    example = column[:, None, None] * division.y.count + row[:, None]
    columns: dict[str, Any] = {
        "example_id": xp.empty(n, np.int64),
        "scale": xp.empty(n),
        "px": xp.empty(n, np.int64),
        "py": xp.empty(n, np.int64),
    }
    methods, features = np.empty(n, np.int32), np.empty(n, np.int32)
    start = 0
    for scale, part in zip(division.scales, parts, strict=True):
        patch = xp.arange(scale.patches)
        here = slice(start, start + part.size)
        for column, each in (
            (columns["example_id"], example),
            (columns["scale"], scale.length),
            (columns["px"], patch // scale.y.count),
            (columns["py"], patch % scale.y.count),
            (methods, of_method[feature]),
            (features, feature),
        ):
            column[here].reshape(part.shape)[...] = each
        start += part.size
    return {
        **columns,
        "value": value,
        "method": Text(methods, options.methods),
        "feature": Text(features, _names(options)),
    }


def _names(options: "Options") -> list[str]:
    return [name for names in options.features.values() for name in names]


def _centre(origin: float, spacing: float, axis: "WindowAxis", index: Any) -> Any:
    return origin + spacing * (index * axis.step + 0.5 * (axis.size - 1))
