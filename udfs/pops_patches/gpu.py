"""`pops_patches` on the GPU: the features that `pops_features` aggregates, patch by patch."""

from typing import TYPE_CHECKING, Any

from spatialq import cuda

from ..pops_features.gpu import Kernels
from ..pops_features.table import patches_table

if TYPE_CHECKING:
    from spatialq.grid import Grid

    from . import Options


def run(grid: "Grid", options: "Options") -> dict[str, Any]:
    """Take the features of each patch.

    Parameters
    ----------
    grid : Grid
        As for `pops_features`.
    options : Options

    Returns
    -------
    dict of columns
        As from `cpu.run`, where the grid is; text is in the memory of the host.

    Raises
    ------
    ValueError
        As from `cpu.run`.
    """
    device = cuda.device()
    with device.use():
        kernels = Kernels(device, grid, options)
        division, rows, xp = kernels.division, kernels.rows, kernels.xp
        features = 1 + max(each.feature for each in kernels.series)
        shape = features, division.x.count, len(rows)
        found = [xp.empty((*shape, scale.patches)) for scale in division.scales]
        for band, raw in kernels.bands():
            there = kernels.bring(raw)
            for k, values in enumerate(found):
                values[:, :, band] = there[..., kernels.firsts[k] : kernels.firsts[k + 1]]
        return patches_table(division, rows, options, found, xp)
