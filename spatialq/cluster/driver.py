"""The driver of a job: gives out tasks, records those that are done, skips those done before."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster.arguments import check_types, files_of_job, new_folder_of
from spatialq.cluster.executors import check_executor, executor_of
from spatialq.cluster.folder import CALLER, JobFolder
from spatialq.cluster.gpus import gpus_for, may_use_gpus
from spatialq.cluster.job import Call, Job, given
from spatialq.cluster.methods import methods
from spatialq.cluster.sizes import side_of
from spatialq.cluster.survey import MayBeStrayError
from spatialq.errors import FileError, JobError
from spatialq.functions.catalogue import divisible
from spatialq.io.source import Progress
from spatialq.planner.plan import kind_of
from spatialq.runtime import budget
from spatialq.runtime.progress import Task as CallTask
from spatialq.runtime.progress import current, running

GIVEN = "given_tile_size"
"""In a manifest, the side of tiles as the user gave it."""
SAME = {
    "function": "function",
    "tile_size": "tile_size",
    "part_format": "part_format",
    "inputs_digest": "source",
    "version": "version of spatialq",
}
"""What, besides options, must not differ when a job is resumed, and what it is called."""


def run(
    function: str,
    source: str | Path | Sequence[str | Path],
    folder: str | Path,
    /,
    *,
    executor: str = "local",
    workers: int | None = None,
    tile_size: float | str | None = None,
    part_format: str | None = None,
    resume: bool = False,
    device: str = "auto",
    memory: str | float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Run a function on the files of a survey or of models, part by part, on many processes.

    All parts together have the rows of one call on all files. Stages and parts are those of the
    function, see docs/jobs.md.

    Parameters
    ----------
    function : str
        'owm_ground', 'classify_ground', 'classify_noise', 'point_features', 'thin' by voxels,
        'ground_surface', 'detect_planes', 'plane_points', 'build_lod', 'pops_features',
        'pops_patches', 'distance' with a `max_distance`, 'deviation', 'plane_elements' and
        'point_elements' with `elements`, 'points_within' with `polygons`, 'terrain_derivatives',
        or 'intersects_with', which gives the rows of `spatialq clash`.
    source : path or paths
        Point clouds, patterns of them, or folders: together one cloud, whose `point_id` runs on
        from file to file. Of 'pops_features' and 'pops_patches' grids, each one of its own; of
        'intersects_with' and 'distance' IFC files, in the same coordinates.
    folder : path
        Gets the parts, in `parts/`, and the records of the job; it is made if it is not there. It
        may be a URL such as 's3://bucket/out'.
    executor : 'local', 'serial' or 'ray'
        Processes of this machine; this process, one task after the other; or the workers of Ray,
        which need `pip install 'spatialq[ray]'`.
    workers : int, optional
        By default four for each GPU of this machine that `device` allows and the function has a
        kernel for, but no more than it has cores, and without GPUs as many as cores; or Ray has
        GPUs or CPUs. Workers take GPUs in turn, and share their memory.
    tile_size : float or str, optional
        Side of square tiles, of which each is a task: in the unit of x and y, or with its unit,
        such as '500m'; by default each file is one. 'build_lod' and 'intersects_with', which are
        divided otherwise, have none.
    part_format : str, optional
        Of the parts: 'parquet', which is the default; also 'laz' of 'classify_ground',
        'classify_noise', 'thin' and 'plane_points', and 'tif' of 'classify_ground', which is the
        terrain, and 'pops_features'.
    resume : bool
        Go on with the job in the folder, if there is one: parts that are done and whole stay.
    device : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
    memory : str or float, optional
        Main memory for all workers of a machine together, such as '2GB'; a number is in GiB. By
        default half of what is free.
    progress : callable, optional
        Called with the name of a stage, such as 'survey' or 'parts', as a Path, with its tasks
        that are done, and with all of its tasks.
    **options
        The function's parameters, `bounds` among them; and those that only jobs of the function
        have, see docs/jobs.md.

    Returns
    -------
    dict
        function, points, rows, parts, resumed (of the parts), seconds, folder.

    Raises
    ------
    FileError
        If a file cannot be read or a part not be written. What is done stays: resume the job.
    JobError
        If there is a job in the folder that is not resumed, that another run has, or that is of
        other inputs or options; if there may be stray points; or if workers end again and again.
    CrsError
        If the files have different coordinate reference systems, or are in degrees.
    ValueError
        If an argument is wrong.
    """
    started = time.monotonic()
    method = methods().get(function) if isinstance(function, str) else None
    if method is None:
        message = f"{CALLER}: function must be one of {', '.join(methods())}, got {function!r}"
        raise ValueError(message)
    check_executor(executor, workers, device)
    check_types(resume=resume, memory=memory, progress=progress)
    side = side_of(tile_size, None)
    declared = divisible()[function]
    part_format = part_format or method.formats[0]
    if part_format not in method.formats:
        message = (
            f"{CALLER}: part_format must be one of {', '.join(method.formats)} for {function}, got "
            f"{part_format!r}"
        )
        raise ValueError(message)
    if method.devices is not None and device not in method.devices:
        message = (
            f"{CALLER}: device must be one of {', '.join(method.devices)} for {function}, whose "
            f"tasks run on the CPU, got {device!r}"
        )
        raise ValueError(message)
    more = {name: _plain(options.pop(name, value)) for name, value in method.more.items()}
    chosen = declared.choose(options)
    method.check(more, side, chosen, part_format)
    files = files_of_job(source, method.kind)
    target = new_folder_of(folder, source, files, part_format)
    paths = list(map(str, files))
    fitted, crs = method.open(declared, paths, chosen, more)
    side = side_of(tile_size, crs)
    manifest = {
        "function": function,
        "options": given(chosen) | more,
        "tile_size": side,
        GIVEN: tile_size if isinstance(tile_size, str) else side,
        "part_format": part_format,
        "version": version("spatialq"),
        "source": _told(source),
        "inputs": len(paths),
        "inputs_digest": blake2b("\n".join(paths).encode(), digest_size=16).hexdigest(),
    }
    call = Call(
        function, paths, crs, fitted.options, fitted.z_to_xy_scale, fitted.level, fitted.units,
        more, side, part_format, kind_of(device) if method.devices is None else "cpu",
    )  # fmt: skip
    uses_gpus = method.devices is None and may_use_gpus(device, declared, chosen)
    here = uses_gpus and executor != "ray"
    gpus = gpus_for(CALLER, device, declared, chosen) if here else []
    tick = progress or (lambda *_: None)
    with target.held():
        if (before := target.manifest()) is None:
            target.require_new()
        else:
            _require_same(target, before, manifest, resume=resume)
        with (
            _forgotten_if_refused(target, before),
            target.recording(),
            budget.within(CALLER, memory),
            closing(
                executor_of(executor, workers, budget.current(), gpus, uses_gpus=uses_gpus)
            ) as able,
            running(current() or CallTask()),
        ):
            job = Job(call, target, able, manifest, tick, before)
            if not job.was_done():
                method.run(job)
            job.end()
    return {
        "function": function,
        **job.found,
        "seconds": round(time.monotonic() - started, 3),
        "folder": str(folder),
    }


