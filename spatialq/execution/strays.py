"""Stray points are left out of a call, and its user is told; what is too far away is refused."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from spatialq.data.cloud import Cloud
from spatialq.data.points import ids_of
from spatialq.data.reach import require_reach
from spatialq.data.strays import ends_of, strays_of, warn_of
from spatialq.execution.units import Fitted
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import GridInput, PointsAndOtherInput, PointsInput
from spatialq.runtime import buffers, cuda
from spatialq.runtime.arrays import Ints
from spatialq.runtime.cuda import on_gpu
from spatialq.runtime.threads import steps

POINT_ID = "point_id"


@dataclass(frozen=True)
class Crowd:
    """The arguments of a call without stray points."""

    arguments: dict[str, Any]
    strays: Ints | None = None
    """int64[k]: positions of the stray points, ascending; None if there are none."""
    ids: Any = None
    """The ids of all points, if there are stray points."""

    def results(self, function: Function, found: dict[str, Any]) -> dict[str, Any]:
        """Add the rows of stray points to an output that has a row for each point."""
        if self.strays is None or not function.output.of_strays:
            return found
        return {
            name: self.ids
            if name == POINT_ID
            else _with(values, self.strays, function.output.of_strays[name])
            for name, values in found.items()
        }


def leave_out(functions: Sequence[Function], fitted: Fitted) -> Crowd:
    """Leave out the stray points of a call, as `spatialq.data.strays` defines them.

    Parameters
    ----------
    functions : sequence of Function
        All of one folder.
    fitted : Fitted
        The call. Its arrays are given on as they are if there are no stray points.

    Raises
    ------
    ValueError
        If the others, or the cells of a grid, are farther away than `spatialq.data.reach` says.

    Warns
    -----
    StrayPointsWarning
        If points are left out.
    """
    name, arguments, inputs = functions[0].name, fitted.arguments, functions[0].inputs
    if isinstance(inputs, GridInput):
        south_west, north_east = arguments["grid"].ends
        require_reach(name, south_west, north_east, fitted.units)
    if not isinstance(inputs, PointsInput | PointsAndOtherInput):
        return Crowd(arguments)
    for other, cloud in arguments.items():
        if isinstance(cloud, Cloud) and len(cloud):
            south_west, north_east = ends_of([cloud.x, cloud.y, cloud.z])
            require_reach(f"{name}: {other}", south_west, north_east, fitted.units)
    xyz = [arguments[axis] for axis in inputs.columns]
    n = len(xyz[0])
    if not n:
        return Crowd(arguments)
    ends = ends_of(xyz)
    kept = functions[0].declaration.keeps_strays
    found = None if kept else strays_of(xyz, fitted.z_to_xy_scale, ends)
    low, high = ends if found is None else (found[1].low, found[1].high)
    given = np.array([1.0, 1.0, fitted.level])[: len(xyz)]
    require_reach(name, low / given, high / given, fitted.units)
    if found is None:
        return Crowd(arguments)
    strays = found[0]
    rows = [text for each in functions for text in _values(each)]
    warn_of(name, xyz, strays, level=fitted.level, rows=rows)
    ids = _ids(arguments[POINT_ID], xyz[0])
    columns = {**dict(zip(inputs.columns, xyz, strict=True)), POINT_ID: ids}
    of_points = (name for name in arguments if name not in columns and name != inputs.other)
    columns |= {name: arguments[name] for name in of_points}
    without = {
        name: None if values is None else _without(values, strays, n)
        for name, values in columns.items()
    }
    return Crowd({**arguments, **without}, strays, ids)


def _ids(given: Any, x: Any) -> Any:
    """Give the ids of all points, in the memory of the points."""
    return ids_of(given, len(x), cuda.device().xp if on_gpu(x) else np)


def _without(values: Any, rows: Any, n: int) -> Any:
    """Copy a column of n values without some of its rows."""
    if on_gpu(values):
        return cuda.device().view(values)[_others(rows, n)]
    if isinstance(values, np.ma.MaskedArray):
        parts = np.ma.getdata(values), np.ma.getmaskarray(values)
        return np.ma.MaskedArray(*(_without(part, rows, n) for part in parts))
    result = buffers.empty(n - len(rows), values.dtype)
    for to, first, stop in _runs(rows, n):
        result[to : to + stop - first] = values[first:stop]
    return result


def _with(values: Any, rows: Any, value: Any) -> Any:
    """Copy a column with some more rows, which all have one value."""
    n = len(values) + len(rows)
    if on_gpu(values):
        result = cuda.device().xp.full(n, value, values.dtype)
        result[_others(rows, n)] = values
        return result
    result = buffers.empty(n, values.dtype)
    result[rows] = value
    for to, first, stop in _runs(rows, n):
        result[first:stop] = values[to : to + stop - first]
    return result


def _others(rows: Any, n: int) -> Any:
    """Say, on the GPU, which of n rows are not among some."""
    others = np.ones(n, np.bool_)
    others[rows] = False
    return cuda.device().upload_small(others)


def _runs(rows: Any, n: int) -> Iterator[tuple[int, int, int]]:
    """Divide what is between some of n rows into runs.

    Yields
    ------
    to, first, stop : int
        The rows of a run, and where the first one goes if only these are kept.
    """
    edges = [-1, *rows.tolist(), n]
    for left_out, (before, after) in enumerate(pairwise(edges)):
        for first, stop in steps(before + 1, after):
            yield first - left_out, first, stop


def _values(function: Function) -> list[str]:
    """Write what the rows of stray points have."""
    nulls = function.output.nulls
    return [
        f"{name} {'NULL' if value != value or value == nulls.get(name) else str(value).lower()}"
        for name, value in function.output.of_strays.items()
    ]
