"""From point cloud files to their levels of detail: the table of nodes, a picture."""

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.data.frame import Frame
from spatialq.errors import FileWarning
from spatialq.export.atomic import together
from spatialq.export.lod_writers import NODE_WRITERS, POINT_WRITERS
from spatialq.export.tiles.options import TileOptions
from spatialq.functions.declaration import COORDINATES, Parameter
from spatialq.io.crs import with_one_unit
from spatialq.io.source import Progress
from spatialq.planner import devices
from spatialq.runtime.temporary import temporary_folder
from spatialq.workflows.cloud_files import are_las, crs_of, open_clouds
from spatialq.workflows.lod_nodes import Seen, open_writers
from spatialq.workflows.lod_points import as_las, with_first_points, write_points
from spatialq.workflows.lod_table import TreeSummary, grouped, node_writer
from spatialq.workflows.outputs import PICTURE, Outputs, input_files

if TYPE_CHECKING:
    from spatialq.execution.call import Execution
    from spatialq.functions.declaration import Device
    from spatialq.io.source import PointSource
    from spatialq.udfs.build_lod.additive import Additive

COMMAND = "lod"
FUNCTION = "build_lod"
TABLE = (".parquet",)
ENDINGS = (*TABLE, *PICTURE, *POINT_WRITERS, *NODE_WRITERS)
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
    tiles: TileOptions | None = None,
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
        levels of detail; .copc.laz the points themselves as COPC, each once, with all their fields,
        in the coarsest node in which it represents a voxel; tileset.json a tileset of 3D Tiles 1.1,
        with a folder of its contents beside it.
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
    points_to = targets.ending_in(*POINT_WRITERS)
    nodes_to = targets.ending_in(*NODE_WRITERS)
    seen = Seen(COMMAND, known["crs"], chosen.values()["unit"]) if nodes_to else None
    build = _Build(clouds, chosen, frame, device, progress, targets, budget, seen)
    if points_to and len(points_to) == len(targets.paths):
        summary, used = _write_points(build, points_to, crs)
    else:
        shared = _shared(build) if points_to else None
        if points > budget:
            _require_no_picture(targets, points, budget, chosen)
        with build.tables() as (tables, device_used):
            summary = _write_tables(tables, build, known, name, shared, tiles)
            used = device_used()
        if points_to:
            _write_points(build, points_to, crs, shared)
    if summary.points and not summary.brightest:
        message = f"{COMMAND}: {name} has no colours: red, green and blue of all samples are 0"
        warnings.warn(message, FileWarning, stacklevel=2)
    return {
        **asdict(summary),
        "device": used,
        "seconds": time.perf_counter() - began,
        "outputs": targets.names,
    }


