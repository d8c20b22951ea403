"""From point cloud files to their levels of detail: the table of nodes, a picture."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.errors import FileWarning, files_read_by
from spatialq.export.atomic import together, until_all_appeared
from spatialq.export.kept import Kept, keeping
from spatialq.export.lod_writers import NODE_WRITERS, POINT_WRITERS
from spatialq.export.tiles.options import TileOptions
from spatialq.io.source import PointSource, Progress
from spatialq.runtime import budget
from spatialq.workflows.cloud_files import considered, open_clouds
from spatialq.workflows.cloud_points import checked_bounds, warn_of_nothing
from spatialq.workflows.lod_kept import KeptTiles
from spatialq.workflows.lod_nodes import CloudStatistics, open_writers, require_targets
from spatialq.workflows.lod_points import octree_of_table, write_points
from spatialq.workflows.lod_table import (
    Compact,
    TreeSummary,
    Write,
    metadata_of,
    node_writer,
    own_options,
)
from spatialq.workflows.lod_tree import Reading, TreeBuild
from spatialq.workflows.outputs import PARQUET, PICTURE, Outputs, frame_of, input_files, named

if TYPE_CHECKING:
    from spatialq.udfs.build_lod import Options
    from spatialq.udfs.build_lod.additive import Additive

COMMAND = "lod"
FUNCTION = "build_lod"
TABLE = (PARQUET,)
PACKED = ("x", "y", "z", "red", "green", "blue")
"""Columns of samples that a compact table has as bytes."""
ENDINGS = (*TABLE, *PICTURE, *POINT_WRITERS, *NODE_WRITERS)


@together()
@files_read_by(COMMAND)
def write_lod(
    source: str | Path | Sequence[str | Path],
    outputs: str | Path | Sequence[str | Path] = (),
    *,
    crs: str | None = None,
    override_crs: bool = False,
    to_crs: str | None = None,
    scale: float | Sequence[float] | None = None,
    offset: Sequence[float] | None = None,
    bounds: Sequence[float] | None = None,
    within: str | Path | None = None,
    resolution: float | str | None = None,
    device: str = "auto",
    memory: str | float | None = None,
    compact: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
    tiles: TileOptions | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Build the level-of-detail tree of a cloud, however large, and write it.

    Parameters
    ----------
    source : path or paths
        Point clouds, or patterns of them, or folders: together one cloud, whose `point_id` runs on
        from file to file as in a table that `load` made.
    outputs : path or paths
        By their endings: .parquet the table that `build_lod` gives, nodes of a level together,
        with the CRS (PROJJSON), the options, and what full red, green or blue is, 255 or 65535,
        as metadata `crs`, `build_lod` and `colour_range`; .png a picture of the cloud at three
        levels of detail; .copc.laz the points themselves as COPC, and metadata.json as Potree 2.0
        in a folder: each point once, with all its fields, in the coarsest node in which it
        represents a voxel; tileset.json the tree as 3D Tiles 1.1, with a folder of contents.
    crs : str, optional
        Of sources that do not name one: PROJJSON, WKT, or a code such as EPSG:25832.
    override_crs : bool
        Whether `crs` also takes the place of one that a source names.
    to_crs : str, optional
        CRS to reproject the points to before, such as 'EPSG:25832'; all outputs have it.
    scale : float, or three of float, optional
        Steps of x, y and z in .copc.laz, to which coordinates are rounded; by default those of
        the first source.
    offset : three of float, optional
        From where these steps are counted; by default as in the first source.
    bounds : four of float, optional
        xmin, ymin, xmax, ymax in the unit of x and y: only the points inside or on the border.
    within : path, optional
        Polygons, in a file that `read_vector` reads: only the points in them are considered and
        written. Files whose extent, as their header tells it, none touches are not read.
    resolution : float or str, optional
        Spacing of points at which the nodes of an octree (COPC, EPT) are dense enough, in the unit
        of x and y or as a text such as '50cm': finer nodes are not read.
    device : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
    memory : str or float, optional
        Main memory for points and nodes, such as '2GB'; a number is in GiB. By default half of what
        is free. A cloud that needs more goes through files beside the first output, of 82 bytes per
        point, and is built tile by tile: the same rows in another order, children before their
        parent; a picture is rejected.
    compact : bool
        Whether the table has positions and colours of the samples of a node as bytes in a column
        `packed`, which `lod_samples` decodes, and of `attributes` a list each; no other columns of
        samples.
    resume : bool
        Whether to go on with what an earlier run left that was killed, or that had resume, too, and
        ended with an error; the outputs are the same, byte for byte. If an input or option was
        changed since, the work starts over, with a warning.
    progress : callable, optional
        Called with file, rows so far and rows in all.
    tiles : TileOptions, optional
        How 3D Tiles are written, see `write_tiles`.
    **options
        Options of `build_lod`.

    Returns
    -------
    dict
        points, nodes, levels, leaves, inner_nodes, voxels, brightest (the greatest red, green or
        blue), device, seconds, outputs.

    Raises
    ------
    FileError
        If a source cannot be read, or an output not be written, or another process is writing it.
    CrsError
        If the sources are in different coordinate reference systems, or `crs` is not theirs.
    ValueError
        If an option or the ending of an output is wrong; or memory is not enough for a leaf, for
        the points that lie in one place, or for a picture.
    MemoryError
        If memory is not enough all the same.

    Warns
    -----
    CrsWarning
        If x and y are degrees, or heights have another unit than x and y, to which they are
        converted.
    FileWarning
        If no sample has a colour; if what an earlier run left cannot be used; and about each oddity
        of a file that is read all the same.
    """
    from spatialq.database.transport.cloud_columns import numbers_in
    from spatialq.execution.units import announce
    from spatialq.functions.catalogue import catalogue

    began = time.perf_counter()
    paths, targets = input_files(COMMAND, source), Outputs.of(COMMAND, outputs)
    box = checked_bounds(COMMAND, bounds)
    chosen = catalogue()[FUNCTION].choose(options)  # wrong options are rejected before the work
    clouds = open_clouds(source, paths, targets, ENDINGS)
    within_memory = budget.within(COMMAND, memory, targets.beside)
    require_targets(targets.paths)
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
    announce(catalogue()[FUNCTION], chosen, [frame])
    frame = replace(frame, is_announced=True)
    if compact and not targets.ending_in(*TABLE):
        message = f"{COMMAND}: compact needs an output that ends in .parquet, got {targets.names}"
        raise ValueError(message)
    more = numbers_in(COMMAND, clouds, chosen.more_columns)
    points = sum(cloud.rows for cloud in clouds)
    own = own_options(chosen, box)
    known = metadata_of(own, crs)
    points_to = targets.ending_in(*POINT_WRITERS)
    if targets.ending_in(*NODE_WRITERS):
        seen = CloudStatistics(COMMAND, known["crs"], chosen.values()["unit"])
    else:
        seen = None
    has_only_points = 0 < len(points_to) == len(targets.paths)
    with within_memory:
        room = _points_in(points, chosen)
        reading = Reading(clouds, box, progress, more=more)
        tree = TreeBuild(reading, chosen, frame, device, targets, room)
        made_of = _made_of(
            clouds,
            {
                **own,
                "crs": crs,
                "resolution": resolution,
                "within": within and [str(within), *_stamp(Path(within))],
                "compact": compact,
                "tiles": tiles and asdict(tiles),
            },
        )
        kept = _kept(targets.paths, made_of, resume=resume)
        if has_only_points and kept is not None:
            summary, used = write_points(tree, points_to, crs, kept)
        else:
            if points > room:
                _require_no_picture(targets, points, room, chosen)
            shared = octree_of_table(tree) if points_to else None
            nodes_kept = None if more else kept  # columns of attributes are not kept
            tiles_kept = None if nodes_kept is None else KeptTiles(nodes_kept, targets, seen)
            packing = _packing(clouds, chosen) if compact else None
            opened = partial(node_writer, known=known, more=more, compact=packing)
            streams = partial(_open_streams, targets, seen, tiles, nodes_kept)
            with replace(tree, seen=seen, kept=tiles_kept).tables() as (tables, device_used):
                name = named(paths)
                written = _write_tables(tables, targets, opened, name, shared, streams, tiles_kept)
                summary, used = written, device_used()
            if points_to and kept is not None:
                write_points(tree, points_to, crs, kept, shared)
    warn_of_nothing(COMMAND, clouds, box, summary.points)
    if summary.points and not summary.brightest and not has_only_points:
        has = "has" if len(paths) == 1 else "have"
        message = (
            f"{COMMAND}: {named(paths)} {has} no colours: red, green and blue of all samples are 0"
        )
        warnings.warn(message, FileWarning, stacklevel=2)
    return {
        **asdict(summary),
        "device": used,
        "seconds": time.perf_counter() - began,
        "outputs": targets.names,
    }


