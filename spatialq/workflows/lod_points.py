"""The outputs of `write_lod` that have the points themselves: COPC, Potree."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from spatialq.io.source import LAS, PointSource, Progress
from spatialq.runtime.temporary import temporary_folder
from spatialq.workflows.cloud_files import are_las, write_with_columns
from spatialq.workflows.outputs import Outputs


def with_first_points(options: Any) -> Any:
    """Choose colours that cost nothing, where nobody sees them: voxels have the same points."""
    return options if options.strategy == "random" else replace(options, strategy="first")


@contextmanager
def as_las(
    command: str, clouds: Sequence[PointSource], targets: Outputs, progress: Progress | None
) -> Iterator[list[Any]]:
    """Give clouds as LAS files, whose records are copied; of others a copy in one such file.

    The copy is beside the first output, within the block.
    """
    from spatialq.io.las.source import LasSource

    if are_las(clouds):
        yield list(clouds)
        return
    with temporary_folder(f".{command}-", targets.beside) as folder:
        copy = folder / f"points{LAS[0]}"
        write_with_columns(clouds, copy, {}, progress, crs=clouds[0].crs)
        yield [LasSource(copy)]


def write_points(
    targets: Sequence[Path],
    clouds: Sequence[Any],
    octree: Any,
    crs: str | None,
    progress: Progress | None,
) -> None:
    """Write the points of LAS files in the order of an octree.

    Raises
    ------
    FileError
        If a file cannot be read or written.
    """
    from spatialq.export.additive_points import gather
    from spatialq.export.atomic import has_ending
    from spatialq.export.las_join import join
    from spatialq.export.lod_writers import POINT_WRITERS

    points = gather(targets[0], join(clouds, targets[0]), octree, progress)
    for target in targets:
        (write,) = (each for end, each in POINT_WRITERS.items() if has_ending(target, end))
        write(target, points, crs, progress)
