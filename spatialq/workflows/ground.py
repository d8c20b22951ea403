"""From a point cloud file to its ground: classified points, terrain grid, hillshade, table."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.frame import Frame
from spatialq.errors import files_read_by
from spatialq.export.atomic import together
from spatialq.functions.declaration import Parameters
from spatialq.io.clouds import are_las
from spatialq.io.source import LAS, Progress
from spatialq.runtime import budget, buffers
from spatialq.runtime.threads import chunks
from spatialq.workflows.cloud_files import (
    considered,
    las_outputs,
    open_clouds,
    write_with_columns,
)
from spatialq.workflows.cloud_points import (
    CLASS,
    Points,
    checked_bounds,
    read_points,
    warn_of_nothing,
)
from spatialq.workflows.lengths import with_numbers
from spatialq.workflows.outputs import (
    PICTURE,
    RASTER,
    TABLE,
    Outputs,
    frame_of,
    input_files,
    named,
    subject,
)
from spatialq.workflows.tables import write_arrow

if TYPE_CHECKING:
    from spatialq.export.raster import Raster
    from spatialq.functions.declaration import Device
    from spatialq.io.source import PointSource
    from spatialq.runtime.arrays import Array, Bools, Floats
    from spatialq.udfs.ground_surface import Options

COMMAND, GROUND_SURFACE = "ground", "ground_surface"
ENDINGS = (*LAS, *RASTER, *PICTURE, *TABLE)
UNCLASSIFIED, GROUND = 1, 2  # ASPRS classes
KEPT = (9, 17)  # water and bridge decks may look like ground, but who classified them knew better
IS_KEPT = np.isin(np.arange(256), KEPT)
"""By class."""


@together()
@files_read_by(COMMAND)
def write_ground(
    source: str | Path | Sequence[str | Path],
    outputs: str | Path | Sequence[str | Path],
    *,
    ground_only: bool = False,
    crs: str | None = None,
    override_crs: bool = False,
    to_crs: str | None = None,
    scale: float | Sequence[float] | None = None,
    offset: Sequence[float] | None = None,
    bounds: Sequence[float] | None = None,
    within: str | Path | None = None,
    point_resolution: float | str | None = None,
    device: str = "auto",
    memory: str | float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Classify the ground of a cloud and write the result.

    Noise (classes 7 and 18) is not considered and keeps its class; water (9) and bridge decks (17)
    keep theirs. All other points get class 2 where `classify_ground` finds ground; those that had
    class 2 and are not ground get class 1.

    Parameters
    ----------
    source : path or paths
        Point clouds in a projected CRS, or without a CRS in metres; or patterns of them, or
        folders: together one cloud, whose `point_id` runs on from file to file.
    outputs : path or paths
        By their endings: .las, .laz the points with their new classes, all else as it was; .tif
        the terrain (Cloud Optimized GeoTIFF); .png a picture of its hillshade and of the
        classified points; .parquet, .csv, .json, .xlsx the table that `classify_ground` gives. A
        folder that is there, or a text that ends in a slash: a .las or .laz file of the same name
        for each source.
    ground_only : bool
        Write only the ground points to .las and .laz.
    crs : str, optional
        Of a source that does not name one: PROJJSON, WKT, or a code such as EPSG:25832.
        All outputs have it.
    override_crs : bool
        Whether `crs` also takes the place of one that the source names.
    to_crs : str, optional
        CRS to reproject the points to before, such as 'EPSG:25832'; all outputs have it.
    scale : float, or three of float, optional
        Steps of x, y and z in .las and .laz, to which coordinates are rounded; by default those of
        the first source.
    offset : three of float, optional
        From where these steps are counted; by default as in the first source.
    bounds : four of float, optional
        xmin, ymin, xmax, ymax in the unit of x and y: only the points inside or on the border are
        considered and written.
    within : path, optional
        Polygons, in a file that `read_vector` reads: only the points in them are considered and
        written. Files whose extent, as their header tells it, none touches are not read.
    point_resolution : float or str, optional
        Spacing of points at which the nodes of an octree (COPC, EPT) are dense enough, in the unit
        of x and y or as a text such as '50cm': finer nodes are neither read nor written.
    device : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
    memory : str or float, optional
        Main memory to use, such as '2GB'; a number is in GiB. By default half of what is free.
        Larger arrays are in files beside the first output.
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
    from spatialq.execution.units import units_for
    from spatialq.functions.catalogue import catalogue
    from spatialq.functions.declaration import BOUNDS, COORDINATES, parameters_of
    from spatialq.udfs.ground_surface import TerrainOptions

    paths = input_files(COMMAND, source)
    targets = Outputs.of(COMMAND, outputs, ENDINGS)
    if not targets.names:
        message = f"{COMMAND}: outputs must name a file, got none"
        raise ValueError(message)
    tick = progress or (lambda *_: None)
    box = checked_bounds(COMMAND, bounds)
    clouds = open_clouds(source, paths, targets, ENDINGS)
    within_memory = budget.within(COMMAND, memory, targets.beside)
    # wrong options are rejected before the work is done
    own = {each.name for each in parameters_of(TerrainOptions)}
    classify = catalogue()["classify_ground"]
    known = own | {each.name for each in classify.parameters} - {BOUNDS, *COORDINATES}
    if unknown := sorted(set(options) - known):
        message = f"write_ground: no option {unknown[0]!r}; there is {', '.join(sorted(known))}"
        raise ValueError(message)
    clouds, crs = considered(
        COMMAND,
        clouds,
        crs,
        override=override_crs,
        to_crs=to_crs,
        resolution=point_resolution,
        within=within,
        scale=scale,
        offset=offset,
    )
    frame = frame_of(paths, crs, to_crs, is_announced=crs is None)  # `with_numbers` does it
    units = units_for(classify, classify.choose({}), frame)  # refuses degrees
    parameters = (*classify.parameters, *parameters_of(TerrainOptions))
    options = with_numbers(COMMAND, options, parameters, paths[0], crs)
    shape = {name: options.pop(name) for name in own & set(options)}
    surface = catalogue()[GROUND_SURFACE].choose({"source": "points", "thin": True} | shape)
    chosen = classify.choose(options)
    with within_memory:
        points = read_points(clouds, box, tick)
        if not points.xyz[0].size and targets.ending_in(*RASTER, *PICTURE):
            message = (
                f"{COMMAND}: a terrain needs points that are no noise, {subject(paths)} has none"
            )
            raise ValueError(message + (" in bounds" if box else ""))
        warn_of_nothing(COMMAND, clouds, box, points.count)
        found, used = _classify(points, chosen, device, frame)
        if targets.ending_in(*RASTER, *PICTURE):
            title = f"Ground of {named(paths)}"
            _write_maps(targets, points, found, surface, crs, units.up, device, title)
        ground_points = int(np.count_nonzero(found["is_ground"]))
        _write_clouds(clouds, targets, points, found["is_ground"], tick, crs, only=ground_only)
        for target in targets.ending_in(*TABLE):
            _write_table(found, target)
    return {
        "points": points.count,
        "ground_points": ground_points,
        "noise_points": points.noise,
        "device": used,
        "outputs": targets.names,
    }


def _classify(
    points: Points, options: Parameters, device: str, frame: Frame
) -> "tuple[dict[str, Array], Device]":
    """Give what `classify_ground` finds, but for points that keep their classes."""
    from spatialq.execution.call import call
    from spatialq.functions.catalogue import catalogue

    found, used = call(
        catalogue()["classify_ground"],
        dict(points.columns),
        options,
        device,
        transport="files",
        frame=frame,
    )
    for start, stop in chunks(points.point_id.size):
        is_kept = IS_KEPT[points.classes[points.point_id[start:stop]]]
        found["is_ground"][start:stop] &= ~is_kept
        found["margin"][start:stop][is_kept] = np.nan  # their class does not follow from a height
    return found, used


def _write_clouds(
    clouds: "Sequence[PointSource]",
    targets: Outputs,
    points: Points,
    is_ground: "Bools",
    tick: Progress,
    crs: str | None,
    *,
    only: bool,
) -> None:
    """Write the points with their new classes."""
    wanted = las_outputs(clouds, targets)
    if not wanted:
        return
    mark_ground(points, is_ground)
    keep = points.by_position(is_ground, np.bool_, missing=False) if only else points.keep
    for target, group in wanted:
        write_cloud(group, target, points, keep, tick, crs)


def mark_ground(points: Points, is_ground: "Bools") -> None:
    """Give points their new classes: ground, or none where they had been ground."""
    classes = points.classes
    for start, stop in chunks(classes.size):
        part = classes[start:stop]
        part[part == GROUND] = UNCLASSIFIED
    for start, stop in chunks(is_ground.size):
        classes[points.point_id[start:stop][is_ground[start:stop]]] = GROUND


def write_cloud(
    clouds: "Sequence[PointSource]",
    target: Path,
    points: Points,
    keep: "Bools | None",
    tick: Progress,
    crs: str | None,
) -> int:
    """Write neighbouring clouds to one LAS or LAZ file, with the classes that their points have.

    Parameters
    ----------
    clouds : sequence of PointSource
        Some of those that the points are of.
    target : Path
    points : Points
    keep : bool[], optional
        By position: the points to write; by default all.
    tick : callable
        Called with the target, rows so far and rows in all.
    crs : str, optional
        PROJJSON.

    Returns
    -------
    int
        Points written.

    Raises
    ------
    FileError
        If a source cannot be read, or the target cannot be written.
    """
    from spatialq.export.las import write_copy

    rows = points.rows_of(clouds)
    new, some = points.classes[rows], None if keep is None else keep[rows]
    if not are_las(clouds):
        return write_with_columns(clouds, target, {CLASS: new}, tick, crs=crs, keep=some)
    paths = [cloud.path for cloud in clouds]
    report = partial(tick, target)
    return write_copy(paths, target, classes=new, keep=some, progress=report, crs=crs)


def _write_maps(
    targets: Outputs,
    points: Points,
    found: "dict[str, Array]",
    surface: Any,
    crs: str | None,
    metres: float,
    device: str,
    title: str,
) -> None:
    """Write the terrain, and pictures of it; `metres` are in one unit of z."""
    from spatialq.export.ground_picture import write_ground_picture
    from spatialq.export.raster import write_terrain
    from spatialq.io.crs import unit_name

    terrain = _terrain(points, found, surface, crs, device)
    for target in targets.ending_in(*RASTER):
        write_terrain(target, terrain)
    for target in targets.ending_in(*PICTURE):
        write_ground_picture(
            target,
            terrain,
            points.xyz,
            found["is_ground"],
            found["margin"],
            points.noise,
            title,
            unit_name(crs),
            metres,
        )


def _terrain(
    points: Points,
    found: "dict[str, Array]",
    options: "Options",
    crs: str | None,
    device: str,
) -> "Raster":
    """Make the terrain of the ground points, as wide as the points that have a height."""
    columns = _selected(points, found["is_ground"])
    x_ends, y_ends = (_ends(values, found["height"]) for values in points.xyz[:2])
    return terrain_of(columns, (x_ends, y_ends), options, crs, device)


def terrain_of(
    columns: "dict[str, Array]",
    ends: tuple[tuple[float, float], tuple[float, float]],
    options: "Options",
    crs: str | None,
    device: str,
) -> "Raster":
    """Make a terrain grid.

    Parameters
    ----------
    columns : dict of float64[n]
        x, y and z of the ground points, in any order.
    ends : two of two floats
        The least and greatest x, and those of y, that the grid must cover.
    options : Options
        Of `ground_surface`.
    crs : str, optional
    device : str
    """
    from spatialq.execution.call import call
    from spatialq.export.raster import Raster, covering, from_cells
    from spatialq.functions.catalogue import catalogue

    arguments = {**columns, "point_id": None}
    cells, _ = call(catalogue()[GROUND_SURFACE], arguments, options, device)
    raster = Raster(np.full((1, 1), np.nan), 0.0, 0.0, options.resolution, crs)
    if cells["z"].size:
        raster = from_cells(cells["x"], cells["y"], cells["z"], crs)
    return covering(raster, *ends)


def _selected(points: Points, is_ground: "Bools") -> "dict[str, Array]":
    """Copy the ground points."""
    n = int(np.count_nonzero(is_ground))
    columns = {axis: buffers.empty(n) for axis in "xyz"}
    done = 0
    for start, stop in chunks(is_ground.size):
        rows = np.flatnonzero(is_ground[start:stop])
        for values, ground in zip(points.xyz, columns.values(), strict=True):
            ground[done : done + rows.size] = values[start:stop][rows]
        done += rows.size
    return columns


def _ends(values: "Floats", height: "Floats") -> tuple[float, float]:
    """Give the least and the greatest coordinate of points with a height, or of all if none has."""
    low, high = np.inf, -np.inf
    for start, stop in chunks(values.size):
        there = np.isfinite(np.ma.filled(height[start:stop], np.nan))
        low = float(values[start:stop].min(initial=low, where=there))
        high = float(values[start:stop].max(initial=high, where=there))
    return (low, high) if low <= high else (float(values.min()), float(values.max()))


def _write_table(found: "dict[str, Array]", target: Path) -> None:
    import pyarrow as pa

    columns = {name: pa.array(values, from_pandas=True) for name, values in found.items()}
    write_arrow(pa.table(columns), target)  # no value is NaN in a kernel, and NULL in a table