def _stamp(path: Path) -> tuple[int, int]:
    """Tell one state of a file from another."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _made_of(clouds: Sequence[PointSource], options: Mapping[str, Any]) -> dict[str, Any]:
    """Say what determines the outputs, by what to call it."""
    stamps = {f"'{cloud.path}'": cloud.stamp for cloud in clouds}
    return {
        "the version of spatialq": version("spatialq"),
        "the list of inputs": list(stamps),
        **stamps,
        "an option": options,
    }


def _kept(targets: Sequence[Path], made_of: Mapping[str, Any], *, resume: bool) -> Kept | None:
    """Hold what is kept of outputs until they appear; without outputs there is nothing."""
    if not targets:
        return None
    return until_all_appeared(keeping(COMMAND, targets, made_of, resume=resume))


def _open_streams(
    targets: Outputs,
    seen: CloudStatistics | None,
    tiles: TileOptions | None,
    kept: Kept | None,
    stack: ExitStack,
) -> list[Write]:
    """Open the outputs that have the nodes of the tree, when all points were seen."""
    return [] if seen is None else open_writers(targets.paths, seen.cloud(), stack, tiles, kept)


def _write_tables(
    tables: Iterator[Mapping[str, Any]],
    targets: Outputs,
    opened: Callable[..., AbstractContextManager[Write]],
    name: str,
    octree: "Additive | None",
    streams: Callable[[ExitStack], list[Write]],
    kept: KeptTiles | None,
) -> TreeSummary:
    """Write the nodes of a tree, some at a time, and say what there is in it."""
    summary = TreeSummary()
    with ExitStack() as stack:
        writers = [
            stack.enter_context(opened(target, summary=summary))
            for target in targets.ending_in(*TABLE)
        ]
        some = next(tables, None)
        writers += streams(stack)
        while some is not None:
            nodes, some = some, None
            one = TreeSummary()
            one.add(nodes)
            summary.include(one)
            if octree is not None:
                octree.add(nodes)
            for write in writers:
                write(nodes)
            _write_pictures(targets, nodes, name)
            if kept is not None:
                kept.written = one
            del nodes  # before the next are made
            some = next(tables, None)
        if kept is not None:
            summary.include(kept.before)
    return summary


def _packing(clouds: Sequence[PointSource], options: "Options") -> Compact:
    """Say how samples are packed: by the steps of the files."""
    from spatialq.udfs.build_lod import SAMPLE

    known = {name.lower(): name for name in SAMPLE}
    names = [known.get(name.lower(), name) for name in options.attributes or ()]
    layouts = dict.fromkeys(each.layout for each in clouds if each.layout is not None)
    return Compact(list(layouts), [name for name in names if name not in PACKED])


def _write_pictures(targets: Outputs, tree: Mapping[str, Any], name: str) -> None:
    if pictures := targets.ending_in(*PICTURE):
        from spatialq.export.lod_picture import write_lod_picture
        from spatialq.workflows.lod_table import arrow_table

        for target in pictures:
            write_lod_picture(target, arrow_table(tree), f"Levels of detail of {name}")


def _require_no_picture(targets: Outputs, points: int, room: int, options: "Options") -> None:
    """Reject a picture of a cloud that does not fit into memory."""
    from spatialq.udfs.build_lod.cost import bytes_host

    for target in targets.ending_in(*PICTURE):
        message = (
            f"{COMMAND}: output '{target}' needs the whole cloud in memory, "
            f"{points * bytes_host(options) / 2**30:.3g} GiB for {points} points, got "
            f"{room * bytes_host(options) / 2**30:.3g}"
        )
        raise ValueError(message)


def _points_in(points: int, options: "Options") -> int:
    """Give the number of points that memory is enough for, at most what a tree may have."""
    from spatialq.udfs.build_lod.cost import bytes_host
    from spatialq.udfs.build_lod.validation import MAX_POINTS

    memory = budget.current()
    leaf = min(options.max_points, points)
    needed: float = leaf * bytes_host(options)
    if memory < floor(needed):
        message = (
            f"{COMMAND}: memory must be enough for the {leaf} points of a leaf, "
            f">= {needed / 2**30:.3g} GiB, got {memory / 2**30:.3g}"
        )
        raise ValueError(message)
    room = max(leaf, int(memory / bytes_host(options)))
    return room if room < MAX_POINTS else int(MAX_POINTS)
