"""From point cloud files to their levels of detail: the table of nodes, a picture."""

import json
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.frame import Frame
from spatialq.errors import FileWarning
from spatialq.export.atomic import together
from spatialq.export.lod_writers import (
    WRITERS,
    Cloud,
    is_written_by_nodes,
    require_target,
    writer_of,
)
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
MOST_OF_8_BITS = 255
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
        levels of detail; tileset.json a tileset of 3D Tiles 1.1, with a folder of its contents.
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
    streams = [path for path in targets.paths if is_written_by_nodes(path)]
    chosen = catalogue()[FUNCTION].choose(options)  # wrong options are rejected before the work
    files = Outputs(COMMAND, [path for path in targets.paths if path not in streams])
    clouds = open_clouds(paths, files, (*ENDINGS, *WRITERS))
    for path in streams:
        require_target(path)
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
    seen = Seen(crs=known["crs"], metres=chosen.values()["unit"])
    if points <= budget:
        tree, used = _whole_tree(clouds, chosen, frame, device, progress)
        _write_pictures(targets, tree, name)
        seen.add_leaves(tree)
        summary = _write_tables([tree], targets, known, seen)
    else:
        _require_no_picture(targets, points, budget, chosen)
        with _tiles(clouds, chosen, frame, device, progress, targets, budget, seen) as (
            tables,
            execution,
        ):
            summary = _write_tables(tables, targets, known, seen)
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
    seen: "Seen",
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
    beside = _existing(targets.paths[0].resolve().parent) if targets.paths else None
    with (
        planned([function], Size(points), options, device, road="files") as execution,
        temporary_folder(f".{COMMAND}-", beside) as folder,
    ):
        level = units_for(function, options, frame).level
        batches = (
            seen.add({**batch, "z": batch["z"] * level})
            for batch in batches_of_clouds(function, clouds, progress)
        )
        yield grouped(rows_of(batches, folder, options, execution, budget)), execution


def _existing(folder: Path) -> Path:
    """Give a folder, or the nearest above it that is there."""
    return next(each for each in (folder, *folder.parents) if each.is_dir())


@dataclass
class Seen:
    """What writers of nodes are told before the first of them: gathered from all points.

    Parameters
    ----------
    crs : str, optional
        PROJJSON.
    metres : float, optional
        In a unit of the cloud, where that was given.
    """

    crs: str | None
    metres: float | None
    points: int = 0
    brightest: int = 0
    low: Any = field(default_factory=lambda: np.full(3, np.inf))
    high: Any = field(default_factory=lambda: np.full(3, -np.inf))

    def add(self, batch: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take note of points, and give them back."""
        from spatialq.udfs.build_lod.colours import colours

        n = len(batch["x"])
        self._add_points(batch)
        if self.brightest <= MOST_OF_8_BITS:
            channels = (batch[name] for name in ("red", "green", "blue", "intensity"))
            self.brightest = max(self.brightest, int(colours(*channels, n)[:, :3].max(initial=0)))
        return batch

    def add_leaves(self, tree: Mapping[str, Any]) -> None:
        """Take note of the points of a tree."""
        offsets, samples = tree["samples"].offsets, tree["samples"].columns
        for k in np.flatnonzero(tree["is_leaf"]):
            span = slice(offsets[k], offsets[k + 1])
            leaf = {name: column[span] for name, column in samples.items()}
            self._add_points(leaf)
            most = (int(leaf[name].max(initial=0)) for name in ("red", "green", "blue"))
            self.brightest = max(self.brightest, *most)

    def _add_points(self, points: Mapping[str, Any]) -> None:
        self.points += len(points["x"])
        for k, axis in enumerate("xyz"):
            self.low[k] = min(self.low[k], points[axis].min(initial=inf))
            self.high[k] = max(self.high[k], points[axis].max(initial=-inf))

    def cloud(self) -> Cloud:
        """Say it as writers want it."""
        box = (*self.low.tolist(), *self.high.tolist())
        return Cloud(COMMAND, self.points, box, self.crs, self.metres, self.brightest)


def _write_tables(
    tables: Iterable[Mapping[str, Any]],
    targets: Outputs,
    known: Mapping[str, str | None],
    seen: Seen,
) -> TreeSummary:
    """Write the nodes of a tree, some at a time, and say what there is in it."""
    summary = TreeSummary()
    tables = iter(tables)
    with ExitStack() as stack:
        writers = [
            stack.enter_context(node_writer(target, known, summary))
            for target in targets.ending_in(*TABLE)
        ]
        first = next(tables)  # by then all points were seen
        writers += [
            stack.enter_context(writer_of(target)(target, seen.cloud()))
            for target in targets.paths
            if is_written_by_nodes(target)
        ]
        for nodes in chain([first], tables):
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
