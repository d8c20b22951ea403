"""One job: tasks given out, what is done recorded, and what was done before left as it is."""

import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from spatialq import errors
from spatialq.cluster import seeds
from spatialq.cluster.executor import Executor
from spatialq.cluster.executors import check_executor, executor_of
from spatialq.cluster.folder import CALLER, JobFolder, Journal
from spatialq.cluster.layout import Layout
from spatialq.cluster.survey import Survey, stamp_of, task_of
from spatialq.cluster.task import Done, Task
from spatialq.data.frame import Frame
from spatialq.errors import JobError
from spatialq.execution.frames import fit
from spatialq.execution.validation import is_finite
from spatialq.functions.catalogue import catalogue
from spatialq.io.clouds import what_reprojects
from spatialq.io.formats import find_sources, open_source
from spatialq.io.source import Progress
from spatialq.runtime import budget

FUNCTIONS = (seeds.FUNCTION,)
"""What can be run tile by tile with the rows of one call on all files."""
SAME = {
    "function": "function",
    "tile_size": "tile_size",
    "inputs_digest": "source",
    "version": "version of spatialq",
}
"""What, besides options, must not differ when a job is resumed, and what it is called."""


def run(
    function: str,
    source: str | Path | Sequence[str | Path],
    folder: str | Path,
    *,
    executor: str = "local",
    workers: int | None = None,
    tile_size: float | None = None,
    resume: bool = False,
    device: str = "auto",
    memory: str | float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Run a function of points on the files of a survey, part by part, on many processes.

    All parts together have the rows of one call on all files. Each file is read for what all tasks
    must know, and then by its own task and those of its neighbours, for their halos.

    Parameters
    ----------
    function : str
        'owm_ground'.
    source : path or paths
        Point clouds, patterns of them, or folders: together one cloud, whose `point_id` runs on
        from file to file.
    folder : path
        Gets `parts/*.parquet` and the records of the job; it is made if it is not there.
    executor : 'local' or 'ray'
        Processes of this machine, or the workers of Ray, which need `pip install 'spatialq[ray]'`.
    workers : int, optional
        By default as many as this machine has cores, or Ray has GPUs or CPUs.
    tile_size : float, optional
        Side of square tiles, in the unit of x and y, of which each is a task; by default each file
        is one.
    resume : bool
        Go on with the job in the folder, if there is one: parts that are done and whole stay.
    device : 'auto', 'cpu' or 'gpu'
    memory : str or float, optional
        Main memory for all workers of a machine together, such as '2GB'; a number is in GiB. By
        default half of what is free.
    progress : callable, optional
        Called with the stage, `survey` or `parts`, tasks done so far and tasks in all.
    **options
        The function's parameters, `bounds` among them.

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
    if function not in FUNCTIONS:
        message = (
            f"{CALLER}: function must be one of {', '.join(FUNCTIONS)}, which tiles do not change, "
            f"got {function!r}"
        )
        raise ValueError(message)
    check_executor(executor, workers)
    if tile_size is not None and not (is_finite(tile_size) and tile_size > 0):
        message = f"{CALLER}: tile_size must be a number above 0, got {tile_size!r}"
        raise ValueError(message)
    declared = catalogue()[function]
    chosen = declared.choose(options)
    paths = [str(path.resolve()) for path in find_sources(function, source, "points")]
    if not paths:
        message = f"{CALLER}: source must be at least one file, pattern or folder, got none"
        raise ValueError(message)
    crs = open_source(function, Path(paths[0]), ["points"]).crs
    subject = f"'{paths[0]}'" if len(paths) == 1 else f"{len(paths)} files"
    fitted = fit(declared, {}, chosen, Frame(subject, crs, remedy=what_reprojects(paths[0])))
    manifest = {
        "function": function,
        "options": seeds.given(chosen),
        "tile_size": tile_size,
        "version": version("spatialq"),
        "inputs": len(paths),
        "inputs_digest": blake2b("\n".join(paths).encode(), digest_size=16).hexdigest(),
    }
    job, tick = JobFolder(Path(folder)), progress or (lambda *_: None)
    with job.held():
        if (before := job.manifest()) is None:
            job.require_new()
        else:
            _require_same(job, before, manifest, resume=resume)
        manifest |= dict.fromkeys(("parts", "rows", "points")) | {"state": "survey"}
        job.write_manifest(manifest)
        with (
            job.recording() as journal,
            budget.within(CALLER, memory),
            closing(executor_of(executor, workers, budget.current())) as able,
        ):
            survey = _survey(job, journal, able, function, paths, crs, chosen.bounds, tick)
            survey.require_no_strays(function, fitted.upright)
            found = _parts(job, journal, able, survey, fitted.options, device, manifest, tick)
        job.write_manifest(manifest | {"state": "done"} | found)
    return {
        "function": function,
        **found,
        "seconds": round(time.monotonic() - started, 3),
        "folder": str(folder),
    }


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
            values = "" if key == "inputs_digest" else f", {was.get(key)!r}, not {now[key]!r}"
            message = (
                f"{CALLER}: the job in '{job.path}' was begun with another {SAME.get(key, key)}"
                f"{values}: take that, or another folder"
            )
            raise JobError(message)


def _survey(
    job: JobFolder,
    journal: Journal,
    able: Executor,
    function: str,
    paths: list[str],
    crs: str | None,
    bounds: Sequence[float] | None,
    tick: Progress,
) -> Survey:
    """Look at all files, but for those that were looked at before.

    Raises
    ------
    JobError
        If one of these has changed since.
    """
    wanted, seen = set(paths), set[str]()

    def done_before() -> Iterator[Done]:
        for done in job.journal():
            if done.size is None and done.name in wanted and done.name not in seen:
                _require_unchanged(job, done)
                seen.add(done.name)
                yield done

    def done_now() -> Iterator[Done]:
        tasks = (task_of(function, path, crs, bounds) for path in paths if path not in seen)
        say = partial(_say, tick, "survey", len(paths), len(seen))
        yield from _recorded(journal, able, tasks, say)

    return Survey.of(paths, chain(done_before(), done_now()))


def _require_unchanged(job: JobFolder, done: Done) -> None:
    try:
        is_same = stamp_of(Path(done.name)) == done.facts["stamp"]
    except OSError:
        is_same = False
    if not is_same:
        message = (
            f"{CALLER}: '{done.name}' has changed since the job in '{job.path}' was begun: take "
            "another folder"
        )
        raise JobError(message)


def _parts(
    job: JobFolder,
    journal: Journal,
    able: Executor,
    survey: Survey,
    options: Any,
    device: str,
    manifest: dict[str, Any],
    tick: Progress,
) -> dict[str, int]:
    """Write all parts but those that are there.

    Returns
    -------
    dict
        `points` and `rows` of the job, its `parts`, and how many of them were there (`resumed`).
    """
    layout = Layout(survey, manifest["tile_size"])
    layout.require_few(CALLER)
    total = sum(1 for _ in layout.cores())
    job.write_manifest(manifest | {"state": "parts", "parts": total, "points": survey.total})
    kept = {
        done.name: int(done.facts["rows"])
        for done in job.journal()
        if done.size is not None and job.is_there(done)
    }
    rows = sum(kept.values())

    def tasks() -> Iterator[Task]:
        folder = str(job.parts.resolve())
        for task in seeds.tasks(survey, layout, options, device, folder):
            if task.name not in kept:
                yield task

    say = partial(_say, tick, "parts", total, len(kept))
    for done in _recorded(journal, able, tasks(), say):
        rows += done.facts["rows"]
    return {"points": survey.total, "rows": rows, "parts": total, "resumed": len(kept)}


def _say(tick: Progress, stage: str, total: int, before: int, done: int) -> None:
    tick(Path(stage), before + done, total)


def _recorded(
    journal: Journal, able: Executor, tasks: Iterator[Task], tick: Callable[[int], None]
) -> Iterator[Done]:
    """Have tasks done; give them when the journal has them."""
    with closing(able.map(tasks)) as results:
        for n, done in enumerate(results, 1):
            for name, text in done.warnings:
                kind = getattr(errors, name, UserWarning)
                warnings.warn(text, kind, stacklevel=4)
            journal.add(done)
            tick(n)
            yield done
