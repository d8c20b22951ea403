"""The columns of the results of `pops_features` and `pops_patches`."""

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spatialq.data.columns import Text
from spatialq.runtime import buffers
from spatialq.runtime.arrays import Floats, Ints
from spatialq.runtime.threads import in_threads

from .methods import STATISTICS, first_rows

if TYPE_CHECKING:
    from spatialq.data.grid import Grid, WindowAxis

    from .division import Division, Examples
    from .options import Options


FOR_THREADS = 1 << 22
"""Values from which on several threads copy them."""


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


def empty(shape: Any, dtype: Any = np.float64, xp: Any = np) -> Any:
    """Allocate an array of the library `xp`; in main memory from the pool, if it is large."""
    return buffers.empty(shape, dtype) if xp is np else xp.empty(shape, dtype)


def put(target: Any, values: Any) -> None:
    """Set an array to values that are broadcast to its shape, in threads along its first axis.

    Parameters
    ----------
    target : NumPy or CuPy array
    values : number or array of the same library
    """
    if not isinstance(target, np.ndarray) or target.size < FOR_THREADS:
        target[...] = values
        return
    values = np.broadcast_to(values, target.shape)
    in_threads(lambda span: np.copyto(target[slice(*span)], values[slice(*span)]), len(target))


def features_table(
    grid: "Grid",
    division: "Division",
    examples: "Examples",
    options: "Options",
    statistics: Floats,
    patches: Ints,
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

    def spread(values: Any, xp: Any) -> Any:
        column = empty(shape, values.dtype, xp)
        put(column, values)
        return column.ravel()

    return {
        **{name: spread(each, xp) for name, each in columns.items()},
        "method": Text(spread(methods, np), options.methods),
        "feature": Text(spread(features, np), _names(options)),
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
    value = empty(ends[-1], xp=xp)
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
        "example_id": empty(n, np.int64, xp),
        "scale": empty(n, xp=xp),
        "px": empty(n, np.int64, xp),
        "py": empty(n, np.int64, xp),
    }
    methods, features = empty(n, np.int32), empty(n, np.int32)
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
            put(column[here].reshape(part.shape), each)
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
