"""`distance` on the GPU: near boxes on the host, then a warp for each pair."""

from pathlib import Path
from typing import Any

import numpy as np

from spatialq import cuda

from ..intersects_with import boxes
from ..intersects_with.gpu import Scene, bring
from ..intersects_with.meshes import Meshes
from . import Options
from .candidates import candidates, table
from .search import BEYOND, ROUNDING

SOURCE = Path(__file__).parent / "kernels.cu"
WARPS = 4  # of a block


def run(
    a: Meshes, b: Meshes | None = None, *, options: Options, pairs: tuple[Any, Any] | None = None
) -> dict[str, Any]:
    """Measure how far elements are from each other, and where.

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
        As from `cpu.run`, to the bit, where the meshes are.
    """
    device = cuda.device()
    with device.use():
        here = device.is_here(a.vertices)
        both = a if b is None else a.followed_by(b)
        arrays = both.vertices, both.faces, both.vertex_starts, both.face_starts
        limits = boxes.of(Meshes(*map(device.download, arrays)) if here else both)
        both = bring(device, both)
        shift = 0 if b is None else len(a)
        if pairs is None:
            rows_a, rows_b = candidates(limits, len(a), options, within=b is None)
        else:
            rows_a, rows_b = pairs[0], pairs[1] + shift
        scene = Scene(device, both, device.upload_small(limits))
        limit = np.inf if options.max_distance is None else options.max_distance
        measures = device.xp.empty((len(rows_a), 7))
        if len(rows_a):
            device.launch(
                SOURCE, "distance_measure", (-(-len(rows_a) // WARPS),), 32 * WARPS,
                *device.upload([rows_a, rows_b]), len(rows_a),
                np.float64(limit), np.float64(ROUNDING), np.float64(BEYOND),
                both.vertices, both.faces, both.vertex_starts, both.face_starts,
                scene.limits, scene.cluster_starts, scene.clusters, scene.side, scene.label,
                measures,
            )  # fmt: skip
        found = table(rows_a, rows_b - shift, device.download(measures), options)
        return {name: device.upload_small(each) for name, each in found.items()} if here else found
