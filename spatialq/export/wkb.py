"""Geometries as well-known binary (ISO 13249-3): boxes, points made, parts made multiple."""

import struct
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from spatialq.runtime.arrays import Floats

POINT, POLYGON = 1, 3
MULTIPLE = 3
"""From the code of a point, line or polygon to that of several."""
COORDINATES = {0: 2, 1: 3, 2: 3, 3: 4}
"""Numbers of a vertex, by the thousands of the code: XY, XYZ, XYM, XYZM."""
BOX = ("xmin", "ymin", "xmax", "ymax")
NOTHING = (np.inf, np.inf, -np.inf, -np.inf)


def boxes(geometries: "pa.Array | pa.ChunkedArray") -> Floats:
    """Find the boxes of geometries.

    Parameters
    ----------
    geometries : binary array
        Little-endian, as DuckDB writes them.

    Returns
    -------
    float64[n, 4]
        xmin, ymin, xmax, ymax; NaN of what is NULL or has no vertex.
    """
    found = np.array([_box(each) for each in geometries.to_pylist()]).reshape(-1, 4)
    found[~np.isfinite(found).all(axis=1)] = np.nan
    return found


def _box(wkb: bytes | None) -> tuple[float, float, float, float]:
    """Find the box of one geometry, whose parts follow each other whatever they are parts of."""
    xmin, ymin, xmax, ymax = NOTHING
    left, at = 0 if wkb is None else 1, 0
    while left:
        assert wkb is not None
        left -= 1
        (code,) = struct.unpack_from("<I", wkb, at + 1)
        at += 5
        size, kind = COORDINATES[code // 1000], code % 1000
        if kind == POINT:
            runs = [1]
        else:
            (count,) = struct.unpack_from("<I", wkb, at)
            at += 4
            if kind > POLYGON:
                left += count
                continue
            runs = [0] * count if kind == POLYGON else [count]
        for run in runs:
            length = run
            if kind == POLYGON:
                (length,) = struct.unpack_from("<I", wkb, at)
                at += 4
            if length:
                vertices = np.frombuffer(wkb, "<f8", length * size, at).reshape(length, size)
                (west, south), (east, north) = vertices.min(0)[:2], vertices.max(0)[:2]
                xmin, ymin = min(xmin, west), min(ymin, south)
                xmax, ymax = max(xmax, east), max(ymax, north)
            at += 8 * size * length
    return xmin, ymin, xmax, ymax


def struct_of_boxes(found: Floats) -> pa.StructArray:
    """Make the column of boxes that GeoParquet calls a covering; NULL where one is NaN."""
    is_null = np.isnan(found[:, 0])
    columns = [pa.array(found[:, k], pa.float64()) for k in range(4)]
    return pa.StructArray.from_arrays(columns, names=list(BOX), mask=pa.array(is_null))


def points(*axes: ArrayLike) -> pa.Array:
    """Make points.

    Parameters
    ----------
    *axes : two or three of float64[n]
        Masked where a value is NULL: then there is no point.
    """
    values = [np.ma.asarray(each, np.float64) for each in axes]
    layout = [("order", "u1"), ("code", "<u4"), *((name, "<f8") for name in "xyz"[: len(axes)])]
    records = np.empty(values[0].size, np.dtype(layout))
    records["order"], records["code"] = 1, POINT + 1000 * (len(axes) - 2)
    for name, each in zip("xyz", values, strict=False):
        records[name] = each.filled(np.nan)
    is_null = np.logical_or.reduce([np.ma.getmaskarray(each) for each in values])
    width = records.dtype.itemsize
    fixed = pa.Array.from_buffers(
        pa.binary(width), records.size, [None, pa.py_buffer(records.tobytes())]
    )
    made: Any = fixed.cast(pa.binary())
    return pa.compute.if_else(pa.array(~is_null), made, None)


def multiple(geometries: "pa.Array | pa.ChunkedArray") -> pa.Array:
    """Make points, lines and polygons MULTI geometries of one part, which others stay."""
    return pa.array([_multiple(each) for each in geometries.to_pylist()], pa.binary())


def _multiple(wkb: bytes | None) -> bytes | None:
    if wkb is None:
        return None
    code, count = struct.unpack_from("<II", wkb, 1)  # of a point the latter is no count
    if code % 1000 > POLYGON:
        return wkb
    if count == 0 and code % 1000 != POINT:
        return struct.pack("<BII", 1, code + MULTIPLE, 0)
    return struct.pack("<BII", 1, code + MULTIPLE, 1) + wkb
