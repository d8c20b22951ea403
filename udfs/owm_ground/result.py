"""What both kernels give, and what both refuse; on NumPy and on CuPy arrays."""

from typing import Any

import numpy as np


def not_finite(arrays: list[Any]) -> str:
    """Say which of the points x, y, z, point_id cannot be taken."""
    bad = ~(np.isfinite(arrays[0]) & np.isfinite(arrays[1]) & np.isfinite(arrays[2]))
    return (
        f"owm_ground: x, y and z must be finite, got {int(np.count_nonzero(bad))} points with NaN "
        f"or infinity, the first with point_id {int(arrays[3][int(np.argmax(bad))])}"
    )


def result_of(
    arrays: list[Any], seeds: Any, hits: Any, filled: Any, filled_hits: Any
) -> dict[str, Any]:
    """Put seeds before filled points, each by ascending point_id; positions become rows."""
    x, y, z, point_id = arrays
    orders = np.argsort(point_id[seeds]), np.argsort(point_id[filled])
    points = np.concatenate([seeds[orders[0]], filled[orders[1]]])
    is_filled = np.zeros_like(points, np.bool_)
    is_filled[seeds.size :] = True
    return {
        "point_id": point_id[points],
        "x": x[points],
        "y": y[points],
        "z": z[points],
        "hits": np.concatenate([hits[orders[0]], filled_hits[orders[1]]]).astype(np.int32),
        "filled": is_filled,
    }
