"""Attributes of samples: each sample names a point by its id, whose values it has."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from spatialq.data.columns import Lists
from spatialq.data.points import ascends
from spatialq.runtime import buffers
from spatialq.runtime.arrays import Ints
from spatialq.runtime.threads import CHUNK, chunks, workers


def with_attributes(
    nodes: Mapping[str, Any], point_id: Ints | None, attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """Give nodes whose samples have more columns.

    Parameters
    ----------
    nodes : mapping
        Columns of `table.columns`.
    point_id : int64[n] or None
        Unique; None for 0, 1, 2 ...
    attributes : mapping of str to array[n], or None
        Columns of the points, of numbers. Masked where there is no value; None for a column
        without any.

    Returns
    -------
    dict of columns
        A sample has the values of the point with its `point_id`, masked where those are. Columns
        without any value are float64.
    """
    if not attributes:
        return dict(nodes)
    samples = nodes["samples"]
    more = of_points(samples.columns["point_id"], point_id, attributes)
    return {**nodes, "samples": Lists(samples.offsets, {**samples.columns, **more})}


def of_points(ids: Any, point_id: Any, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Give the attributes of the points with some ids, see `with_attributes`."""
    if not attributes:
        return {}
    at = ids if point_id is None else _positions(point_id, ids)
    return {name: _gathered(values, at) for name, values in attributes.items()}


def _positions(point_id: Any, ids: Any) -> Any:
    """Find ids among those of the points."""
    order = None if ascends(point_id) else np.argsort(point_id, kind="stable")
    found = buffers.empty(len(ids), np.int64)

    def find(first: int, stop: int) -> None:
        at = np.searchsorted(point_id, ids[first:stop], sorter=order)
        found[first:stop] = at if order is None else order[at]

    with workers() as pool:
        pool.map(lambda span: find(*span), chunks(len(ids), CHUNK))
    return found


def _gathered(values: Any, at: Any) -> Any:
    """Give the values at positions."""
    if values is None:
        return np.ma.MaskedArray(np.zeros(len(at)), mask=True)
    if np.ma.isMaskedArray(values):
        parts = np.ma.getdata(values), np.ma.getmaskarray(values)
        return np.ma.MaskedArray(*(_gathered(part, at) for part in parts))
    return buffers.take(values, at)
