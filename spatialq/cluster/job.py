"""A running job: its call, its files, and its stages of tasks. Those done before are skipped."""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from spatialq.cluster.digest_set import DigestSet
from spatialq.cluster.executor import Executor
from spatialq.cluster.folder import CALLER, PARTS, JobFolder
from spatialq.cluster.layout import Layout
from spatialq.cluster.survey import SURVEY, Survey, stamp_of, task_of
from spatialq.cluster.task import Done, Task
from spatialq.cluster.warned import Warned
from spatialq.data.reach import require_reach
from spatialq.errors import FileWarning, JobError
from spatialq.functions.catalogue import divisible
from spatialq.functions.declaration import Parameters
from spatialq.io.source import Progress
from spatialq.io.storage import as_path
from spatialq.runtime.callers import level_of_caller

RESULT = ("points", "rows", "parts")
"""What a manifest says of the result."""
INTERVAL = 1.0
"""Seconds between two manifests that only say how many tasks are done, at least."""


@dataclass(frozen=True)
class Call:
    """What is to be done."""

    function: str
    paths: list[str]
    crs: str | None
    """Of the first file."""
    options: Any
    """Parameters of the function as its kernel takes them: lengths in the unit of x and y."""
    z_to_xy_scale: float
    """Units of x and y in one unit of the z that the kernel gets."""
    level: float
    """By how much z of the files is multiplied for the kernel, see `Fitted.level`."""
    units: tuple[float, float, float]
    """Metres in one unit of x, y and z of the files, see `Fitted.units`."""
    more: dict[str, Any]
    """The options that are none of its parameters, see `Method.more`."""
    tile_size: float | None
    part_format: str
    """Of the parts, such as 'parquet'."""
    device: str


def given(options: Parameters) -> dict[str, Any]:
    """Write the parameters of a call as values of JSON."""
    return {name: value for name, value in asdict(options).items() if name != "caller"}


