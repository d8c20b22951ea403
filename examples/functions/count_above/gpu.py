"""`count_above` on the GPU."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.runtime import cuda

from . import Options

SOURCE = Path(__file__).parent / "kernels.cu"
THREADS = 256


def run(x: Any, y: Any, z: Any, point_id: Any, options: Options) -> dict[str, Any]:
    """Count the points that are higher: as `cpu.run`, where the coordinates are."""
    device = cuda.device()
    with device.use():
        here = device.is_here(z)
        (there,) = [device.view(z)] if here else device.upload([z])
        n = device.filled(0, 8).view(np.int64)
        if z.size:
            blocks = (-(-z.size // THREADS),)
            height = np.float64(options.height)
            device.launch(SOURCE, "count_above", blocks, THREADS, there, z.size, height, n)
        return {"n": n if here else device.download(n)}
