"""From point cloud files to one whose noise is classified or left out, or that is thinned."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.errors import files_read_by
from spatialq.export.atomic import together
from spatialq.io.source import LAS, Progress
from spatialq.runtime import budget, buffers
from spatialq.runtime.arrays import Array, Bools
from spatialq.runtime.threads import chunks
from spatialq.workflows.cloud_files import considered, las_outputs, open_clouds
from spatialq.workflows.cloud_points import IS_NOISE, Points, checked_bounds, read_points
from spatialq.workflows.ground import write_cloud
from spatialq.workflows.lengths import with_numbers
from spatialq.workflows.outputs import Outputs, frame_of, input_files

Paths = str | Path | Sequence[str | Path]
Choose = Callable[[Points, "dict[str, Array]"], "Bools | None"]
"""Gives, by position, which points to write, of the points and what a function finds of them; None
for all."""


@together()
@files_read_by("noise")
def write_noise(
    source: Paths, outputs: Paths, *, drop_noise: bool = False, **options: Any
) -> dict[str, Any]:
    """Classify the noise of a cloud and write the points.

    What is classified as noise (7 and 18) keeps its class and is not considered; the points that
    `classify_noise` finds get 7 or 18, all others keep their class.

    Parameters
    ----------
    source : path or paths
        Point clouds, patterns or folders of them: together one cloud.
    outputs : path or paths
        .las or .laz files; or a folder, which gets one for each source.
    drop_noise : bool
        Write only the points that are no noise.
    **options
        crs, override_crs, to_crs, scale, offset, bounds, within, device, memory and progress as of
        `write_ground`; and those of `classify_noise`, whose lengths may also be texts with a unit,
        such as '2ft'.

    Returns
    -------
    dict
        points, noise_points, points_written, device, outputs.

    Raises
    ------
    FileError, CrsError, ValueError
        As `write_ground`.
    """

    def choose(points: Points, found: dict[str, Array]) -> Bools | None:
        new = found["classification"]  # 0 where it is no noise, as the function gets no classes
        rows = np.flatnonzero(new)
        points.classes[points.point_id[rows]] = new[rows]
        if not drop_noise:
            return points.keep
        keep: Bools = buffers.empty(points.classes.size, np.bool_)
        for start, stop in chunks(keep.size):
            keep[start:stop] = ~IS_NOISE[points.classes[start:stop]]
            if points.keep is not None:
                keep[start:stop] &= points.keep[start:stop]
        return keep

    return _write("noise", "classify_noise", source, outputs, choose, **options)


@together()
@files_read_by("thin")
def write_thinned(source: Paths, outputs: Paths, **options: Any) -> dict[str, Any]:
    """Write fewer points of a cloud, evenly spread: those that `thin` keeps.

    Noise (classes 7 and 18) is not considered and not written. Nothing else of a point changes.

    Parameters
    ----------
    source, outputs
        As of `write_noise`.
    **options
        crs, override_crs, to_crs, scale, offset, bounds, within, device, memory and progress as of
        `write_ground`; and those of `thin`, whose lengths may also be texts with a unit, such as
        '2ft'.

    Returns
    -------
    dict
        As of `write_noise`.

    Raises
    ------
    FileError, CrsError, ValueError
        As `write_ground`.
    """

    def choose(points: Points, found: dict[str, Array]) -> Bools:
        keep: Bools = buffers.zeros(points.classes.size, np.bool_)
        keep[found["point_id"]] = True
        return keep

    return _write("thin", "thin", source, outputs, choose, **options)


def _write(
    command: str,
    function: str,
    source: Paths,
    outputs: Paths,
    choose: Choose,
    *,
    crs: str | None = None,
    override_crs: bool = False,
    to_crs: str | None = None,
    scale: float | Sequence[float] | None = None,
    offset: Sequence[float] | None = None,
    bounds: Sequence[float] | None = None,
    within: str | Path | None = None,
    device: str = "auto",
    memory: str | float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Call a function with the points of files, and write those that are chosen."""
    from spatialq.execution.call import call
    from spatialq.functions.catalogue import catalogue

    paths = input_files(command, source)
    targets = Outputs.of(command, outputs, LAS)
    if not targets.names:
        message = f"{command}: outputs must name a file, got none"
        raise ValueError(message)
    tick = progress or (lambda *_: None)
    box = checked_bounds(command, bounds)
    clouds = open_clouds(source, paths, targets, LAS)
    within_memory = budget.within(command, memory, targets.beside)
    declared = catalogue()[function]
    clouds, crs = considered(
        command,
        clouds,
        crs,
        override=override_crs,
        to_crs=to_crs,
        within=within,
        scale=scale,
        offset=offset,
    )
    frame = frame_of(paths, crs, to_crs, is_announced=crs is None)  # `with_numbers` does it
    numbers = with_numbers(command, options, declared.parameters, paths[0], crs)
    chosen = declared.choose(numbers)
    with within_memory:
        points = read_points(clouds, box, tick)
        found, used = call(
            declared, dict(points.columns), chosen, device, transport="files", frame=frame
        )
        keep = choose(points, found)
        for target, group in las_outputs(clouds, targets):
            write_cloud(group, target, points, keep, tick, crs)
        noise = 0
        for start, stop in chunks(points.classes.size):
            is_noise = IS_NOISE[points.classes[start:stop]]
            if points.keep is not None:
                is_noise &= points.keep[start:stop]
            noise += int(np.count_nonzero(is_noise))
        written = points.count if keep is None else int(np.count_nonzero(keep))
    return {
        "points": points.count,
        "noise_points": noise,
        "points_written": written,
        "device": used,
        "outputs": targets.names,
    }
