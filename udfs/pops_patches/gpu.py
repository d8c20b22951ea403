"""`pops_patches` on the GPU: the features that `pops_features` aggregates, patch by patch."""

from typing import TYPE_CHECKING, Any

from spatialq.runtime import cuda

from ..pops_features.gpu import Kernels
from ..pops_features.table import patches_table, room_for_patches

if TYPE_CHECKING:
    from spatialq.data.grid import Grid

    from . import Options


def run(grid: "Grid", options: "Options") -> dict[str, Any]:
    """Compute the features of each patch: columns as from `cpu.run`, in the memory of the grid."""
    device = cuda.device()
    with device.use():
        kernels = Kernels(device, grid, options)
        division, rows, xp = kernels.division, kernels.rows, kernels.xp
        value, parts = room_for_patches(division, rows, options, xp)
        for band, raw in kernels.bands():
            there = kernels.bring(raw)
            for k, part in enumerate(parts):
                part[:, :, band] = there[..., kernels.firsts[k] : kernels.firsts[k + 1]]
        return patches_table(division, rows, options, value, parts, xp)
