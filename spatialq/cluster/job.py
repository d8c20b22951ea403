"""A job that runs: its call, its files, and stages of tasks, of which those done before stay."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from spatialq import errors
from spatialq.cluster.executor import Executor
from spatialq.cluster.folder import CALLER, PARTS, Folder, Recorder
from spatialq.cluster.layout import Layout
from spatialq.cluster.survey import SURVEY, Survey, stamp_of, task_of
from spatialq.cluster.task import Done, Task
from spatialq.errors import JobError
from spatialq.io.source import Progress
from spatialq.io.storage import as_path


@dataclass(frozen=True)
class Call:
    """What is to be done."""

    function: str
    paths: list[str]
    crs: str | None
    """Of the first file."""
    options: Any
    """Parameters of the function as its kernel takes them: lengths in the unit of x and y."""
    upright: float
    """Units of x and y in one unit of z."""
    more: dict[str, Any]
    """The options that are none of its parameters, see `Method.more`."""
    tile_size: float | None
    part_format: str
    """Of the parts, such as 'parquet'."""
    device: str


def given(options: Any) -> dict[str, Any]:
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
        folder: Folder,
        journal: Recorder,
        executor: Executor,
        manifest: dict[str, Any],
        progress: Progress,
    ) -> None:
        self.call = call
        self._folder, self._journal, self._executor = folder, journal, executor
        self._manifest, self._progress = dict(manifest), progress
        self._manifest |= dict.fromkeys(("points", "rows", "parts", "resumed"))

    def survey(self) -> Survey:
        """Look at all files of points, but for those that were looked at before.

        Raises
        ------
        JobError
            If one of these has changed since, or if there may be stray points.
        """
        call = self.call
        bounds = call.options.bounds
        tasks = (task_of(call.function, path, call.crs, bounds) for path in call.paths)
        done = self.facts(SURVEY, tasks, len(call.paths), self._is_unchanged)
        survey = Survey.of(call.paths, done)
        survey.require_no_strays(call.function, call.upright)
        self._update(points=survey.total)
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
        return self._done(stage, "", tasks, total, is_same)

    def files(self, stage: str, tasks: Iterable[Task], total: int) -> Iterator[Done]:
        """Have tasks done that write files for later stages, see `path`; as `facts`.

        The files are removed when the job is done.
        """
        folder = self._folder
        folder.begin(stage)
        return self._done(stage, folder.root, tasks, total, folder.is_there)

    def path(self, stage: str, name: str) -> str:
        """Give the file that a task of an earlier stage has written."""
        return str(self._folder.place(stage).resolve() / name)

    def parts(self, tasks: Iterable[Task], total: int) -> None:
        """Have the tasks done that write the parts of the result: the last stage.

        Each gives at least `rows` as a fact.
        """
        self._update(parts=total)
        rows = 0
        for done in self.files(PARTS, tasks, total):
            rows += int(done.facts["rows"])
        self._update(rows=rows)

    def end(self) -> None:
        """Record that all parts are there."""
        self._folder.remove_stages()
        self._update(state="done")

    @property
    def found(self) -> dict[str, Any]:
        """What is known of the result: points, parts, rows, and resumed of the parts."""
        return {name: self._manifest[name] for name in ("points", "rows", "parts", "resumed")}

    def _update(self, **facts: Any) -> None:
        self._manifest |= facts
        self._folder.write_manifest(self._manifest)

    def _done(
        self,
        stage: str,
        root: str,
        tasks: Iterable[Task],
        total: int,
        is_same: Callable[[Done], bool],
    ) -> Iterator[Done]:
        self._update(state=stage)
        seen = set[str]()
        for done in self._folder.journal():
            if done.stage == stage and done.name not in seen and is_same(done):
                seen.add(done.name)
                yield done
        self._update(resumed=len(seen))
        left = (replace(task, stage=stage, root=root) for task in tasks if task.name not in seen)
        with closing(self._executor.map(left)) as results:
            for n, done in enumerate(results, len(seen) + 1):
                for name, text in done.warnings:
                    kind = getattr(errors, name, UserWarning)
                    warnings.warn(text, kind, stacklevel=5)
                self._journal.add(done)
                self._progress(Path(stage), n, total)
                yield done

    def _is_unchanged(self, done: Done) -> bool:
        """Whether a file is the one that was looked at.

        Raises
        ------
        JobError
            If it is not.
        """
        try:
            is_same = bool(stamp_of(as_path(done.name)) == done.facts["stamp"])
        except OSError:
            is_same = False
        if not is_same:
            message = (
                f"{CALLER}: '{done.name}' has changed since the job in '{self._folder.path}' was "
                "begun: take another folder"
            )
            raise JobError(message)
        return True
