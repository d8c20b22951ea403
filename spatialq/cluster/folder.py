"""The folder of a job: what it does, and a journal of the tasks that are done.

What is here is the same in a folder of a file system and in object storage; what differs is in
`spatialq.cluster.files` and `spatialq.cluster.locks`.
"""

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from spatialq.cluster.files import LocalFiles, ObjectFiles
from spatialq.cluster.names import CALLER, LOCK, MANIFEST, OWN, PARTS, STAGES, UNFINISHED
from spatialq.cluster.task import Done, place_of
from spatialq.errors import FileError, JobError
from spatialq.io import access
from spatialq.io.storage import ObjectPath, is_url, require_url

__all__ = ["CALLER", "MANIFEST", "OWN", "PARTS", "STAGES", "JobFolder", "folder_of"]

NUMBER, COUNT = (int, float), (int, type(None))
KINDS: dict[str, Any] = {
    "function": str,
    "options": dict,
    "state": str,
    **dict.fromkeys(("tasks", "done", "resumed", "journal", "inputs"), int),
    **dict.fromkeys(("started", "begun", "told"), NUMBER),
    **dict.fromkeys(("parts", "points", "rows"), COUNT),
}
"""What a manifest has at least, and of which type."""
LATEST, LARGEST = 1e11, 1 << 63
"""What times and counts in it are below."""


def folder_of(caller: str, path: str | os.PathLike[str]) -> "JobFolder":
    """Give the folder of a job, which may be a URL.

    Raises
    ------
    FileError
        If the connection that asks must not open it.
    ValueError
        If it is a URL that cannot be read, or has credentials in it.
    """
    found = require_url(f"{caller}: folder", path) if is_url(path) else Path(path)
    access.require(caller, found)
    return JobFolder(found)


