"""The outputs of `write_lod` that have the points themselves: COPC, Potree."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.io.source import LAS
from spatialq.runtime.temporary import temporary_folder
from spatialq.workflows.cloud_files import are_las, are_whole, write_with_columns
from spatialq.workflows.lod_table import TreeSummary
from spatialq.workflows.lod_tree import Reading, TreeBuild

if TYPE_CHECKING:
    from spatialq.functions.declaration import Device
    from spatialq.io.source import PointSource
    from spatialq.udfs.build_lod.additive import Additive


def octree_of_table(tree: TreeBuild) -> "Additive | None":
    """Begin an octree of the nodes of a table, if their points are just those of the files."""
    from spatialq.udfs.build_lod.additive import Additive

    reading = tree.reading
    if reading.bounds is None and tree.level == 1 and _are_whole_las(reading.clouds):
        return Additive(reading.points)
    return None


def write_points(
    tree: TreeBuild, targets: Sequence[Path], crs: str | None, octree: "Additive | None" = None
) -> "tuple[TreeSummary, Device | None]":
    """Write the outputs that have the points themselves.

    Parameters
    ----------
    tree : TreeBuild
    targets : sequence of Path
    crs : str or None
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
    from spatialq.export.additive_points import gather
    from spatialq.export.atomic import has_ending
    from spatialq.export.las_join import join
    from spatialq.export.lod_writers import POINT_WRITERS

    reading, inside = tree.reading, None
    summary, used = TreeSummary(), None
    with _as_las(tree) as clouds:
        source = join(clouds, targets[0])
        if octree is None or not octree.has(reading.points):
            inside = np.empty(source.rows, np.bool_)
            again = Reading(clouds, reading.bounds, reading.progress, inside)
            options = _with_first_points(tree.options)
            plain = replace(tree, reading=again, options=options, frame=None)
            octree, summary, used = _octree(plain)
            found = octree.octree(options.grid_size, summary.points)
        else:
            found = octree.octree(tree.options.grid_size, reading.points)
        del octree
        points = gather(targets[0], source, found, inside, reading.progress)
        for target in targets:
            (write,) = (each for end, each in POINT_WRITERS.items() if has_ending(target, end))
            write(target, points, crs, reading.progress)
    return summary, used


def _with_first_points(options: Any) -> Any:
    """Choose colours that cost nothing, where nobody sees them: voxels have the same points."""
    return options if options.strategy == "random" else replace(options, strategy="first")


def _octree(tree: TreeBuild) -> "tuple[Additive, TreeSummary, Device]":
    """Build a tree for its octree alone."""
    from spatialq.udfs.build_lod.additive import Additive

    collected, summary = Additive(tree.reading.points), TreeSummary()
    with tree.tables() as (tables, device_used):
        for nodes in tables:
            summary.add(nodes)
            collected.add(nodes)
        return collected, summary, device_used()


def _are_whole_las(clouds: "Sequence[PointSource]") -> bool:
    """Whether all records of files can be copied."""
    return are_las(clouds) and are_whole(clouds)


@contextmanager
def _as_las(tree: TreeBuild) -> Iterator[list[Any]]:
    """Give clouds as LAS files, whose records are copied; of others a copy in one such file.

    The copy is beside the first output, within the block.
    """
    from spatialq.export.atomic import apart
    from spatialq.io.las.source import LasSource

    clouds = tree.reading.clouds
    if _are_whole_las(clouds):
        yield list(clouds)
        return
    with temporary_folder(".lod-", tree.targets.beside) as folder:
        copy = folder / f"points{LAS[0]}"
        with apart():
            write_with_columns(clouds, copy, {}, tree.reading.progress, crs=clouds[0].crs)
        yield [LasSource(copy)]
