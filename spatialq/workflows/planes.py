"""From a point cloud file to its planes: points with their plane, table, picture."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import files_read_by
from spatialq.export.atomic import together
from spatialq.io.clouds import are_las
from spatialq.io.crs import with_one_unit
from spatialq.io.source import LAS, PointSource, Progress
from spatialq.runtime import budget
from spatialq.runtime.arrays import Array, Bytes, Float32s, Floats, Int32s
from spatialq.workflows.cloud_files import (
    considered,
    las_outputs,
    open_clouds,
    write_with_columns,
)
from spatialq.workflows.cloud_points import Points, checked_bounds, read_points, warn_of_nothing
from spatialq.workflows.lengths import with_numbers
from spatialq.workflows.outputs import PICTURE, TABLE, VECTOR, Outputs, frame_of, input_files, named
from spatialq.workflows.tables import write_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from spatialq.export.las_extra import Field

COMMAND = "planes"
ENDINGS = (*LAS, *TABLE, *VECTOR, *PICTURE)
AXES = ("x", "y", "z")


@together()
@files_read_by(COMMAND)
def write_planes(
    source: str | Path | Sequence[str | Path],
    outputs: str | Path | Sequence[str | Path] = (),
    *,
    crs: str | None = None,
    override_crs: bool = False,
    to_crs: str | None = None,
    scale: float | Sequence[float] | None = None,
    offset: Sequence[float] | None = None,
    up: str = "z",
    colour: bool = False,
    bounds: Sequence[float] | None = None,
    within: str | Path | None = None,
    resolution: float | str | None = None,
    device: str = "auto",
    memory: str | float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Find the planes of a cloud and write the result.

    Noise (classes 7 and 18) is not considered.

    Parameters
    ----------
    source : path or paths
        Point clouds in a projected CRS, or without a CRS; or patterns of them, or folders: together
        one cloud.
    outputs : path or paths
        By their endings: .las, .laz the whole cloud with the extra dimensions `plane_id` (int32, 0
        where a point is of no plane) and `plane_distance` (float32, signed, NaN there); .parquet,
        .gpkg, .fgb, .csv, .json, .xlsx the table that `detect_planes` gives; .png a picture of the
        planes. A folder that is there, or a text that ends in a slash: a .las or .laz file of the
        same name for each source.
    crs : str, optional
        Of a source that does not name one: PROJJSON, WKT, or a code such as EPSG:25832.
        Points and boundaries have it.
    override_crs : bool
        Whether `crs` also takes the place of one that the source names.
    to_crs : str, optional
        CRS to reproject the points to before, such as 'EPSG:25832'; all outputs have it.
    scale : float, or three of float, optional
        Steps of x, y and z in .las and .laz, to which coordinates are rounded; by default those of
        the first source.
    offset : three of float, optional
        From where these steps are counted; by default as in the first source.
    up : 'x', 'y' or 'z'
        The axis that points up, for `orientation`, the picture and the colours.
    colour : bool
        Whether points in .las and .laz files get the colours of their planes in the picture, in the
        place of their own; their point format becomes one with colours.
    bounds : four of float, optional
        xmin, ymin, xmax, ymax in the unit of x and y: only the points inside or on the border are
        considered and written.
    within : path, optional
        Polygons, in a file that `read_vector` reads: only the points in them are considered and
        written. Files whose extent, as their header tells it, none touches are not read.
    resolution : float or str, optional
        Spacing of points at which the nodes of an octree (COPC, EPT) are dense enough, in the unit
        of x and y or as a text such as '50cm': finer nodes are neither read nor written.
    device : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
    memory : str or float, optional
        Main memory to use, such as '2GB'; a number is in GiB. By default half of what is free.
        Larger arrays are in files beside the first output.
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
        If a source cannot be read, or an output not be written.
    CrsError
        If the CRS is not projected, or `crs` is not that of the sources, or those differ.
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
    from spatialq.execution.units import units_for
    from spatialq.export.planes_picture import colours_of_planes
    from spatialq.functions.catalogue import catalogue

    paths, targets = input_files(COMMAND, source), Outputs.of(COMMAND, outputs, ENDINGS)
    tick = progress or (lambda *_: None)
    if up not in AXES:
        message = f"{COMMAND}: up must be 'x', 'y' or 'z', got {up!r}"
        raise ValueError(message)
    box = checked_bounds(COMMAND, bounds)
    detect, assign = catalogue()["detect_planes"], catalogue()["plane_points"]
    clouds = open_clouds(source, paths, targets, ENDINGS)
    within_memory = budget.within(COMMAND, memory, targets.beside)
    wanted = las_outputs(clouds, targets)
    for _, group in wanted:
        for cloud in group:
            _require_room(cloud)
    # wrong options, and degrees, are rejected before the work is done
    clouds, crs = considered(
        COMMAND,
        clouds,
        crs,
        override=override_crs,
        to_crs=to_crs,
        resolution=resolution,
        within=within,
        scale=scale,
        offset=offset,
    )
    frame = frame_of(paths, crs, to_crs)
    units_for(detect, detect.choose({}), frame)
    chosen = detect.choose(with_numbers(COMMAND, options, detect.parameters, paths[0], crs))
    functions = [detect, assign] if wanted or targets.ending_in(*PICTURE) else [detect]
    with within_memory:
        points = read_points(clouds, box, tick)
        warn_of_nothing(COMMAND, clouds, box, points.count)
        results, used = call_outputs(
            functions, dict(points.columns), chosen, device, transport="files", frame=frame
        )
        found = results[detect.name]
        if up != "z":
            found["orientation"] = _orientation(found[f"n{up}"], chosen.orientation_tolerance)
        table = pa.Table.from_struct_array(structs(detect, found))
        planes: list[dict[str, Any]] = table.to_pylist()
        if assign in functions:
            of_points = results[assign.name]
            colours = colours_of_planes(planes, up) if colour else None
            _write_clouds(clouds, targets, points, of_points, colours, tick, crs)
            _write_pictures(targets, points, of_points, planes, named(paths), up, crs)
        for target in targets.ending_in(*TABLE, *VECTOR):
            _write_table(table, crs and with_one_unit(crs), target)
    return {
        "points": points.count,
        "noise_points": points.noise,
        "plane_points": sum(plane["point_count"] for plane in planes),
        "planes": planes,
        "device": used,
        "outputs": targets.names,
    }


def _require_room(cloud: PointSource) -> None:
    """Reject a file whose records have no room for the fields, or others of their names."""
    from spatialq.export.las_extra import lay_out
    from spatialq.io.las.source import open_las

    if are_las([cloud]):
        nothing = np.empty(0, np.int32), np.empty(0, np.float32)
        lay_out(open_las(cloud.path).header, fields_of(*nothing))


def _write_clouds(
    clouds: Sequence[PointSource],
    targets: Outputs,
    points: Points,
    of_points: dict[str, Array],
    colours: Bytes | None,
    tick: Progress,
    crs: str | None,
) -> None:
    """Write the points with their planes; with the colours of those, by plane, if given."""
    from spatialq.export.las import write_copy

    if not (wanted := las_outputs(clouds, targets)):
        return
    plane_id = points.by_position(of_points["plane_id"], np.int32, missing=0)
    distance = points.by_position(of_points["distance"], np.float32, missing=np.nan)
    for target, group in wanted:
        rows = points.rows_of(group)
        fields = fields_of(plane_id[rows], distance[rows])
        keep = None if points.keep is None else points.keep[rows]
        if colours is None and are_las(group):
            paths = [cloud.path for cloud in group]
            report = partial(tick, target)
            write_copy(paths, target, fields=fields, keep=keep, progress=report, crs=crs)
        else:
            added = {field.name: field.values for field in fields}
            if colours is not None:
                of_group = 257 * colours[plane_id[rows]].astype(np.uint16)
                channels = np.ascontiguousarray(of_group.T)
                added |= dict(zip(("red", "green", "blue"), channels, strict=True))
            write_with_columns(group, target, added, tick, crs=crs, keep=keep)


def _write_pictures(
    targets: Outputs,
    points: Points,
    of_points: dict[str, Array],
    planes: list[dict[str, Any]],
    name: str,
    up: str,
    crs: str | None,
) -> None:
    for target in targets.ending_in(*PICTURE):
        from spatialq.export.planes_picture import write_planes_picture
        from spatialq.io.crs import unit_name

        title, unit = f"Planes of {name}", unit_name(crs)
        write_planes_picture(target, points.xyz, of_points["plane_id"], planes, title, up, unit)


def _orientation(normal_up: Floats, tolerance: float) -> "NDArray[np.int8]":
    """Give the codes of `orientation` by the part of the normals that points up."""
    vertical, angle = np.abs(normal_up), np.radians(tolerance)
    codes = np.where(vertical >= np.cos(angle), 0, np.where(vertical <= np.sin(angle), 1, 2))
    return codes.astype(np.int8)


def fields_of(plane_id: Int32s, distance: Float32s) -> "list[Field]":
    """Give the fields of points in LAS files."""
    from spatialq.export.las_extra import Field

    return [
        Field("plane_id", plane_id, "plane of the point, 0: none", 0),
        Field("plane_distance", distance, "from it along its normal", np.nan),
    ]


def _write_table(table: "pa.Table", crs: str | None, target: Path) -> None:
    query = "SELECT * REPLACE (boundary::GEOMETRY AS boundary) FROM result"
    write_arrow(table, target, query, crs=crs)
