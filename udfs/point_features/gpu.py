"""`point_features` on the GPU."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.points import where_they_are
from spatialq.geometry.neighbours_gpu import NeighboursOnGpu, finite_points
from spatialq.runtime import cuda, progress

from . import FEATURES, MODES, Options

SOURCE = Path(__file__).parent / "kernels.cu"


def run(x: Any, y: Any, z: Any, point_id: Any, options: Options) -> dict[str, Any]:
    """Compute features of the neighbourhood of each point.

    Parameters
    ----------
    x, y, z : float64[n]
        All NumPy arrays, or all arrays of the GPU (`__cuda_array_interface__` or DLPack).
    point_id : int64[n] or None
        Where the coordinates are; None for 0, 1, 2 ...
    options : Options
        `radius` in the unit of the coordinates.

    Returns
    -------
    dict of arrays
        As from `cpu.run`, to the bit, where the coordinates are.

    Raises
    ------
    ValueError
        If coordinates are not finite, or only some of the arrays are on the GPU.
    """
    device = cuda.device()
    with device.use():
        progress.stage("order", 0.5)
        there, here = finite_points(device, options.function, x, y, z, point_id)
        n, xp = len(there[0]), device.xp
        near = NeighboursOnGpu(device, *there)
        progress.stage("features", 1.0)
        count, features = xp.empty(n, np.int32), xp.empty((len(FEATURES), n))
        rest = options.min_k, MODES.index(options.mode), count, features
        if options.radius is None:
            near.launch_nearest(SOURCE, "point_features_nearest", n, options.k + 1, *rest)
        else:
            near.launch(SOURCE, "point_features_within", n, np.float64(options.radius), *rest)
        columns = {"neighbours": count, **dict(zip(FEATURES, features, strict=True))}
        return where_they_are(device, point_id, n, columns, here=here)
