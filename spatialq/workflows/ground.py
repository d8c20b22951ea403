"""From a point cloud file to its ground: classified points, terrain grid, relief, table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.io.source import LAS, Progress
from spatialq.workflows.cloud_files import NOISE, metres_per_unit, open_clouds, read_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spatialq.export.raster import Raster

COMMAND = "ground"
TABLE = (".parquet", ".csv", ".json")
TERRAIN = (".tif", ".tiff")
RELIEF = (".png",)
ENDINGS = (*LAS, *TERRAIN, *RELIEF, *TABLE)
UNCLASSIFIED, GROUND = 1, 2  # ASPRS classes
KEPT = (9, 17)  # water and bridge decks may look like ground, but who classified them knew better


def write_ground(
    source: str | Path,
    outputs: str | Path | Sequence[str | Path],
    *,
    resolution: float = 1.0,
    method: str = "tin",
    ground_only: bool = False,
    crs: str | None = None,
    device: str = "auto",
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Classify the ground of a cloud and write what was found.

    Noise (classes 7 and 18) keeps its class and takes no part; water (9) and bridge decks (17) keep
    theirs. All other points get class 2 where `classify_ground` finds ground; those that had class
    2 and are not ground get class 1.

    Parameters
    ----------
    source : path
        LAS, LAZ or COPC file in a projected CRS, or one without a CRS in metres.
    outputs : path or paths
        By their endings: .las, .laz the points with their new classes, all else as it was; .tif
        the terrain (Cloud Optimized GeoTIFF); .png its shaded relief; .parquet, .csv, .json the
        table that `classify_ground` gives.
    resolution : float, units of the CRS
        Of the terrain.
    method : 'tin' or 'idw'
        How `ground_surface` makes the terrain, from one ground point a cell.
    ground_only : bool
        Write only the ground points to .las and .laz.
    crs : str, optional
        Of a source that does not say or says wrong: PROJJSON, WKT, or a code such as EPSG:25832.
        It is that of the terrain; points keep the records of the source.
    device : 'auto', 'cpu' or 'gpu'
    progress : callable, optional
        Called with file, rows so far and rows in all.
    **options
        Options of `classify_ground`, in metres; `unit` follows from the CRS.

    Returns
    -------
    dict
        points, ground_points, noise_points, device, outputs.

    Raises
    ------
    FileError
        If the source cannot be read, or an output not be written.
    CrsError
        If the CRS is not projected.
    ValueError
        If an option or the ending of an output is wrong.
    """
    from spatialq.execution.call import call
    from spatialq.export.raster import covering, write_hillshade, write_terrain
    from spatialq.functions.catalogue import catalogue
    from spatialq.io import crs as crs_text
    from spatialq.io.files import warn_about

    path = Path(source)
    targets = [Path(each) for each in ([outputs] if isinstance(outputs, str | Path) else outputs)]
    tick = progress or (lambda *_: None)
    if not targets:
        message = f"{COMMAND}: outputs must name a file, got none"
        raise ValueError(message)
    (cloud,) = open_clouds(COMMAND, [path], targets, ENDINGS)
    terrains = [target for target in targets if target.suffix.lower() in (*TERRAIN, *RELIEF)]
    surface = catalogue()["ground_surface"].choose(
        {"source": "points", "resolution": resolution, "method": method, "thin": True}
    )  # refused before the work is done
    crs = cloud.crs if crs is None else crs_text.from_argument(COMMAND, crs)
    warn_about(COMMAND, cloud)
    unit, height_unit = metres_per_unit(COMMAND, path, crs)
    options.setdefault("unit", unit)
    chosen = catalogue()["classify_ground"].choose(options)
    x, y, z, classes = read_columns(cloud, tick)
    rows = np.flatnonzero(~np.isin(classes, NOISE))
    level = height_unit / unit  # heights in the units of x and y
    heights = z[rows] if level == 1 else z[rows] * level
    columns = {"x": x[rows], "y": y[rows], "z": heights, "point_id": rows}
    found, used = call(catalogue()["classify_ground"], columns, chosen, device)
    is_ground = np.zeros(classes.size, np.bool_)
    found["is_ground"] = found["is_ground"] & ~np.isin(classes[rows], KEPT)
    is_ground[rows] = found["is_ground"]
    if terrains:
        ground = [values[is_ground] for values in (x, y, z)]
        raster = _terrain(ground, surface, crs, device)
        raster = covering(raster, (x.min(), x.max()), (y.min(), y.max()))
        for target in terrains:
            is_relief = target.suffix.lower() in RELIEF
            (write_hillshade if is_relief else write_terrain)(target, raster)
    for target in targets:
        if target.suffix.lower() in LAS:
            _write_points(path, target, classes, is_ground, tick, ground_only=ground_only)
        elif target.suffix.lower() in TABLE:
            found["height"] /= level
            _write_table(found, target)
            found["height"] *= level
    return {
        "points": cloud.rows,
        "ground_points": int(np.count_nonzero(is_ground)),
        "noise_points": cloud.rows - rows.size,
        "device": used,
        "outputs": [str(target) for target in targets],
    }


def _terrain(
    ground: "list[NDArray[np.float64]]", options: Any, crs: str | None, device: str
) -> "Raster":
    from spatialq.execution.call import call
    from spatialq.export.raster import Raster, from_cells
    from spatialq.functions.catalogue import catalogue

    columns = {**dict(zip("xyz", ground, strict=True)), "point_id": np.arange(ground[0].size)}
    cells, _ = call(catalogue()["ground_surface"], columns, options, device)
    if cells["z"].size == 0:
        return Raster(np.full((1, 1), np.nan), 0.0, 0.0, options.resolution, crs)
    return from_cells(cells["x"], cells["y"], cells["z"], crs)


def _write_points(
    source: Path,
    target: Path,
    classes: "NDArray[np.uint8]",
    is_ground: "NDArray[np.bool_]",
    tick: Progress,
    *,
    ground_only: bool,
) -> None:
    from spatialq.export.las import write_classified

    new = np.where(classes == GROUND, np.uint8(UNCLASSIFIED), classes)
    new[is_ground] = GROUND
    keep = is_ground if ground_only else None
    write_classified(source, target, new, keep, lambda done, total: tick(target, done, total))


def _write_table(found: "dict[str, NDArray[Any]]", target: Path) -> None:
    import pyarrow as pa

    from spatialq.database.connection import connect_quietly
    from spatialq.database.table_files import write_table

    con = connect_quietly()
    con.register("found", pa.table(found))
    write_table(con, "FROM found", target)
    con.close()
