"""`count_above` on the CPU."""

from typing import Any

import numpy as np

from . import Options


def run(x: Any, y: Any, z: Any, point_id: Any, options: Options) -> dict[str, Any]:
    """Count the points that are higher: `n` int64[1]."""
    return {"n": np.array([np.count_nonzero(z > options.height)])}
