"""`lod_select` in SQL: checks its arguments and computes what its query needs of the camera."""

import json
import math
from typing import Any

import pyarrow as pa

from spatialq.database.sql_function import SqlFunction
from spatialq.functions.camera import FUNCTION, Camera, in_sql
from spatialq.functions.declaration import Kind


def _view(arguments: Any) -> Any:
    """Check the arguments of calls of `lod_select`, and compute what its query needs."""
    return pa.array([_checked(**json.loads(text)) for text in arguments.to_pylist()], VIEW)


def _checked(camera: Any, pixels: Any, max_samples: Any) -> dict[str, Any]:
    camera = Camera.of(camera)
    if not Kind.of(float).fits(pixels) or not 0 < pixels < math.inf:
        message = f"{FUNCTION}: pixels must be a number > 0 and finite, got {in_sql(pixels)}"
        raise ValueError(message)
    if max_samples is not None and not (Kind.of(int).fits(max_samples) and max_samples >= 1):
        message = (
            f"{FUNCTION}: max_samples must be a whole number >= 1 or NULL, "
            f"got {in_sql(max_samples)}"
        )
        raise ValueError(message)
    x, y, z = camera.eye
    return {
        "x": x,
        "y": y,
        "z": z,
        "planes": [
            {"a": a, "b": b, "c": c, "d": d, "reach": sum(max(each, 0.0) for each in (a, b, c))}
            for a, b, c, d in camera.planes().tolist()
        ],
        "scale": camera.scale,
        "parallel": camera.is_parallel,
        "pixels": pixels,
        "max_samples": None if max_samples is None else min(max_samples, 2**63 - 1),
    }


VIEW = pa.struct(
    {
        **dict.fromkeys("xyz", pa.float64()),
        "planes": pa.list_(pa.struct(dict.fromkeys(("a", "b", "c", "d", "reach"), pa.float64()))),
        "scale": pa.float64(),
        "parallel": pa.bool_(),
        "pixels": pa.float64(),
        "max_samples": pa.int64(),
    }
)
SQL_FUNCTIONS = (
    SqlFunction(
        "lod_select_udf",
        ("VARCHAR",),
        "STRUCT(x DOUBLE, y DOUBLE, z DOUBLE, "
        "planes STRUCT(a DOUBLE, b DOUBLE, c DOUBLE, d DOUBLE, reach DOUBLE)[], "
        "scale DOUBLE, parallel BOOLEAN, pixels DOUBLE, max_samples BIGINT)",
        _view,
    ),
)