def _plain(value: object) -> Any:
    """Give a number of NumPy as one of Python, which JSON has."""
    return value.item() if isinstance(value, np.generic) else value


def _told(source: str | Path | Sequence[str | Path]) -> str:
    """Say what a job reads as it was given; of several, the first and how many more."""
    if isinstance(source, str | Path):
        return str(source)
    more = f" and {len(source) - 1} more" if len(source) > 1 else ""
    return f"{source[0]}{more}"


@contextmanager
def _forgotten_if_refused(folder: JobFolder, before: dict[str, Any] | None) -> Iterator[None]:
    """Leave nothing of a new job that is refused before a task has written a file."""
    try:
        yield
    except (ValueError, MayBeStrayError) as error:
        is_of_a_file = isinstance(error, FileError)
        if before is None and not is_of_a_file and not folder.has_files():
            folder.forget()
        raise


def _require_same(
    job: JobFolder, before: dict[str, Any], manifest: dict[str, Any], *, resume: bool
) -> None:
    """Refuse a folder with a job that is not to be resumed, or that is another one."""
    if not resume:
        message = (
            f"{CALLER}: there is a job in '{job.path}' already ({before['function']}, "
            f"{before['state']}): resume it, or take another folder"
        )
        raise JobError(message)
    now = json.loads(json.dumps(manifest))  # lists where there were tuples, as in what was read
    was = before | before["options"]
    now |= now["options"]
    for key in (*SAME, *now["options"]):
        if was.get(key) != now[key]:
            shown = GIVEN if key == "tile_size" else key
            values = "" if key == "inputs_digest" else f", {was.get(shown)!r}, not {now[shown]!r}"
            message = (
                f"{CALLER}: the job in '{job.path}' was begun with another {SAME.get(key, key)}"
                f"{values}: take that, or another folder"
            )
            raise JobError(message)
