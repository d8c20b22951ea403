"""From point cloud files to their levels of detail: the table of nodes, a picture."""

import json
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.data.frame import Frame
from spatialq.errors import FileWarning
from spatialq.export.atomic import together
from spatialq.functions.declaration import COORDINATES, Parameter
from spatialq.io.crs import with_one_unit
from spatialq.io.source import Progress
from spatialq.planner import devices
from spatialq.runtime.temporary import temporary_folder
from spatialq.workflows.cloud_files import crs_of, open_clouds
from spatialq.workflows.lod_table import TreeSummary, grouped, node_writer
from spatialq.workflows.outputs import PICTURE, Outputs, input_files

if TYPE_CHECKING:
    from spatialq.execution.call import Execution
    from spatialq.functions.declaration import Device
    from spatialq.io.source import PointSource

COMMAND = "lod"
FUNCTION = "build_lod"
TABLE = (".parquet",)
ENDINGS = (*TABLE, *PICTURE)
MEMORY = Parameter("memory", float, None, "GiB for points and nodes.", above=0)


@together()
def write_lod(
    source: str | Path | Sequence[str | Path],
    outputs: str | Path | Sequence[str | Path] = (),
    *,
    crs: str | None = None,
    override_crs: bool = False,
    device: str = "auto",
    memory: float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Build the level-of-detail tree of a cloud, however large, and write it.

    Parameters
    ----------
    source : path or paths
        LAS, LAZ or COPC files, or patterns of them: together one cloud, whose `point_id` runs on
        from file to file as in a table that `load` made.
    outputs : path or paths
        By their endings: .parquet the table that `build_lod` gives, nodes of a level together,
        with the CRS (PROJJSON), the options, and what full red, green or blue is, 255 or 65535,
        as metadata `crs`, `build_lod` and `colour_range`; .png a picture of the cloud at three
        levels of detail.
    crs : str, optional
        Of sources that do not name one: PROJJSON, WKT, or a code such as EPSG:25832.
    override_crs : bool
        Whether `crs` also takes the place of one that a source names.
    device : 'auto', 'cpu' or 'gpu'
    memory : float, optional
        GiB for points and nodes; by default half of the machine's. A cloud that needs more goes
        through files beside the first output, of 82 bytes per point, and is built tile by tile: the
        same rows in another order, children before their parent; a picture is rejected.
    progress : callable, optional
        Called with file, rows so far and rows in all.
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
        If a source cannot be read, or an output not be written.
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
        If no sample has a colour; and about each oddity of a file that is read all the same.
    """
    from spatialq.execution.frames import announce
    from spatialq.functions.catalogue import catalogue

    began = time.perf_counter()
    paths, targets = input_files(COMMAND, source), Outputs.of(COMMAND, outputs)
    chosen = catalogue()[FUNCTION].choose(options)  # wrong options are rejected before the work
    clouds = open_clouds(paths, targets, ENDINGS)
    crs = crs_of(COMMAND, clouds, crs, override=override_crs)
    frame = Frame(f"'{paths[0]}'" if len(paths) == 1 else f"{len(paths)} files", crs)
    announce(catalogue()[FUNCTION], chosen, [frame])
    frame = replace(frame, is_announced=True)
    points = sum(cloud.rows for cloud in clouds)
    budget = _points_in(memory, points, chosen)
    own = {name: value for name, value in chosen.values().items() if name not in COORDINATES}
    known = {
        "crs": None if crs is None else with_one_unit(crs),
        FUNCTION: json.dumps(own),
    }
    name = paths[0].name if len(paths) == 1 else f"{len(paths)} files"
    if points <= budget:
        tree, used = _whole_tree(clouds, chosen, frame, device, progress)
        _write_pictures(targets, tree, name)
        summary = _write_tables([tree], targets, known)
    else:
        _require_no_picture(targets, points, budget, chosen)
        with _tiles(clouds, chosen, frame, device, progress, targets, budget) as (
            tables,
            execution,
        ):
            summary = _write_tables(tables, targets, known)
        used = execution.device
    if summary.points and not summary.brightest:
        message = f"{COMMAND}: {name} has no colours: red, green and blue of all samples are 0"
        warnings.warn(message, FileWarning, stacklevel=2)
    return {
        **asdict(summary),
        "device": used,
        "seconds": time.perf_counter() - began,
        "outputs": targets.names,
    }


def _whole_tree(
    clouds: "Sequence[PointSource]",
    options: Any,
    frame: Frame,
    device: str,
    progress: Progress | None,
) -> "tuple[dict[str, Any], Device]":
    """Build the tree of clouds that fit into memory."""
    from spatialq.database.transport.clouds import read_clouds
    from spatialq.execution.call import call
    from spatialq.functions.catalogue import catalogue

    function = catalogue()[FUNCTION]
    columns = read_clouds(function, clouds, progress)
    return call(function, columns, options, device, road="files", frame=frame)


@contextmanager
def _tiles(
    clouds: "Sequence[PointSource]",
    options: Any,
    frame: Frame,
    device: str,
    progress: Progress | None,
    targets: Outputs,
    budget: int,
) -> "Iterator[tuple[Iterator[Mapping[str, Any]], Execution]]":
    """Build a tree tile by tile, through files beside the first output."""
    from spatialq.database.transport.clouds import batches_of_clouds
    from spatialq.execution.call import planned
    from spatialq.execution.frames import units_for
    from spatialq.functions.catalogue import catalogue
    from spatialq.functions.declaration import Size
    from spatialq.udfs.build_lod.external_partitioning import rows_of

    function = catalogue()[FUNCTION]
    points = sum(cloud.rows for cloud in clouds)
    beside = targets.paths[0].resolve().parent if targets.paths else None
    with (
        planned([function], Size(points), options, device, road="files") as execution,
        temporary_folder(f".{COMMAND}-", beside) as folder,
    ):
        level = units_for(function, options, frame).level
        batches = (
            {**batch, "z": batch["z"] * level}
            for batch in batches_of_clouds(function, clouds, progress)
        )
        yield grouped(rows_of(batches, folder, options, execution, budget)), execution


def _write_tables(
    tables: Iterable[Mapping[str, Any]], targets: Outputs, known: Mapping[str, str | None]
) -> TreeSummary:
    """Write the nodes of a tree, some at a time, and say what there is in it."""
    summary = TreeSummary()
    with ExitStack() as stack:
        writers = [
            stack.enter_context(node_writer(target, known, summary))
            for target in targets.ending_in(*TABLE)
        ]
        for nodes in tables:
            summary.add(nodes)
            for write in writers:
                write(nodes)
    return summary


def _write_pictures(targets: Outputs, tree: Mapping[str, Any], name: str) -> None:
    if pictures := targets.ending_in(*PICTURE):
        from spatialq.export.lod_picture import write_lod_picture
        from spatialq.workflows.lod_table import arrow_table

        for target in pictures:
            write_lod_picture(target, arrow_table(tree), f"Levels of detail of {name}")


def _require_no_picture(targets: Outputs, points: int, budget: int, options: Any) -> None:
    """Reject a picture of a cloud that does not fit into memory."""
    from spatialq.udfs.build_lod.cost import bytes_host

    for target in targets.ending_in(*PICTURE):
        message = (
            f"{COMMAND}: output '{target}' needs the whole cloud in memory, "
            f"{points * bytes_host(options) / 2**30:.3g} GiB for {points} points, got "
            f"{budget * bytes_host(options) / 2**30:.3g}"
        )
        raise ValueError(message)


def _points_in(memory: float | None, points: int, options: Any) -> int:
    """Give the number of points that memory is enough for, at most what a tree may have."""
    from spatialq.udfs.build_lod.cost import bytes_host
    from spatialq.udfs.build_lod.validation import MAX_POINTS

    if memory is None:
        memory = devices.cpu().memory_bytes / 2**31 or inf  # 0: not known
    elif not MEMORY.fits(memory):
        message = f"{COMMAND}: memory must be a number of GiB, got {memory!r}"
        raise ValueError(message)
    leaf = min(options.max_points, points)
    needed = leaf * bytes_host(options) / 2**30
    if not memory >= needed:
        message = (
            f"{COMMAND}: memory must be enough for the {leaf} points of a leaf, "
            f">= {needed:.3g} GiB, got {memory}"
        )
        raise ValueError(message)
    return int(min(memory * 2**30 / bytes_host(options), MAX_POINTS))
