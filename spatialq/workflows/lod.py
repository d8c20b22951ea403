"""From point cloud files to their levels of detail: the table of nodes, a picture."""

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from spatialq.errors import FileWarning
from spatialq.functions.declaration import Parameter
from spatialq.io.source import Progress
from spatialq.planner import devices
from spatialq.workflows.cloud_files import open_clouds

COMMAND = "lod"
FUNCTION = "build_lod"
TABLE = (".parquet",)
PICTURE = (".png",)
ENDINGS = (*TABLE, *PICTURE)
MEMORY = Parameter("memory", float, None, "GiB for points and nodes.", above=0)
GROUP_SAMPLES = 1 << 18
"""Of a row group of the file: a viewer that wants a node reads no more than these."""


def write_lod(
    source: str | Path | Sequence[str | Path],
    outputs: str | Path | Sequence[str | Path] = (),
    *,
    crs: str | None = None,
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
        Of sources that do not say or say wrong: PROJJSON, WKT, or a code such as EPSG:25832.
    device : 'auto', 'cpu' or 'gpu'
    memory : float, optional
        GiB for points and nodes; by default half of the machine's. A cloud that needs more goes
        through files beside the first output, of 82 bytes a point, and is built tile by tile: the
        same rows in another order, children before their parent; a picture is refused.
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
        If the sources are in different coordinate reference systems.
    ValueError
        If an option or the ending of an output is wrong; or memory is not enough for a leaf, for
        the points that lie in one place, or for a picture.
    MemoryError
        If memory is not enough all the same.

    Warns
    -----
    FileWarning
        If x and y are degrees, or no sample has a colour; and about each oddity of a file that is
        read all the same.
    """
    import pyarrow as pa

    from spatialq.database.transport.arrow import structs
    from spatialq.database.transport.clouds import batches_of_clouds, read_clouds
    from spatialq.execution.call import call, planned
    from spatialq.functions.catalogue import catalogue
    from spatialq.io import crs as crs_text
    from spatialq.io.files import find_files, warn_about
    from spatialq.udfs.build_lod.cost import bytes_host
    from spatialq.udfs.build_lod.external_partitioning import rows_of

    began = time.perf_counter()
    sources = _paths("source", source)
    if not sources:
        message = f"{COMMAND}: source must be at least one file or pattern, got none"
        raise ValueError(message)
    paths = [path for each in sources for path in find_files(COMMAND, each)]
    targets = list(map(Path, _paths("outputs", outputs)))
    udf = catalogue()[FUNCTION]
    chosen = udf.choose(options)  # refused before the work is done
    clouds = open_clouds(COMMAND, paths, targets, ENDINGS)
    if crs is not None:
        crs = crs_text.from_argument(COMMAND, crs)
    else:
        crs = crs_text.require_same(COMMAND, ((cloud.path, cloud.crs) for cloud in clouds))
    for cloud in clouds:
        warn_about(COMMAND, cloud)
    if crs is not None and crs_text.is_geographic(crs):
        message = (
            f"{COMMAND}: '{paths[0]}' is in {crs_text.name(crs)}, whose x and y are degrees: "
            "voxels are no cubes in space; project it first, or give the right crs"
        )
        warnings.warn(message, FileWarning, stacklevel=2)
    points = sum(cloud.rows for cloud in clouds)
    enough_for = _points_in(memory, points, chosen)
    known = {"crs": crs, FUNCTION: json.dumps(chosen.values())}
    pictures = [target for target in targets if target.suffix.lower() in PICTURE]
    summary = _Summary()
    names = paths[0].name if len(paths) == 1 else f"{len(paths)} files"
    with ExitStack() as stack:
        if points <= enough_for:
            whole_tree, used = call(udf, read_clouds(udf, clouds, progress), chosen, device)
            tables: Iterable[Mapping[str, Any]] = [whole_tree]
            execution = None
            for target in pictures:
                from spatialq.export.lod_picture import write_lod_picture

                whole_table = pa.Table.from_struct_array(structs(udf, whole_tree))
                write_lod_picture(target, whole_table, f"Levels of detail of {names}")
        else:
            if pictures:
                message = (
                    f"{COMMAND}: output '{pictures[0]}' needs the whole cloud in memory, "
                    f"{points * bytes_host(chosen) / 2**30:.3g} GiB for {points} points, got "
                    f"{enough_for * bytes_host(chosen) / 2**30:.3g}"
                )
                raise ValueError(message)
            execution = stack.enter_context(planned(udf, points, chosen, device))
            beside = targets[0].resolve().parent if targets else None
            folder = stack.enter_context(TemporaryDirectory(prefix=f".{COMMAND}-", dir=beside))
            batches = batches_of_clouds(udf, clouds, progress)
            tables = _grouped(rows_of(batches, Path(folder), chosen, execution, enough_for))
        writers = [
            stack.enter_context(_table(target, known, summary))
            for target in targets
            if target.suffix.lower() in TABLE
        ]
        for nodes in tables:
            summary.add(nodes)
            for write in writers:
                write(nodes)
        if execution is not None:
            used = execution.device
    if points and not summary.brightest:
        message = f"{COMMAND}: {names} has no colours: red, green and blue of all samples are 0"
        warnings.warn(message, FileWarning, stacklevel=2)
    return {
        "points": points,
        **asdict(summary),
        "device": used,
        "seconds": time.perf_counter() - began,
        "outputs": [str(target) for target in targets],
    }


@dataclass
class _Summary:
    """What there is in all of a tree."""

    nodes: int = 0
    levels: int = 0
    leaves: int = 0
    inner_nodes: int = 0
    voxels: int = 0
    brightest: int = 0
    """Greatest red, green or blue."""

    @property
    def colour_range(self) -> int:
        """Give the value of full red, green or blue: files have 8 bits or 16 in the same fields."""
        return 255 if self.brightest <= 255 else 65535

    def add(self, nodes: Mapping[str, Any]) -> None:
        """Count some of its nodes."""
        leaves = nodes["is_leaf"]
        self.nodes += leaves.size
        self.levels = max(self.levels, int(nodes["level"].max(initial=-1)) + 1)
        self.leaves += int(np.count_nonzero(leaves))
        self.inner_nodes += int(np.count_nonzero(~leaves))
        self.voxels += int(nodes["count"][~leaves].sum())
        samples = nodes["samples"].columns
        brightest = (int(samples[name].max(initial=0)) for name in ("red", "green", "blue"))
        self.brightest = max(self.brightest, *brightest)


def _paths(name: str, given: Any) -> list[str | Path]:
    """Give the paths of an argument that may be one or several."""
    if isinstance(given, str | Path):
        return [given]
    if isinstance(given, Sequence) and all(isinstance(each, str | Path) for each in given):
        return list(given)
    message = f"{COMMAND}: {name} must be a path or a list of paths, got {given!r}"
    raise ValueError(message)


def _points_in(memory: float | None, points: int, options: Any) -> int:
    """Give for how many points memory is enough: all, or as many as a leaf and a tree may have."""
    from spatialq.udfs.build_lod.cost import bytes_host
    from spatialq.udfs.build_lod.validation import MAX_POINTS

    if memory is None:
        memory = devices.cpu().memory_bytes / 2**31 or inf  # 0: not known
    elif not MEMORY.fits(memory):
        message = f"{COMMAND}: memory must be a number of GiB, got {memory!r}"
        raise ValueError(message)
    leaf = min(options.max_points, points)
    least = leaf * bytes_host(options) / 2**30
    if not memory >= least:
        message = (
            f"{COMMAND}: memory must be enough for the {leaf} points of a leaf, "
            f">= {least:.3g} GiB, got {memory}"
        )
        raise ValueError(message)
    return int(min(memory * 2**30 / bytes_host(options), MAX_POINTS))


def _grouped(tables: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Put tables of few rows together, to a row group each."""
    from spatialq.udfs.build_lod.table import concatenate

    some, samples = [], 0
    for nodes in tables:
        some.append(nodes)
        samples += int(nodes["count"].sum())
        if samples >= GROUP_SAMPLES:
            yield concatenate(some)
            some, samples = [], 0
    if some:
        yield concatenate(some)


@contextmanager
def _table(
    target: Path, known: Mapping[str, str | None], summary: _Summary
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Write a file, some nodes at a time; what is known of all goes with it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from spatialq.database.transport.arrow import structs
    from spatialq.export.atomic import whole
    from spatialq.functions.catalogue import catalogue
    from spatialq.udfs.build_lod.table import no_rows

    udf = catalogue()[FUNCTION]
    schema = pa.Table.from_struct_array(structs(udf, no_rows())).schema
    schema = schema.with_metadata({name: text for name, text in known.items() if text})
    with (
        whole(target) as partial,
        pq.ParquetWriter(
            partial,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=False,  # few samples are alike
            write_statistics=[name for name in schema.names if name != "samples"],
        ) as writer,
    ):

        def write(nodes: Mapping[str, Any]) -> None:
            """Write row groups of few samples."""
            table = pa.Table.from_struct_array(structs(udf, nodes)).cast(schema)
            ends = np.cumsum(nodes["count"])
            first = 0
            while first < table.num_rows:
                before = ends[first - 1] if first else 0
                stop = max(first + 1, int(np.searchsorted(ends, before + GROUP_SAMPLES, "right")))
                writer.write_table(table.slice(first, stop - first))
                first = stop

        yield write
        writer.add_key_value_metadata({"colour_range": str(summary.colour_range)})
