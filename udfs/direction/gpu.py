"""`direction` on the GPU: one warp per candidate pair.

The view of the elements and the pairs of boxes are made on the host, and so is the model
'halfspace', which needs only the boxes. Strict pairs are a few of the relaxed ones, and need a
stack whose size is not known beforehand: they are tested on the host as well.
"""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.runtime import cuda

from . import Options
from .cpu import search
from .view import View

SOURCE = Path(__file__).parent / "kernels.cu"
WARPS = 4  # of a block


def run(
    a: Meshes, b: Meshes | None = None, *, options: Options, pairs: tuple[Any, Any] | None = None
) -> dict[str, Any]:
    """Find the pairs of elements of which the second lies in a direction from the first.

    Parameters
    ----------
    a, b : Meshes
        As for `cpu.run`; NumPy arrays, or arrays of the GPU.
    options : Options
    pairs : int64[], int64[], optional
        As for `cpu.run`.

    Returns
    -------
    dict of arrays
        As from `cpu.run`, where the meshes are.
    """
    device = cuda.device()
    with device.use():
        here = device.is_here(a.vertices)

        def fetch(meshes: Meshes) -> Meshes:
            return Meshes(*(device.download(device.view(each)) for each in meshes.arrays))

        def some(view: View, rows_a: Any, rows_b: Any, t: float) -> Any:
            return _some_lie_over(device, view, rows_a, rows_b, t)

        if here:
            a, b = fetch(a), None if b is None else fetch(b)
        found = search(a, b, options, pairs, some)
        return {name: device.upload_small(each) for name, each in found.items()} if here else found


def _some_lie_over(device: cuda.Device, view: View, rows_a: Any, rows_b: Any, t: float) -> Any:
    n = len(rows_a)
    keep = device.filled(0, n)
    if n == 0:
        return device.download(keep).astype(bool)
    device.launch(
        SOURCE, "direction_some_over", (-(-n // WARPS),), 32 * WARPS,
        *device.upload([rows_a, rows_b]), n,
        *device.upload([view.facets, view.starts, view.clusters, view.cluster_starts, view.boxes]),
        np.float64(t), keep,
    )  # fmt: skip
    return device.download(keep).astype(bool)
