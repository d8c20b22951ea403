"""From point clouds to those of their points that are in polygons."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import files_read_by
from spatialq.export.atomic import together
from spatialq.io.clouds import are_las
from spatialq.io.source import LAS, PointSource, Progress
from spatialq.runtime import budget, buffers
from spatialq.workflows.cloud_files import considered, las_outputs, open_clouds, write_with_columns
from spatialq.workflows.cloud_points import POINT_ID
from spatialq.workflows.outputs import Outputs, input_files
from spatialq.workflows.within import Within

if TYPE_CHECKING:
    from spatialq.runtime.arrays import Bools

COMMAND = "clip"


@together()
@files_read_by(COMMAND)
def write_clip(
    source: str | Path | Sequence[str | Path],
    outputs: str | Path | Sequence[str | Path],
    within: str | Path,
    *,
    layer: str | None = None,
    where: str | None = None,
    outside: bool = False,
    crs: str | None = None,
    override_crs: bool = False,
    to_crs: str | None = None,
    scale: float | Sequence[float] | None = None,
    offset: Sequence[float] | None = None,
    memory: str | float | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the points of clouds that are in polygons; all else of a point stays as it is.

    Points on an edge or a corner are in a polygon, those in a hole are not. Files whose extent, as
    their header tells it, no polygon touches are not read.

    Parameters
    ----------
    source : path or paths
        Point clouds, patterns of them, or folders: together one cloud.
    outputs : path or paths
        .las or .laz. A folder that is there, or a text that ends in a slash, gets a file of the
        same name for each source that polygons touch.
    within : path
        Polygons, in a file that `read_vector` reads.
    layer : str, optional
        The layer of that file; needed where it has several.
    where : str, optional
        A condition in SQL on the attributes of the polygons, such as "kind = 'meadow'".
    outside : bool
        Write the points that are in none of the polygons instead.
    crs : str, optional
        Of a source that does not name one: PROJJSON, WKT, or a code such as EPSG:25832.
    override_crs : bool
        Whether `crs` also takes the place of one that the source names.
    to_crs : str, optional
        CRS to reproject the points to before, that of the polygons, such as 'EPSG:25832'.
    scale, offset : float or three of float, and three of float, optional
        As of `write_ground`.
    memory : str or float, optional
        Main memory to use, such as '2GB'; a number is in GiB.
    progress : callable, optional
        Called with file, rows so far and rows in all.

    Returns
    -------
    dict
        files (those that were read), points (written), outputs.

    Raises
    ------
    FileError
        If a file cannot be read or written, or the polygons touch none of the clouds.
    CrsError
        If clouds and polygons are in different coordinate reference systems.
    ValueError
        If an argument is wrong.
    """
    paths, targets = input_files(COMMAND, source), Outputs.of(COMMAND, outputs, LAS)
    if not targets.names:
        message = f"{COMMAND}: outputs must name a file that ends in .las or .laz, got none"
        raise ValueError(message)
    clouds = open_clouds(source, paths, targets, LAS)
    within_memory = budget.within(COMMAND, memory, targets.beside)
    chosen = Within(within, layer, where, outside)
    clouds, crs = considered(
        COMMAND,
        clouds,
        crs,
        override=override_crs,
        to_crs=to_crs,
        within=chosen,
        scale=scale,
        offset=offset,
    )
    tick = progress or (lambda *_: None)
    written = 0
    with within_memory:
        for target, group in las_outputs(clouds, targets):
            written += _write(group, target, crs, tick)
    return {"files": len(clouds), "points": written, "outputs": targets.names}


def _write(clouds: Sequence[PointSource], target: Path, crs: str | None, tick: Progress) -> int:
    """Write the points that are left of clouds."""
    from spatialq.export.las import write_copy

    if not are_las(clouds):
        return write_with_columns(clouds, target, {}, tick, crs=crs)
    keep: Bools = buffers.empty(sum(cloud.rows for cloud in clouds), np.bool_)
    keep[...] = False
    first = 0
    for cloud in clouds:
        for batch in cloud.batches([POINT_ID]):
            keep[batch.column(0).to_numpy() + first] = True
        first += cloud.rows
    paths = [cloud.path for cloud in clouds]
    return write_copy(paths, target, keep=keep, progress=partial(tick, target), crs=crs)
