"""From a point cloud file to its ground: classified points, terrain grid, hillshade, table."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.frame import Frame
from spatialq.export.atomic import together
from spatialq.io.source import LAS, Progress
from spatialq.workflows.cloud_files import (
    crs_of,
    is_las,
    open_clouds,
    read_columns,
    without_noise,
    write_with_columns,
)
from spatialq.workflows.lengths import with_numbers
from spatialq.workflows.outputs import PICTURE, RASTER, TABLE, Outputs
from spatialq.workflows.tables import write_arrow

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spatialq.export.raster import Raster

COMMAND = "ground"
ENDINGS = (*LAS, *RASTER, *PICTURE, *TABLE)
UNCLASSIFIED, GROUND = 1, 2  # ASPRS classes
KEPT = (9, 17)  # water and bridge decks may look like ground, but who classified them knew better


@together()
def write_ground(
    source: str | Path,
    outputs: str | Path | Sequence[str | Path],
    *,
    ground_only: bool = False,
    crs: str | None = None,
    override_crs: bool = False,
    device: str = "auto",
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Classify the ground of a cloud and write the result.

    Noise (classes 7 and 18) is not considered and keeps its class; water (9) and bridge decks (17)
    keep theirs. All other points get class 2 where `classify_ground` finds ground; those that had
    class 2 and are not ground get class 1.

    Parameters
    ----------
    source : path
        A point cloud in a projected CRS, or one without a CRS in metres.
    outputs : path or paths
        By their endings: .las, .laz the points with their new classes, all else as it was; .tif
        the terrain (Cloud Optimized GeoTIFF); .png a picture of its hillshade and of the
        classified points; .parquet, .csv, .json, .xlsx the table that `classify_ground` gives.
    ground_only : bool
        Write only the ground points to .las and .laz.
    crs : str, optional
        Of a source that does not name one: PROJJSON, WKT, or a code such as EPSG:25832.
        All outputs have it.
    override_crs : bool
        Whether `crs` also takes the place of one that the source names.
    device : 'auto', 'cpu' or 'gpu'
    progress : callable, optional
        Called with file, rows so far and rows in all.
    **options
        Options of `classify_ground`, in metres; and `resolution` in units of x and y, `method`,
        `neighbours` and `extrapolate` of `ground_surface`, which makes the terrain from one ground
        point per cell. Lengths may also be texts with a unit, such as '2ft'.

    Returns
    -------
    dict
        points, ground_points, noise_points, device, outputs.

    Raises
    ------
    FileError
        If the source cannot be read, or an output not be written.
    CrsError
        If the CRS is not projected, or `crs` is not that of the source.
    ValueError
        If an option or the ending of an output is wrong.

    Warns
    -----
    CrsWarning
        If metres are assumed since there is no CRS, or heights have another unit than x and y.
    """
    from spatialq.execution.call import call
    from spatialq.execution.frames import units_for
    from spatialq.export.ground_picture import write_ground_picture
    from spatialq.export.las import write_classified
    from spatialq.export.raster import write_terrain
    from spatialq.functions.catalogue import catalogue
    from spatialq.functions.declaration import COORDINATES, parameters_of
    from spatialq.io.crs import unit_name
    from spatialq.udfs.ground_surface import TerrainOptions

    path, targets = Path(source), Outputs.of(COMMAND, outputs)
    if not targets.paths:
        message = f"{COMMAND}: outputs must name a file, got none"
        raise ValueError(message)
    tick = progress or (lambda *_: None)
    (cloud,) = open_clouds([path], targets, ENDINGS)
    # wrong options are rejected before the work is done
    own = {each.name for each in parameters_of(TerrainOptions)}
    classify = catalogue()["classify_ground"]
    known = own | {each.name for each in classify.parameters} - {*COORDINATES}
    if unknown := sorted(set(options) - known):
        message = f"write_ground: no option {unknown[0]!r}; there is {', '.join(sorted(known))}"
        raise ValueError(message)
    crs = crs_of(COMMAND, [cloud], crs, override=override_crs)
    frame = Frame(f"'{path}'", crs, is_announced=crs is None)  # `with_numbers` does it
    units_for(classify, classify.choose({}), frame)  # refuses degrees
    parameters = (*classify.parameters, *parameters_of(TerrainOptions))
    options = with_numbers(COMMAND, options, parameters, path, crs)
    shape = {name: options.pop(name) for name in own & set(options)}
    surface = catalogue()["ground_surface"].choose({"source": "points", "thin": True} | shape)
    chosen = classify.choose(options)
    x, y, z, classes, ids = read_columns(cloud, tick)
    rows = without_noise(classes)
    columns = {"x": x[rows], "y": y[rows], "z": z[rows], "point_id": ids[rows]}
    found, used = call(classify, columns, chosen, device, road="files", frame=frame)
    found["is_ground"] = found["is_ground"] & ~np.isin(classes[rows], KEPT)
    is_ground = np.zeros(classes.size, np.bool_)
    is_ground[rows] = found["is_ground"]
    if targets.ending_in(*RASTER, *PICTURE):
        upright = units_for(classify, chosen, frame).level
        terrain = _terrain([x, y, z], is_ground, surface, crs, device, upright)
        for target in targets.ending_in(*RASTER):
            write_terrain(target, terrain)
        for target in targets.ending_in(*PICTURE):
            is_noise = np.ones(classes.size, np.bool_)
            is_noise[rows] = False
            title, unit = f"Ground of {path.name}", unit_name(crs)
            write_ground_picture(target, terrain, (x, y, z), is_ground, is_noise, title, unit)
    for target in targets.ending_in(*LAS):
        new = np.where(classes == GROUND, np.uint8(UNCLASSIFIED), classes)
        new[is_ground] = GROUND
        keep = is_ground if ground_only else None
        if is_las(cloud):
            write_classified(path, target, new, keep, partial(tick, target), crs=crs)
        else:
            write_with_columns(cloud, target, {"classification": new}, tick, crs=crs, keep=keep)
    for target in targets.ending_in(*TABLE):
        _write_table(found, target)
    return {
        "points": classes.size,
        "ground_points": int(np.count_nonzero(is_ground)),
        "noise_points": classes.size - rows.size,
        "device": used,
        "outputs": targets.names,
    }


def _terrain(
    xyz: "list[NDArray[np.float64]]",
    is_ground: "NDArray[np.bool_]",
    options: Any,
    crs: str | None,
    device: str,
    upright: float,
) -> "Raster":
    """Make the terrain of the ground points, as wide as the cloud without its stray points.

    `upright` is how many units of x and y are in one of z.
    """
    from spatialq.data.strays import strays_of
    from spatialq.execution.call import call
    from spatialq.export.raster import Raster, covering, from_cells
    from spatialq.functions.catalogue import catalogue

    ground = [values[is_ground] for values in xyz]
    columns = {**dict(zip("xyz", ground, strict=True)), "point_id": np.arange(ground[0].size)}
    cells, _ = call(catalogue()["ground_surface"], columns, options, device)
    raster = Raster(np.full((1, 1), np.nan), 0.0, 0.0, options.resolution, crs)
    if cells["z"].size:
        raster = from_cells(cells["x"], cells["y"], cells["z"], crs)
    if found := strays_of(xyz, upright):
        low, high = found[1].low, found[1].high
    else:
        low, high = np.min(xyz, axis=1), np.max(xyz, axis=1)
    return covering(raster, (low[0], high[0]), (low[1], high[1]))


def _write_table(found: "dict[str, NDArray[Any]]", target: Path) -> None:
    import pyarrow as pa

    write_arrow(pa.table(found), target)
