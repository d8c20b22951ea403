"""`pops_features` and `pops_patches` of grids: the options of files, and features as rasters."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster import grid_tiles
from spatialq.cluster.folder import CALLER
from spatialq.cluster.grid_tiles import Tile
from spatialq.cluster.grids import OF_FILE, check_of_file, open_grids
from spatialq.cluster.job import Job
from spatialq.cluster.method import Method
from spatialq.udfs.pops_features import Options
from spatialq.udfs.pops_features.division import Examples, divide
from spatialq.udfs.pops_features.methods import BUILT_IN
from spatialq.udfs.pops_features.table import series_of

TIF = "tif"


def run(job: Job) -> None:
    """Compute the features of all examples of all grids."""
    grid_tiles.run(job, write_raster if job.call.part_format == TIF else None)


def write_raster(tile: Tile, partial: Path) -> dict[str, Any]:
    """Write the means of the features of a tile as a GeoTIFF whose cells are the examples.

    Returns
    -------
    dict
        `rows`, here cells.
    """
    from spatialq.workflows.feature_choice import label_features
    from spatialq.workflows.feature_raster import write_examples

    options = tile.options
    division = divide(tile.source.frame, options)
    examples = Examples(tile.columns, tile.rows)
    series = series_of(division, options)
    shape = len(tile.columns), -1, len(series)
    found = np.concatenate([each["mean"].reshape(shape) for each in tile.bands()], axis=1)
    names = [name for features in options.features.values() for name in features]
    place = {
        (options.methods[each.method], names[each.feature], each.scale): k
        for k, each in enumerate(series)
    }
    write_examples(
        partial, tile.source, division, examples, label_features(options),
        lambda *one: found[:, :, place[one]],
    )  # fmt: skip
    return {"rows": len(tile.columns) * len(tile.rows)}


def check(more: Mapping[str, Any], _: float | None, options: Options, *__: Any) -> None:
    """Refuse options of files that can be none, and methods that workers do not know.

    Raises
    ------
    ValueError
    """
    check_of_file(more)
    if own := [name for name in options.methods if name not in BUILT_IN]:
        message = (
            f"{CALLER}: methods must be of {', '.join(BUILT_IN)}, as workers know no others, got "
            f"{own[0]!r}"
        )
        raise ValueError(message)


METHODS = tuple(
    Method(
        function,
        run,
        kind="grid",
        open=open_grids,
        formats=formats,
        more=OF_FILE,
        check=check,
    )
    for function, formats in (("pops_features", ("parquet", TIF)), ("pops_patches", ("parquet",)))
)
"""Those of both functions, whose tasks do the same."""
