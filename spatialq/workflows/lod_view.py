"""What `lod_select` asks Python: where the planes of the camera are."""

import json
import math
from typing import Any

from spatialq.export.camera import Camera, in_sql
from spatialq.functions.declaration import Parameter

FUNCTION = "lod_select"
PIXELS = Parameter("pixels", float, 1.0, "", above=0)
MAX_SAMPLES = Parameter("max_samples", int, None, "", at_least=1, is_optional=True)


def view(arguments: str) -> dict[str, Any]:
    """Check what a call of `lod_select` was given, and say what its query needs of the camera.

    Parameters
    ----------
    arguments : str
        JSON of camera, pixels and max_samples.

    Returns
    -------
    dict
        The fields of the struct that the SQL function gives.
    """
    return _checked(**json.loads(arguments))


def _checked(camera: Any, pixels: Any, max_samples: Any) -> dict[str, Any]:
    camera = Camera.of(FUNCTION, camera)
    if not PIXELS.fits(pixels) or not 0 < pixels < math.inf:
        message = f"{FUNCTION}: pixels must be a number > 0 and finite, got {in_sql(pixels)}"
        raise ValueError(message)
    if max_samples is not None and not (MAX_SAMPLES.fits(max_samples) and max_samples >= 1):
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