class Job:
    """A job that runs.

    A method calls `files` or `facts` for what later stages need, and at last `parts`. Names of
    tasks are unique in their stage and the same whenever the job is resumed.
    """

    def __init__(
        self,
        call: Call,
        folder: JobFolder,
        executor: Executor,
        manifest: dict[str, Any],
        progress: Progress,
        before: dict[str, Any] | None = None,
    ) -> None:
        self.call = call
        self._folder, self._executor = folder, executor
        self._manifest, self._progress = dict(manifest), progress
        self._before, self._written = before, -INTERVAL
        self._warned = Warned()
        self._manifest |= dict.fromkeys((*RESULT, "resumed"))
        self._manifest |= dict.fromkeys(("tasks", "done", "journal"), 0)
        self._manifest |= dict.fromkeys(("started", "begun", "told"), time.time())

    def survey(self, left_out: Sequence[int] = ()) -> Survey:
        """Look at all files of points, but for those that were looked at before.

        Parameters
        ----------
        left_out : sequence of int
            Classes of points that are not considered, such as noise.

        Raises
        ------
        JobError
            If one of these has changed since, or if there may be stray points, unless the function
            keeps these.
        ValueError
            If points are farther away than `spatialq.data.reach` says.

        Warns
        -----
        FileWarning
            If no point is within the bounds.
        """
        call = self.call
        bounds = call.options.bounds
        first = call.paths[0], call.crs
        tasks = (task_of(call.function, path, first, bounds, left_out) for path in call.paths)
        done = self.facts(SURVEY, tasks, len(call.paths), self.is_unchanged)
        survey = Survey.of(call.paths, done)
        if not divisible()[call.function].declaration.keeps_strays:
            survey.require_no_strays(call.function, call.z_to_xy_scale * call.level)
        if survey.total:
            require_reach(call.function, *survey.ends, call.units)
        self._update(points=survey.total)
        if bounds is not None and not survey.total:
            box = ", ".join(f"{each:.15g}" for each in bounds)
            message = f"{call.function}: no point is within the bounds {box}"
            warnings.warn(message, FileWarning, stacklevel=level_of_caller())
        return survey

    def layout(self, survey: Survey) -> Layout:
        """Divide a survey into files or tiles, as the call says.

        Raises
        ------
        ValueError
            If there would be too many tiles.
        """
        layout = Layout(survey, self.call.tile_size)
        layout.require_few(CALLER)
        return layout

    def facts(
        self,
        stage: str,
        tasks: Iterable[Task],
        total: int,
        is_same: Callable[[Done], bool] = lambda _: True,
    ) -> Iterator[Done]:
        """Have tasks done that write no files.

        Parameters
        ----------
        stage : str
            Its name, unique in the job.
        tasks : iterable of Task
            Made as workers become free.
        total : int
            How many there are.
        is_same : callable
            Whether a task that was done before still holds; it is done again if not.

        Yields
        ------
        Done
            In no order; the journal has it.
        """
        return self._done(stage, "", [tasks], total, is_same)

    def files(
        self,
        stage: str,
        tasks: Iterable[Task],
        total: int,
        is_same: Callable[[Done], bool] = lambda _: True,
    ) -> Iterator[Done]:
        """Have tasks done that write files for later stages, see `path`; as `facts`.

        The files are removed when the job is done.
        """
        folder = self._folder
        folder.begin(stage)

        def holds(done: Done) -> bool:
            return is_same(done) and folder.is_there(done)

        return self._done(stage, folder.root, [tasks], total, holds)

    def path(self, stage: str, name: str) -> str:
        """Give the file that a task of an earlier stage has written."""
        return str(self._folder.place(stage).resolve() / name)

    def parts(
        self,
        tasks: Iterable[Task],
        total: int,
        *later: Iterable[Task],
        seconds: str = "",
        note: Callable[[Done], None] = lambda _: None,
    ) -> None:
        """Have the tasks done that write the parts of the result: the last stage.

        Each gives at least `rows` as a fact.

        Parameters
        ----------
        tasks : iterable of Task
        total : int
            How many there are, those of `later` included.
        *later : iterable of Task
            Those of each are begun when all before are done, whose second files they may read.
        seconds : str
            The stage of second files.
        note : callable
            Called with each that is done.
        """
        folder = self._folder
        if seconds:
            folder.begin(seconds)
        self._update(parts=total)
        rows, root = 0, folder.root
        for done in self._done(PARTS, root, [tasks, *later], total, folder.is_there):
            rows += int(done.facts["rows"])
            note(done)
        self._update(rows=rows)

    def say(self, **facts: Any) -> None:
        """Say more of the result than that of every job."""
        self._update(more=facts)

    def was_done(self) -> bool:
        """Whether the job was done when it was resumed, and its parts are still there.

        Then no stage is needed, whose files were removed at the end.

        Raises
        ------
        JobError
            If a file has changed that a task has given the `stamp` of.
        """
        before = self._before
        if before is None or before["state"] != "done":
            return False
        there = DigestSet()
        for done in self._folder.journal():
            if "stamp" in done.facts:
                self.is_unchanged(done)
            if done.stage == PARTS and self._folder.is_there(done, is_last=True):
                there.add(done.name)
        if len(there) != before["parts"]:
            return False
        counts = dict.fromkeys(("tasks", "done", "resumed"), len(there))
        kept = {name: before[name] for name in (*RESULT, "started", "begun", "told")}
        self._update(state="done", **counts, **kept, more=before.get("more", {}))
        return True

    def end(self) -> None:
        """Record that all parts are there, and say of which warnings there were more."""
        self._folder.remove_stages()
        if self._manifest.get("state") != "done":  # else the times are those of the run before
            self._update(state="done", told=time.time())
        self._warned.end()

    @property
    def found(self) -> dict[str, Any]:
        """What is known of the result: points, parts, rows, resumed of the parts, and more."""
        more: dict[str, Any] = self._manifest.get("more", {})
        return {name: self._manifest[name] for name in (*RESULT, "resumed")} | more

    def _update(self, **facts: Any) -> None:
        self._manifest |= facts
        self._folder.write_manifest(self._manifest)

    def _reach(self, done: int, **facts: Any) -> None:
        """Write down how many tasks of the stage are done, and where the journal says of more."""
        self._written = time.monotonic()
        self._update(done=done, journal=self._folder.position, told=time.time(), **facts)

    def _done(
        self,
        stage: str,
        root: str,
        rounds: Sequence[Iterable[Task]],
        total: int,
        is_same: Callable[[Done], bool],
    ) -> Iterator[Done]:
        self._reach(0, state=stage, tasks=total, resumed=0, begun=time.time())
        seen = DigestSet()
        # of a new job, the journal has only the stages before
        for done in () if self._before is None else self._folder.journal():
            if done.stage == stage and done.name not in seen and is_same(done):
                seen.add(done.name)
                yield done
        n, stages = len(seen), self._folder.remote_stages
        self._reach(n, resumed=n, begun=time.time())
        self._progress(Path(stage), n, total)
        for tasks in rounds:
            new = (task for task in tasks if task.name not in seen)
            left = (replace(task, stage=stage, root=root, stages=stages) for task in new)
            with closing(self._executor.map(left)) as results:
                for done in results:
                    n += 1
                    for category, text in done.warnings:
                        self._warned.tell(category, text)
                    self._folder.add(done)
                    if time.monotonic() >= self._written + INTERVAL:
                        self._reach(n)
                    self._progress(Path(stage), n, total)
                    yield done
        self._reach(n)

    def is_unchanged(self, done: Done) -> bool:
        """Whether a file is the one whose `stamp` a task has given.

        It is the one that the fact `path` names, or the task itself.

        Raises
        ------
        JobError
            If it is not.
        """
        path = done.facts.get("path", done.name)
        try:
            is_same = bool(stamp_of(as_path(path)) == done.facts["stamp"])
        except OSError:
            is_same = False
        if not is_same:
            message = (
                f"{CALLER}: '{path}' has changed since the job in '{self._folder.path}' was "
                "begun: take another folder"
            )
            raise JobError(message)
        return True
