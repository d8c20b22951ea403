"""From a point cloud file to its planes: points with their plane, table, picture."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.frame import Frame
from spatialq.export.atomic import together
from spatialq.io.crs import with_one_unit
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
from spatialq.workflows.outputs import PICTURE, TABLE, VECTOR, Outputs
from spatialq.workflows.tables import write_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from spatialq.export.las_extra import Field

COMMAND = "planes"
ENDINGS = (*LAS, *TABLE, *VECTOR, *PICTURE)
AXES = ("x", "y", "z")


@together()
def write_planes(
    source: str | Path,
    outputs: str | Path | Sequence[str | Path] = (),
    *,
    crs: str | None = None,
    override_crs: bool = False,
    up: str = "z",
    device: str = "auto",
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Find the planes of a cloud and write the result.

    Noise (classes 7 and 18) is not considered.

    Parameters
    ----------
    source : path
        A point cloud in a projected CRS, or one without a CRS.
    outputs : path or paths
        By their endings: .las, .laz the whole cloud with the extra dimensions `plane_id` (int32, 0
        where a point is of no plane) and `plane_distance` (float32, signed, NaN there); .parquet,
        .gpkg, .fgb, .csv, .json, .xlsx the table that `detect_planes` gives; .png a picture of the
        planes.
    crs : str, optional
        Of a source that does not name one: PROJJSON, WKT, or a code such as EPSG:25832.
        Points and boundaries have it.
    override_crs : bool
        Whether `crs` also takes the place of one that the source names.
    up : 'x', 'y' or 'z'
        The axis that points up, for `orientation` and the picture.
    device : 'auto', 'cpu' or 'gpu'
    progress : callable, optional
        Called with file, rows so far and rows in all.
    **options
        Options of `detect_planes`, in the unit of x and y; lengths may also be texts with a unit,
        such as '2mm'.

    Returns
    -------
    dict
        points, noise_points, plane_points, planes, device, outputs. `planes` has one dict per
        plane: the columns of `detect_planes`, the boundary as WKB.

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
    import pyarrow as pa

    from spatialq.database.transport.arrow import structs
    from spatialq.execution.call import call_outputs
    from spatialq.execution.frames import units_for
    from spatialq.export.las import write_with_fields
    from spatialq.export.las_extra import lay_out
    from spatialq.functions.catalogue import catalogue
    from spatialq.io.las.source import open_las

    path, targets = Path(source), Outputs.of(COMMAND, outputs)
    tick = progress or (lambda *_: None)
    if up not in AXES:
        message = f"{COMMAND}: up must be 'x', 'y' or 'z', got {up!r}"
        raise ValueError(message)
    detect, assign = catalogue()["detect_planes"], catalogue()["plane_points"]
    (cloud,) = open_clouds([path], targets, ENDINGS)
    if targets.ending_in(*LAS) and is_las(cloud):
        lay_out(open_las(path).header, _fields(np.empty(0, np.int32), np.empty(0, np.float32)))
    # wrong options, and degrees, are rejected before the work is done
    crs = crs_of(COMMAND, [cloud], crs, override=override_crs)
    frame = Frame(f"'{path}'", crs)
    units_for(detect, detect.choose({}), frame)
    chosen = detect.choose(with_numbers(COMMAND, options, detect.parameters, path, crs))
    *xyz, classes, ids = read_columns(cloud, tick)
    rows = without_noise(classes)
    columns = dict(zip("xyz", (values[rows] for values in xyz), strict=True))
    functions = [detect, assign] if targets.ending_in(*LAS, *PICTURE) else [detect]
    results, used = call_outputs(
        functions, {**columns, "point_id": ids[rows]}, chosen, device, road="files", frame=frame
    )
    found = results[detect.name]
    if up != "z":
        found["orientation"] = _orientation(found[f"n{up}"], chosen.orientation_tolerance)
    table = pa.Table.from_struct_array(structs(detect, found))
    planes: list[dict[str, Any]] = table.to_pylist()
    of_point = np.zeros(classes.size, np.int64)
    distance = np.full(classes.size, np.nan, np.float32)
    if assign in functions:
        points = results[assign.name]
        of_point[rows], distance[rows] = points["plane_id"], points["distance"]
    for target in targets.ending_in(*LAS):
        fields = _fields(of_point.astype(np.int32), distance)
        if is_las(cloud):
            write_with_fields(path, target, fields, partial(tick, target), crs=crs)
        else:
            added = {field.name: field.values for field in fields}
            write_with_columns(cloud, target, added, tick, crs=crs)
    for target in targets.ending_in(*TABLE, *VECTOR):
        _write_table(table, crs and with_one_unit(crs), target)
    for target in targets.ending_in(*PICTURE):
        from spatialq.export.planes_picture import write_planes_picture
        from spatialq.io.crs import unit_name

        title, unit = f"Planes of {path.name}", unit_name(crs)
        write_planes_picture(target, xyz, of_point, planes, title, up, unit)
    return {
        "points": classes.size,
        "noise_points": classes.size - rows.size,
        "plane_points": sum(plane["point_count"] for plane in planes),
        "planes": planes,
        "device": used,
        "outputs": targets.names,
    }


def _orientation(normal_up: "NDArray[np.float64]", tolerance: float) -> "NDArray[np.int8]":
    """Give the codes of `orientation` by the part of the normals that points up."""
    upright, angle = np.abs(normal_up), np.radians(tolerance)
    codes = np.where(upright >= np.cos(angle), 0, np.where(upright <= np.sin(angle), 1, 2))
    return codes.astype(np.int8)


def _fields(plane_id: "NDArray[np.int32]", distance: "NDArray[np.float32]") -> "list[Field]":
    from spatialq.export.las_extra import Field

    return [
        Field("plane_id", plane_id, "plane of the point, 0: none", 0),
        Field("plane_distance", distance, "from it along its normal", np.nan),
    ]


def _write_table(table: "pa.Table", crs: str | None, target: Path) -> None:
    query = "SELECT * REPLACE (boundary::GEOMETRY AS boundary) FROM result"
    write_arrow(table, target, query, crs=crs)
