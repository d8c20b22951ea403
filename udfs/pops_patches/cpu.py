"""`pops_patches` on the CPU: the features that `pops_features` aggregates, patch by patch."""

from typing import TYPE_CHECKING, Any

from ..pops_features.cpu import Run, each_run, raw_features
from ..pops_features.division import divide
from ..pops_features.table import patches_table, room_for_patches

if TYPE_CHECKING:
    from spatialq.data.grid import Grid

    from . import Options


def run(grid: "Grid", options: "Options") -> dict[str, Any]:
    """Compute the features of each patch.

    Parameters and errors are those of `pops_features`.

    Returns
    -------
    dict of columns
        One row per patch, method and feature: `example_id` int64, `method` and `feature` Text,
        `scale` float64, `px` and `py` int64 (position of the patch in its example), `value` float64
        (NaN where the patch has too few values).
    """
    division = divide(grid, options)
    rows = division.rows_within(grid)
    value, parts = room_for_patches(division, rows, options)

    def work(piece: Run, k: int) -> None:
        raw = raw_features(grid, division, options, piece, k)
        parts[k][:, piece.first : piece.stop, piece.row - rows.start] = raw

    each_run(division, rows, work)
    return patches_table(division, rows, options, value, parts)