@dataclass(frozen=True)
class _Build:
    """How the tree of clouds is built: at once if they fit into memory, else tile by tile.

    Parameters
    ----------
    clouds : sequence of PointSource
    options : Parameters
    frame : Frame or None
        What is known of the coordinates; None to take all points as they are: stray ones, too, and
        z in its own unit.
    device : 'auto', 'cpu' or 'gpu'
    progress : callable or None
    targets : Outputs
        Temporary files go beside the first.
    budget : int
        Points that fit into memory.
    seen : Seen or None
        Is told all points before the first node is given.
    """

    clouds: "Sequence[PointSource]"
    options: Any
    frame: Frame | None
    device: str
    progress: Progress | None
    targets: Outputs
    budget: int
    seen: Seen | None

    @property
    def points(self) -> int:
        """Records of all clouds."""
        return sum(cloud.rows for cloud in self.clouds)

    @property
    def level(self) -> float:
        """Units of x and y in one unit of z."""
        from spatialq.execution.frames import units_for
        from spatialq.functions.catalogue import catalogue

        if self.frame is None:
            return 1.0
        return units_for(catalogue()[FUNCTION], self.options, self.frame).level

    @contextmanager
    def tables(self) -> "Iterator[tuple[Iterator[Mapping[str, Any]], Callable[[], Device]]]":
        """Give the nodes, some at a time; and, when all were taken, the device."""
        if self.points <= self.budget:
            tree, used = self._whole()
            if self.seen is not None:
                self.seen.add_leaves(tree)
            yield iter([tree]), lambda: used
            return
        with self._tiles() as (tables, execution):
            yield tables, lambda: execution.device

    def _whole(self) -> "tuple[dict[str, Any], Device]":
        """Build the tree of clouds that fit into memory."""
        from spatialq.database.transport.clouds import read_clouds
        from spatialq.execution.call import call, call_as_given
        from spatialq.functions.catalogue import catalogue

        function = catalogue()[FUNCTION]
        columns = read_clouds(function, self.clouds, self.progress)
        if self.frame is None:
            return call_as_given(function, columns, self.options, self.device, road="files")
        return call(function, columns, self.options, self.device, road="files", frame=self.frame)

    @contextmanager
    def _tiles(self) -> "Iterator[tuple[Iterator[Mapping[str, Any]], Execution]]":
        """Build a tree tile by tile, through files beside the first output."""
        from spatialq.database.transport.clouds import batches_of_clouds
        from spatialq.execution.call import planned
        from spatialq.functions.catalogue import catalogue
        from spatialq.functions.declaration import Size
        from spatialq.udfs.build_lod.external_partitioning import rows_of

        function, options = catalogue()[FUNCTION], self.options
        with (
            planned([function], Size(self.points), options, self.device, road="files") as execution,
            temporary_folder(f".{COMMAND}-", self.targets.beside) as folder,
        ):
            batches = self._batches(batches_of_clouds(function, self.clouds, self.progress))
            yield grouped(rows_of(batches, folder, options, execution, self.budget)), execution

    def _batches(self, read: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Give points with heights in the unit of x and y."""
        level = self.level
        for batch in read:
            points = {**batch, "z": batch["z"] * level}
            if self.seen is not None:
                self.seen.add(points)
            yield points


def _shared(build: _Build) -> "Additive | None":
    """Begin an additive octree of the nodes of a table, if their points are those of the files."""
    from spatialq.udfs.build_lod.additive import Additive

    if build.level == 1 and are_las(build.clouds):
        return Additive(build.points)
    return None


def _write_points(
    build: _Build, targets: Sequence[Path], crs: str | None, shared: "Additive | None" = None
) -> "tuple[TreeSummary, Device | None]":
    """Write the outputs that have the points themselves.

    Parameters
    ----------
    build : _Build
    targets : sequence of Path
    crs : str or None
    shared : Additive, optional
        The octree of nodes that were made already; it is made again if points are missing, such as
        stray ones.

    Returns
    -------
    TreeSummary, device
        Of the tree that was built here, if one was.
    """
    summary, used = TreeSummary(), None
    with as_las(COMMAND, build.clouds, build.targets, build.progress) as clouds:
        if shared is None or not shared.is_complete:
            options = with_first_points(build.options)
            plain = replace(build, clouds=clouds, options=options, frame=None, seen=None)
            shared, summary, used = _additive(plain)
        octree = shared.octree(build.options.grid_size)
        del shared
        write_points(targets, clouds, octree, crs, build.progress)
    return summary, used


def _additive(build: _Build) -> "tuple[Additive, TreeSummary, Device]":
    """Build a tree for its octree alone."""
    from spatialq.udfs.build_lod.additive import Additive

    collected, summary = Additive(build.points), TreeSummary()
    with build.tables() as (tables, device_used):
        for nodes in tables:
            summary.add(nodes)
            collected.add(nodes)
        return collected, summary, device_used()


def _write_tables(
    tables: Iterator[Mapping[str, Any]],
    build: _Build,
    known: Mapping[str, str | None],
    name: str,
    shared: "Additive | None",
    tiles: TileOptions | None,
) -> TreeSummary:
    """Write the nodes of a tree, some at a time, and say what there is in it."""
    summary, targets = TreeSummary(), build.targets
    with ExitStack() as stack:
        writers = [
            stack.enter_context(node_writer(target, known, summary))
            for target in targets.ending_in(*TABLE)
        ]
        first = next(tables)  # all points were seen by then
        if build.seen is not None:
            writers += open_writers(targets.paths, build.seen.cloud(), stack, tiles)
        for nodes in chain([first], tables):
            summary.add(nodes)
            if shared is not None:
                shared.add(nodes)
            for write in writers:
                write(nodes)
            _write_pictures(targets, nodes, name)
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
