"""The outputs of `write_lod` that have the points themselves: COPC, Potree.

What takes long is kept for a run that resumes: the copy of the records, the octree, and of each
output the nodes that are written.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.octree import Octree
from spatialq.io.clouds import are_las
from spatialq.io.source import LAS, PointSource
from spatialq.runtime import buffers
from spatialq.workflows.cloud_files import are_whole, write_with_columns
from spatialq.workflows.lod_table import TreeSummary
from spatialq.workflows.lod_tree import FUNCTION, TreeBuild

if TYPE_CHECKING:
    from spatialq.execution.call import Execution
    from spatialq.export.additive_points import CopiedRecords
    from spatialq.export.kept import Kept
    from spatialq.export.las_join import Joined
    from spatialq.functions.declaration import Device
    from spatialq.udfs.build_lod import Options
    from spatialq.udfs.build_lod.additive import Additive

RECORDS, OCTREE = "records", "octree"
"""What is kept."""
TILES = "tiles"
"""Files of points while the octree is built."""


def octree_of_table(tree: TreeBuild) -> "Additive | None":
    """Begin an octree of the nodes of a table, if their points are just those of the files."""
    from spatialq.udfs.build_lod.additive import Additive

    reading = tree.reading
    if reading.bounds is None and tree.level == 1 and _are_whole_las(reading.clouds):
        return Additive(reading.points)
    return None


def write_points(
    tree: TreeBuild,
    targets: Sequence[Path],
    crs: str | None,
    kept: "Kept",
    octree: "Additive | None" = None,
) -> "tuple[TreeSummary, Device | None]":
    """Write the outputs that have the points themselves.

    Parameters
    ----------
    tree : TreeBuild
    targets : sequence of Path
    crs : str or None
    kept : Kept
        What was done before, and where more is kept.
    octree : Additive, optional
        That of nodes which were made already; it is made again if points are missing, such as stray
        ones.

    Returns
    -------
    TreeSummary, device
        Of the tree that was built here, if one was.

    Raises
    ------
    FileError
        If a file cannot be read or written.
    """
    from spatialq.export.atomic import has_ending
    from spatialq.export.las_join import join
    from spatialq.export.lod_writers import POINT_WRITERS

    reading = tree.reading
    source = join(_as_las(tree, kept), targets[0])
    records = _copied(tree, source, targets[0], kept)
    if octree is not None and octree.has(records.rows):
        found = octree.octree(tree.options.grid_size, records.rows)
        summary, used = TreeSummary(), None
    else:
        found, summary, used = _octree(tree, records, kept)
    del octree
    with records.in_order(found) as points:
        for target in targets:
            (write,) = (each for end, each in POINT_WRITERS.items() if has_ending(target, end))
            write(target, points, crs, reading.progress, kept.output(target))
    return summary, used


def _are_whole_las(clouds: Sequence[PointSource]) -> bool:
    """Whether all records of files can be copied."""
    return are_las(clouds) and are_whole(clouds)


def _as_las(tree: TreeBuild, kept: "Kept") -> list[Any]:
    """Give clouds as LAS files, whose records are copied; of others a copy in one such file."""
    from spatialq.export.atomic import apart
    from spatialq.io.las.source import LasSource

    clouds = tree.reading.clouds
    if _are_whole_las(clouds):
        return list(clouds)
    copy = kept.path(f"points{LAS[0]}")
    if not copy.exists():
        with apart():
            write_with_columns(clouds, copy, {}, tree.reading.progress, crs=clouds[0].crs)
    return [LasSource(copy)]


def _copied(tree: TreeBuild, source: "Joined", target: Path, kept: "Kept") -> "CopiedRecords":
    """Copy the records of the points, unless the copy is there."""
    from spatialq.export.additive_points import CopiedRecords, copy_records

    path, known = kept.path(RECORDS), kept.load(RECORDS)
    if known is not None:
        return CopiedRecords(source, path, **known)
    reading = tree.reading
    found = copy_records(target, source, path, reading.bounds, reading.progress)
    kept.save(RECORDS, {"counts": found.counts, "brightest": found.brightest})
    return found


def _octree(
    tree: TreeBuild, records: "CopiedRecords", kept: "Kept"
) -> "tuple[Octree, TreeSummary, Device]":
    """Build the octree of points as they are, unless it is there."""
    known, arrays = kept.load(OCTREE), kept.load_arrays(OCTREE)
    if known is not None and arrays is not None:
        low, size, spacing = known["low"], known["size"], known["spacing"]
        octree = Octree(tuple(low), size, spacing, known["names"], **arrays)
        return octree, TreeSummary(**known["summary"]), known["device"]
    octree, summary, used = _built(tree, records, kept)
    kept.save_arrays(OCTREE, {"first": octree.first, "order": octree.order})
    plain = {name: getattr(octree, name) for name in ("low", "size", "spacing", "names")}
    kept.save(OCTREE, {**plain, "summary": asdict(summary), "device": used})
    return octree, summary, used


def _built(
    tree: TreeBuild, records: "CopiedRecords", kept: "Kept"
) -> "tuple[Octree, TreeSummary, Device]":
    from spatialq.execution.call import planned, stoppable
    from spatialq.functions.catalogue import catalogue
    from spatialq.functions.declaration import Size
    from spatialq.runtime.progress import Task, current, observer, running
    from spatialq.udfs.build_lod.additive import Additive

    n, options = records.rows, _with_first_points(tree.options)
    collected, summary = Additive(n), TreeSummary(brightest=records.brightest)

    def collect() -> None:
        for nodes in _tables(tree, records, kept, options, execution):
            summary.add(nodes)
            collected.add(nodes)

    plan = planned([catalogue()[FUNCTION]], Size(n), options, tree.device, transport="files")
    with running(current() or Task(observer())), plan as execution:
        stoppable(collect)
    return collected.octree(options.grid_size, n), summary, execution.device


def _tables(
    tree: TreeBuild,
    records: "CopiedRecords",
    kept: "Kept",
    options: "Options",
    execution: "Execution",
) -> Iterator[Mapping[str, Any]]:
    """Give the nodes, with the numbers of points as samples; at once if the points fit."""
    from spatialq.udfs.build_lod.external_partitioning import rows_in_memory, rows_of
    from spatialq.udfs.build_lod.validation import validate

    n = records.rows
    if n <= tree.room:
        xyz = [buffers.empty(n) for _ in "xyz"]
        for first, part in records.coordinates():
            for values, axis in zip(part, xyz, strict=True):
                axis[first : first + values.size] = values
        cloud = validate(*xyz, *[None] * 6)
        yield from rows_in_memory(cloud, options, execution, n, only_ids=True)
        return
    folder = kept.empty_folder(TILES)
    batches = map(_batch, records.coordinates())
    yield from rows_of(batches, folder, options, execution, tree.room, only_ids=True)


def _batch(part: "tuple[int, list[Any]]") -> dict[str, Any]:
    """Give points as `build_lod` takes them, without attributes."""
    from spatialq.udfs.build_lod import CHANNELS

    first, (x, y, z) = part
    ids = np.arange(first, first + x.size)
    return {"x": x, "y": y, "z": z, "point_id": ids, **dict.fromkeys((*CHANNELS, "classification"))}


def _with_first_points(options: "Options") -> "Options":
    """Choose colours that cost nothing, where nobody sees them: voxels have the same points."""
    return options if options.strategy == "random" else replace(options, strategy="first")