class JobFolder:
    """A folder with the manifest, the journal and the parts of one job.

    Until the job is done it also has files that earlier stages write for later ones. Errors of the
    system become a FileError with the sentence of the job; a JobError says that another run has
    the folder, or has taken it over.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.parts = path, path / PARTS
        self._files = ObjectFiles(path) if isinstance(path, ObjectPath) else LocalFiles(path)

    @property
    def root(self) -> str:
        """Its name for workers."""
        return str(self.path.resolve())

    @property
    def remote_stages(self) -> str:
        """How names of files of stages begin, where a worker must fetch these to read them."""
        return f"{self.path / STAGES}/" if isinstance(self.path, ObjectPath) else ""

    def place(self, stage: str) -> Path:
        """Give the folder of the files that the tasks of a stage write."""
        return self.path / _name(stage)

    def begin(self, stage: str) -> None:
        """Make the folder of a stage.

        Raises
        ------
        FileError
            If it cannot be made.
        """
        with _told(self.place(stage)):
            self.place(stage).mkdir(parents=True, exist_ok=True)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs out of the folder until the block, or this process, ends.

        Raises
        ------
        FileError
            If the folder cannot be made.
        JobError
            If another run has it.
        """
        with ExitStack() as stack:
            with _told(self.path):
                stack.enter_context(self._files.lock.held())
            yield

    def is_held(self) -> bool:
        """Whether a run is going on in the folder.

        Raises
        ------
        FileError
            If the lock cannot be read.
        """
        with _told(self.path / LOCK, "read"):
            return self._files.lock.is_held()

    def _require_lock(self, *, anew: bool = True) -> None:
        if not self._files.lock.is_kept(anew=anew):
            message = (
                f"{CALLER}: the lock of '{self.path}' could not be kept: resume the job, unless "
                "another run does"
            )
            raise JobError(message)

    def manifest(self) -> dict[str, Any] | None:
        """Read the manifest; None if there is no job in the folder.

        Raises
        ------
        FileError
            If it is damaged, or cannot be read.
        """
        path = self.path / MANIFEST
        with _told(path, "read"):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                return None
        try:
            found: dict[str, Any] = json.loads(content.decode())
        except (ValueError, RecursionError) as error:
            raise FileError.of(CALLER, path, f"is no manifest of a job: {error}") from None
        for name, kind in KINDS.items():
            if not isinstance(found, dict) or name not in found:
                raise FileError.of(CALLER, path, f"is no manifest of a job: it has no {name}")
            value, end = found[name], LATEST if kind is NUMBER else LARGEST
            is_number = isinstance(value, NUMBER)
            if not isinstance(value, kind) or (is_number and not 0 <= value < end):
                reason = f"is no manifest of a job: its {name} is {value!r}"
                raise FileError.of(CALLER, path, reason)
        return found

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write the manifest, whole or not at all.

        Raises
        ------
        FileError
            If it cannot be written.
        JobError
            If another run has taken the folder over.
        """
        self._require_lock()
        with _told(self.path / MANIFEST):
            self._files.write(MANIFEST, json.dumps(manifest, indent=1).encode())

    def require_new(self) -> None:
        """Refuse a folder that has no manifest, but files where those of a job are.

        They may be of other inputs or options, and parts that are not of the job would be in its
        result; files of stages would be removed at its end.

        Raises
        ------
        JobError
            If there are some.
        """
        if self.has_files() or self._files.has_journal():
            message = (
                f"{CALLER}: there are files in {STAGES}, {PARTS}, {UNFINISHED} or a journal in "
                f"'{self.path}', but not the {MANIFEST} that says of which job: take another "
                "folder, or remove them"
            )
            raise JobError(message)

    def has_files(self) -> bool:
        """Whether there are parts, or files where stages have theirs."""
        return any(map(self._files.has_files, (PARTS, STAGES)))

    def journal(self) -> Iterator[Done]:
        """Read the tasks that are done; those whose line is damaged are done again.

        Raises
        ------
        FileError
            If it cannot be read.
        """
        with _told(self._files.journal, "read"):
            for line in self._files.lines():
                with suppress(ValueError):
                    yield Done.read(line.decode())

    @contextmanager
    def recording(self) -> Iterator["JobFolder"]:
        """Open the journal, to which `add` adds, and remove what a killed run half wrote.

        Raises
        ------
        FileError
            If it cannot be written.
        """
        with _told(self._files.journal):
            self._files.begin_journal()
        try:
            yield self
        finally:
            with _told(self._files.journal):
                self._files.end_journal()

    def add(self, done: Done) -> None:
        """Add a task that is done to the journal.

        Raises
        ------
        FileError
            If the journal cannot be written.
        JobError
            If another run has taken the folder over.
        """
        self._require_lock(anew=False)
        with _told(self._files.journal):
            self._files.add(f"{done.line()}\n".encode())

    @property
    def position(self) -> int:
        """Where in the journal the next task will be."""
        return self._files.position

    def lines_behind(self, position: int) -> int:
        """Count the tasks in the journal that a manifest with a position does not know yet.

        Raises
        ------
        FileError
            If it cannot be read.
        """
        with _told(self._files.journal, "read"):
            return self._files.lines_behind(position)

    def is_there(self, done: Done, *, is_last: bool = False) -> bool:
        """Whether the files of a task are there as they were written.

        The second one counts unless it is of the last run of a job, after which nobody needs it.
        """
        first = _name(done.stage, done.name), done.size, done.digest
        if is_last or not done.second:
            return self._files.has(*first)
        second, *state = done.second
        return self._files.has(*first) and self._files.has(_name(*place_of(second)), *state)

    def unfinished_file(self, suffix: str) -> AbstractContextManager[Path]:
        """Give the file for a part that is being written; what is left of it is removed."""
        return self._files.unfinished(suffix)

    def keep(self, partial: Path, stage: str, name: str) -> tuple[int, str]:
        """Let a file that is written appear in the folder of a stage.

        Give its size, and by what its content is known: a digest, or the ETag of an object.
        """
        return self._files.keep(partial, _name(stage, name))

    def remove_stages(self) -> None:
        """Remove what only later stages needed, and what workers left that were killed.

        Raises
        ------
        JobError
            If another run has taken the folder over.
        """
        self._require_lock()
        self._files.remove_stages()

    def forget(self) -> None:
        """Remove all of a job that was refused, unless another run has taken the folder over.

        The manifest goes after the journal, without which it is a job that may be resumed. `held`
        removes the folders that it has made.
        """
        if self._files.lock.is_kept(anew=True):
            self._files.remove_stages()
            with _told(self.path):
                self._files.remove_journal()
                (self.path / MANIFEST).unlink(missing_ok=True)


def _name(stage: str, *name: str) -> str:
    """Name the folder of a stage, or a file in it, in the folder of the job."""
    return "/".join([PARTS] if stage == PARTS else [STAGES, stage]) + "".join(f"/{n}" for n in name)


@contextmanager
def _told(path: Path, what: str = "written") -> Iterator[None]:
    """Tell errors of the system as those of the job.

    Raises
    ------
    FileError
    """
    try:
        yield
    except OSError as error:
        raise FileError.of(CALLER, path, f"cannot be {what}: {error.strerror}") from None
