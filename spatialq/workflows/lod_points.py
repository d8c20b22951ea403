"""The outputs of `write_lod` that have the points themselves: COPC, Potree."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from spatialq.io.source import LAS, PointSource, Progress
from spatialq.runtime.temporary import temporary_folder
from spatialq.workflows.cloud_files import is_las, write_with_columns
from spatialq.workflows.outputs import Outputs


def beside(targets: Outputs) -> Path | None:
    """Give the folder of the first output, or the one above it where it is not made yet."""
    if not targets.paths:
        return None
    folder = targets.paths[0].resolve().parent
    return folder if folder.is_dir() else folder.parent


def with_first_points(options: Any) -> Any:
    """Choose colours that cost nothing, where nobody sees them: voxels have the same points."""
    return options if options.strategy == "random" else replace(options, strategy="first")


@contextmanager
def as_las(
    command: str, clouds: Sequence[PointSource], targets: Outputs, progress: Progress | None
) -> Iterator[list[Any]]:
    """Give clouds as LAS files, of which point records are made; others are copied to such first.

    Within the block there are temporary files beside the first output for those.
    """
    from spatialq.io.las.source import LasSource

    if all(map(is_las, clouds)):
        yield list(clouds)
        return
    with temporary_folder(f".{command}-", beside(targets)) as folder:
        found: list[Any] = []
        for number, cloud in enumerate(clouds):
            if is_las(cloud):
                found.append(cloud)
                continue
            copy = folder / f"{number}{LAS[0]}"
            write_with_columns(cloud, copy, {}, progress, crs=cloud.crs)
            found.append(LasSource(copy))
        yield found


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
    from spatialq.export.additive_points import gather, layout_of
    from spatialq.export.atomic import has_ending
    from spatialq.export.lod_writers import POINT_WRITERS

    layout = layout_of(targets[0], clouds)
    points = gather(targets[0], clouds, octree, layout, progress)
    for target in targets:
        (write,) = (each for end, each in POINT_WRITERS.items() if has_ending(target, end))
        write(target, points, crs, progress)
