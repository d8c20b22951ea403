"""What the macros of `sql/spatialq_transform.sql` call: coordinates in another CRS."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.errors import CrsWarning
from spatialq.io import crs as crs_text
from spatialq.io.reproject import Reprojection, reprojection

TRANSFORM = "spatialq_transform"


def transform(x: Any, y: Any, z: Any, sources: Any, targets: Any) -> pa.Array:
    """Transform points, of which each has its own pair of systems.

    Raises
    ------
    CrsError, ValueError
        If a system cannot be read, or there is no operation between two.

    Warns
    -----
    CrsWarning
        If an operation would be more accurate with a grid that is not installed.
    """
    axes = [_numbers(each) for each in (x, y, z)]
    found = [np.full(len(x), np.nan) for _ in axes]
    for pair, rows in _pairs(sources, targets):
        operation = _operation(TRANSFORM, *pair)
        if operation.note:
            warnings.warn(f"{TRANSFORM}: {operation.note}", CrsWarning, stacklevel=2)
        moved = operation(*(axis[rows] for axis in axes))
        for values, part in zip(found, moved, strict=True):
            values[rows] = part
    return pa.StructArray.from_arrays(
        [pa.array(values, from_pandas=True) for values in found], names=["x", "y", "z"]
    )


def operation(source: str | None, target: str | None) -> dict[str, Any]:
    """Name the operation between two systems, its accuracy, and what would give a better one.

    Raises
    ------
    CrsError, ValueError
        As `transform`.
    """
    found = _operation("spatialq_operation", source, target)
    return {
        "operation": found.operation,
        "accuracy": found.accuracy,
        "note": found.note or None,
    }


def _pairs(sources: Any, targets: Any) -> Iterator[tuple[tuple[Any, Any], Any]]:
    """Give each pair of systems, of which there is mostly one, and its rows."""
    pair = *sources.unique().to_pylist(), *targets.unique().to_pylist()
    if len(pair) == 2:
        yield pair, slice(None)
        return
    pairs = list(zip(sources.to_pylist(), targets.to_pylist(), strict=True))
    for each in dict.fromkeys(pairs):
        yield each, np.fromiter((other == each for other in pairs), np.bool_, len(pairs))


def _operation(caller: str, source: str | None, target: str | None) -> Reprojection:
    one = crs_text.from_argument(caller, source, "from_crs")
    return reprojection(caller, one, crs_text.from_argument(caller, target, "to_crs"))


def _numbers(column: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Give a column with NaN for NULL."""
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
